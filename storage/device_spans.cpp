#include "storage/device_spans.h"

#include <fmt/format.h>

#include "storage/database.h"

namespace acltape::storage {

bool HasDeviceSpans(const Reader& trace) {
  Database& database = trace.database();
  if (database.Integer("SELECT count(*) FROM sqlite_master WHERE name = 'device_use'") == 0) {
    return false;
  }
  return database.Integer("SELECT EXISTS (SELECT 1 FROM device_span)") != 0;
}

std::optional<DeviceBusy> FindDeviceBusy(const Reader& trace) {
  if (!HasDeviceSpans(trace)) return std::nullopt;
  Statement row(trace.database(),
                "SELECT sum(tasks), sum(busy_ns), sum(busy_ns + idle_ns) FROM device_use "
                "WHERE stream_id IS NULL");
  if (!row.Next()) return std::nullopt;
  return DeviceBusy{row.Integer(0), row.Integer(1), row.Integer(2)};
}

std::string DeviceBusyText(const DeviceBusy& busy) {
  const double wall_ns = static_cast<double>(busy.wall_ns);
  const double percent = wall_ns > 0 ? 100.0 * static_cast<double>(busy.busy_ns) / wall_ns : 100.0;
  return fmt::format("{:.1f} % of {:.3f} ms, in {} pieces of work", percent, wall_ns / 1e6,
                     busy.tasks);
}

std::unordered_map<int64_t, DeviceTime> DeviceTimes(const Reader& trace) {
  std::unordered_map<int64_t, DeviceTime> times;
  if (!HasDeviceSpans(trace)) return times;
  Statement rows(trace.database(), "SELECT call_id, device_ns, exact FROM device_time");
  while (rows.Next()) times[rows.Integer(0)] = {rows.Integer(1), rows.Integer(2) != 0};
  return times;
}

}  // namespace acltape::storage
