// Measures what things cost on the device in question, for predictions (analyzer/prediction).
//
// The program is replayed eagerly up to the step that stands for the others, and that step once for
// each repetition. Every kernel is timed where it runs, with the caches that the calls before it
// leave: the host while it issues (both phases, descriptors included), the device between two
// events. The stream is kept busy with copies while calls are issued, so that a slow host does not
// show in the device's times. Graphs, copies, records and waits are measured on graphs of copies
// and of hops between two streams; whether streams run side by side, on some of the step's kernels.
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
  int repetitions = 9;  // of the step
  Data data = Data::kRecorded;
  std::string device_lib;  // as in ReplayOptions
  uint64_t seed = 1;
  std::function<void(int64_t done, int64_t total)> progress;
};

struct CalibrationReport {
  analyzer::DeviceCosts costs;  // medians
  int64_t signatures = 0;       // measured
  // What could not be measured.
  std::vector<Note> notes;
};

// Writes a run of mode "calibrate" with the common costs as options, and a sample for each
// repetition of each signature, to `results` unless it is null. Errors as in Replay; Error kTrace
// for a trace of the ACL level.
CalibrationReport Calibrate(const storage::Reader& trace, const CalibrateOptions& options,
                            storage::Results* results);

}  // namespace acltape::replayer
