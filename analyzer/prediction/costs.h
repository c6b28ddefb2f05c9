// The costs of work on a device. A calibration replay measures them there (replayer/calibrate.h).
// Without one they are taken from the recording.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "analyzer/calls/work.h"
#include "analyzer/streams/schedule.h"
#include "storage/reader.h"

namespace acltape::analyzer::prediction {

// Nanoseconds of one call.
struct CallCost {
  double host_ns = 0;    // to issue it; for operators both phases
  double device_ns = 0;  // on its stream, with nothing else
};

// All times are nanoseconds. The defaults are for a device that nobody has measured.
struct DeviceCosts {
  std::string device;  // description of the device; empty: nothing was measured
  int64_t run_id = 0;  // run of the calibration; 0: none
  std::unordered_map<int64_t, CallCost> by_signature;  // by signature_id

  double record_host_ns = 200;  // to issue an event record or a wait
  double wait_host_ns = 200;
  streams::StreamCosts streams;  // on the device
  double graph_host_ns = 3000;   // to issue the execution of a graph
  // From that issue to the first task, and from the last task to the end of the execution.
  double graph_device_ns = 5000;
  // The time that calls take in a graph, as a share of their time on the stream when they are
  // issued one by one.
  double graph_share = 1;
  // To end a capture, for each task. The time to issue the captured calls is not in it.
  double capture_task_ns = 1000;
  double copy_host_ns = 1500;    // to issue a copy from the host
  double copy_device_ns = 1000;  // time of a copy without bytes
  double copy_byte_ns = 0.05;
  double host_read_ns = 10000;  // from the end of the stream's work until the host goes on
  int64_t queue_depth =
      2048;  // most tasks of a stream that the host may have issued and that have not run

  // Signatures whose device time the recording has (record --device-times), and those of them whose
  // time includes launching, because their work always met an idle stream.
  int64_t timed_signatures = 0;
  int64_t launching_signatures = 0;

  bool measured() const { return !device.empty(); }
};

// Costs of the calls of several steps, by signature, as medians of the recording.
// Several steps tell the usual cost of a call apart from that of its first execution, which often
// loads its kernel. The host takes as long to issue as it did. The device takes as long as it did,
// where the trace has its times (storage/device_spans.h): those of work that waited in its stream
// count before those that include launching. Elsewhere it takes as long as the recorded operator:
// in a program recorded on the CPU that is its computation, in one recorded on a device only the
// dispatch.
DeviceCosts RecordedCosts(const Work& work, const std::vector<StepRange>& steps);

// The last calibration in the trace for a device whose description is `device`. An empty text means
// any device.
std::optional<DeviceCosts> LoadCalibration(const storage::Reader& trace,
                                           const std::string& device = {});

// The cost of a call. Usually it is found by signature. Sources and host reads, which a calibration
// does not run, cost the copy of their bytes. A kernel that was not measured costs its recorded
// duration on both host and device. Views and allocations cost nothing. Of the work of a graph that
// the program executed the first call costs the host the execution, and the others nothing.
CallCost CostOf(const DeviceCosts& costs, const Work& work, size_t call);

// The costs as the options of a run of mode "calibrate" store them, without the costs of
// signatures.
std::string ToJson(const DeviceCosts& costs);

}  // namespace acltape::analyzer::prediction
