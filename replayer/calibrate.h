// Measures the costs of kernels, graphs, copies and waits on a device. Predictions
// (analyzer/prediction) use these costs.
//
// The program is replayed eagerly up to the template step, and then this step is executed once for
// each repetition. Every kernel is timed inside the step, so that the caches are in the state that
// the earlier calls leave. The host time covers the issue of a call: both phases and the
// descriptors. The device time lies between two events. Copies keep the stream busy while calls are
// issued, so that a slow host does not add to the device times. Separate graphs of copies, and of
// waits between two streams, give the costs of graphs, copies, records and waits. Some of the
// step's kernels are also run on two streams, to see if streams run side by side.
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
  int repetitions = 9;  // repetitions of the step
  Data data = Data::kRecorded;
  std::string device_lib;  // as in ReplayOptions
  uint64_t seed = 1;
  std::function<void(int64_t done, int64_t total)> progress;
};

struct CalibrationReport {
  analyzer::prediction::DeviceCosts costs;  // medians
  int64_t signatures = 0;                   // measured
  // Costs that could not be measured.
  std::vector<Note> notes;
};

// Writes a run of mode "calibrate" to `results` unless it is null. The run has the common costs as
// options and one sample for each repetition of each signature. Throws errors as Replay does, and
// Error kTrace for a trace of the ACL level.
CalibrationReport Calibrate(const storage::Reader& trace, const CalibrateOptions& options,
                            storage::Results* results);

}  // namespace acltape::replayer
