// What things cost on a device: measured there by a calibration replay (replayer/calibrate.h), or
// taken from the recording when there was none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "analyzer/streams/schedule.h"
#include "analyzer/work/work.h"
#include "storage/reader.h"

namespace acltape::analyzer {

// Nanoseconds of one call.
struct CallCost {
  double host_ns = 0;    // to issue it: of operators both phases
  double device_ns = 0;  // on its stream, alone
};

// Nanoseconds. The defaults stand for a device that nobody has measured.
struct DeviceCosts {
  std::string device;  // description of the device; empty: nothing was measured
  int64_t run_id = 0;  // of the calibration, 0: none
  std::unordered_map<int64_t, CallCost> by_signature;  // by signature_id

  double record_host_ns = 200;  // to issue an event record or a wait
  double wait_host_ns = 200;
  StreamCosts streams;            // on the device
  double graph_host_ns = 3000;    // to issue the execution of a graph
  double graph_device_ns = 5000;  // from there to its first task, and from its last to its end
  // Of the time that calls take on the stream when they are issued one by one, what they take in a
  // graph.
  double graph_share = 1;
  double capture_task_ns = 1000;  // to end a capture, by task: besides issuing what is captured
  double copy_host_ns = 1500;     // to issue a copy from the host
  double copy_device_ns = 1000;   // of a copy without bytes
  double copy_byte_ns = 0.05;
  double host_read_ns = 10000;  // from the end of the stream's work until the host goes on
  int64_t queue_depth = 2048;   // tasks of a stream that the host can be ahead

  bool measured() const { return !device.empty(); }
};

// Costs of the calls [first, end) by signature, medians of the recording: the host issues as it
// did, and the device takes as long as the recorded operator took. Of a program recorded on the CPU
// that is its computation; of one recorded on a device it is the dispatch, since a recording at the
// aten level does not see the device's side.
DeviceCosts RecordedCosts(const Work& work, size_t first, size_t end);

// The last calibration that the trace holds, for a device whose description is `device` (empty:
// any).
std::optional<DeviceCosts> LoadCalibration(const storage::Reader& trace,
                                           const std::string& device = {});

// What a call costs: by its signature; of sources and host reads, which a calibration does not run,
// the copy of their bytes; of a kernel that was not measured its recorded duration on both sides;
// of views and allocations nothing.
CallCost CostOf(const DeviceCosts& costs, const Work& work, size_t call);

// As stored in the options of a run of mode "calibrate"; all but the costs of signatures.
std::string ToJson(const DeviceCosts& costs);

}  // namespace acltape::analyzer
