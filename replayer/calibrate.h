// Measures what things cost on the device in question, for predictions (analyzer/prediction).
//
// The program is replayed eagerly up to the end of the step that stands for the others. When a
// kernel of that step is met whose signature is new, it is issued again and again: the host's share
// is the time of a loop that issues (both phases, descriptors included), the device's that of a
// captured graph of the same calls between two events, so that a slow host does not show in it.
// What the calls write is put back. Records, waits, graphs and copies are measured on graphs of
// copies and of hops between two streams.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analyzer/prediction/costs.h"
#include "replayer/replay.h"
#include "storage/reader.h"

namespace acltape::replayer {

struct CalibrateOptions {
  int repetitions = 9;  // samples of each signature
  Data data = Data::kRecorded;
  std::string device_lib;  // as in ReplayOptions
  uint64_t seed = 1;
  std::function<void(int64_t done, int64_t total)> progress;
};

struct CalibrationReport {
  analyzer::DeviceCosts costs;  // medians
  int64_t signatures = 0;       // measured
  // Kernels of the step that the device cannot run or capture, with the reason.
  std::vector<Note> notes;
};

// Writes a run of mode "calibrate" with the common costs as options, and a sample for each
// repetition of each signature, to `results` unless it is null. Errors as in Replay; Error kTrace
// for a trace of the ACL level.
CalibrationReport Calibrate(const storage::Reader& trace, const CalibrateOptions& options,
                            storage::Results* results);

}  // namespace acltape::replayer
