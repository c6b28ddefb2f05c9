#include "analyzer/calls/host_work.h"

#include <fmt/format.h>

#include "meaning/recorded_values.h"
#include "storage/database.h"
#include "storage/process_filter.h"

namespace acltape::analyzer {
namespace {

constexpr int64_t kHostBits = int64_t{meaning::kPlaceHost} << meaning::kPlaceShift;
constexpr int64_t kFirstDeviceBits = int64_t{meaning::kPlaceHost + 1} << meaning::kPlaceShift;

bool RanOnDevice(const storage::Reader& trace) {
  const storage::ProcessFilter filter(trace.process());
  storage::Statement rows(trace.database(),
                          fmt::format("SELECT 1 FROM call_row WHERE bits >= {} AND {} LIMIT 1",
                                      kFirstDeviceBits, filter.OfThread("thread_id")));
  filter.Bind(rows);
  return rows.Next();
}

}  // namespace

HostWork::HostWork(const storage::Reader& trace) : beside_device_(RanOnDevice(trace)) {}

HostWorkTotal TotalHostWork(const storage::Reader& trace, std::optional<CallRange> range) {
  if (!HostWork(trace).beside_device()) return {};
  const storage::ProcessFilter filter(trace.process());
  std::string sql = fmt::format(
      "SELECT count(*), ifnull(sum(duration_ns), 0) FROM call_row WHERE bits & {} AND bits >= {} "
      "AND bits < {} AND {}",
      meaning::kLeafBit, kHostBits, kFirstDeviceBits, filter.OfThread("thread_id"));
  if (range) {
    sql += fmt::format(" AND call_id BETWEEN {} AND {}", range->first_call, range->last_call);
  }
  storage::Statement rows(trace.database(), sql);
  filter.Bind(rows);
  HostWorkTotal total;
  if (rows.Next()) total = {rows.Integer(0), rows.Integer(1)};
  return total;
}

}  // namespace acltape::analyzer
