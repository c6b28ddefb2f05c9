#include "timeline/arrows.h"

#include "storage/database.h"
#include "timeline/calls.h"
#include "timeline/names.h"

namespace acltape::timeline {
namespace {

// Matches each record of an event to its wait: the last record before a wait counts. Columns: the
// start and the end of the arrow.
constexpr char kEventArrows[] = R"sql(
WITH use AS (
  SELECT s.signature_id AS signature_id, a.integer AS event, o.name GLOB 'aclrtRecordEvent*' AS records
  FROM op o CROSS JOIN signature s ON s.op_id = o.op_id
  CROSS JOIN signature_argument a ON a.signature_id = s.signature_id AND a.name = 'event'
  WHERE o.name GLOB 'aclrtRecordEvent*' OR o.name GLOB 'aclrtStreamWaitEvent*')
SELECT record, call_id FROM (
  SELECT c.call_id AS call_id, u.records AS records,
    max(iif(u.records, c.call_id, NULL))
      OVER (PARTITION BY u.event ORDER BY c.call_id ROWS UNBOUNDED PRECEDING) AS record
  FROM call_row c JOIN use u ON u.signature_id = c.signature_id)
WHERE NOT records AND record IS NOT NULL
)sql";

constexpr char kGradientArrows[] =
    "SELECT x.forward_call AS record, x.call_id AS call_id FROM call_extra x "
    "WHERE x.forward_call IS NOT NULL";

// A call may have several pieces of work on the device; the arrow leads to the first.
constexpr char kLaunchArrows[] =
    "SELECT DISTINCT call_id AS record, call_id AS call_id FROM device_span";

// Rows (record, call_id) by one of the columns, read beside calls in the same order.
class SortedPairs {
 public:
  SortedPairs(storage::Database& database, const std::string& pairs, const char* column)
      : rows_(database, "SELECT record, call_id FROM (" + pairs + ") ORDER BY " + column +
                            ", record, call_id"),
        key_(column == std::string("record") ? 0 : 1) {
    Step();
  }
  // Visits the other ends of the pairs whose key this is.
  template <typename Visit>
  void At(int64_t call_id, const Visit& visit) {
    while (more_ && rows_.Integer(key_) <= call_id) {
      if (rows_.Integer(key_) == call_id) visit(rows_.Integer(0), rows_.Integer(1));
      Step();
    }
  }

 private:
  void Step() { more_ = rows_.Next(); }
  storage::Statement rows_;
  int key_;
  bool more_ = false;
};

class PairArrows final : public Arrows {
 public:
  PairArrows(storage::Database& database, CallLookup& calls, ArrowKind kind, const char* pairs)
      : calls_(calls), kind_(kind), begins_(database, pairs, "record") {
    // Work on the device ends its arrow itself.
    if (kind != ArrowKind::kLaunch) {
      ends_ = std::make_unique<SortedPairs>(database, pairs, "call_id");
    }
  }
  void At(int64_t call_id, std::vector<Arrow>& begins, std::vector<Arrow>& ends) override {
    begins_.At(call_id, [&](int64_t, int64_t target) {
      if (target == call_id || calls_.Shown(target)) begins.push_back({kind_, target});
    });
    if (ends_ == nullptr) return;
    ends_->At(call_id, [&](int64_t record, int64_t) {
      if (calls_.Shown(record)) ends.push_back({kind_, call_id});
    });
  }

 private:
  CallLookup& calls_;
  ArrowKind kind_;
  SortedPairs begins_;
  std::unique_ptr<SortedPairs> ends_;
};

}  // namespace

std::vector<std::unique_ptr<Arrows>> FindArrows(const storage::Reader& trace, CallLookup& calls) {
  storage::Database& database = trace.database();
  std::vector<std::unique_ptr<Arrows>> found;
  const auto add = [&](ArrowKind kind, const char* pairs) {
    found.push_back(std::make_unique<PairArrows>(database, calls, kind, pairs));
  };
  if (HasColumn(database, "call_extra", "forward_call")) add(ArrowKind::kGradient, kGradientArrows);
  if (HasTable(database, "device_span")) add(ArrowKind::kLaunch, kLaunchArrows);
  if (database.Integer("SELECT count(*) FROM op WHERE name GLOB 'aclrtStreamWaitEvent*'") > 0) {
    add(ArrowKind::kEvent, kEventArrows);
  }
  return found;
}

}  // namespace acltape::timeline
