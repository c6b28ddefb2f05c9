// The times of a device's work in a trace (table device_span), which older traces, and recordings
// without --device-times, do not have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "storage/reader.h"

namespace acltape::storage {

bool HasDeviceSpans(const Reader& trace);

// How much of the time from the first work of the device to the last it worked. Streams that worked
// at the same time count once.
struct DeviceBusy {
  int64_t tasks = 0;
  int64_t busy_ns = 0;
  int64_t wall_ns = 0;
};
// Nothing when the trace has no device times.
std::optional<DeviceBusy> FindDeviceBusy(const Reader& trace);
// "31.4 % of 12.5 ms, 160 pieces of work", for the lists of facts that commands print.
std::string DeviceBusyText(const DeviceBusy& busy);

// The device's time for one call.
struct DeviceTime {
  int64_t ns = 0;
  // False: the stream idled when the host launched the work, so that launching is part of `ns`.
  bool exact = true;
};
// Returns the times by call_id. A leaf of PyTorch has the sum of what its kernel launched.
std::unordered_map<int64_t, DeviceTime> DeviceTimes(const Reader& trace);

}  // namespace acltape::storage
