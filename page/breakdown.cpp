#include "page/breakdown.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "page/rows.h"
#include "storage/columns.h"
#include "storage/database.h"
#include "storage/query.h"

namespace acltape::page {
namespace {

using nlohmann::json;

// The query orders all calls of all steps by time.
constexpr int64_t kMostCallsForBreakdown = 400000;

// Steps of this connection alone. A query finds them before those of the file.
class StepsBeside {
 public:
  StepsBeside(const storage::Reader& trace, const std::vector<storage::Step>& steps)
      : trace_(trace), needed_(trace.Steps().empty()) {
    if (!needed_) return;
    trace_.database().Execute(
        "CREATE TEMP TABLE step(step INTEGER PRIMARY KEY, first_call INTEGER, last_call INTEGER)");
    storage::Statement insert(trace_.database(), "INSERT INTO temp.step VALUES (?, ?, ?)");
    for (const storage::Step& step : steps) {
      insert.Bind(1, step.step);
      insert.Bind(2, step.first_call);
      insert.Bind(3, step.last_call);
      insert.Next();
      insert.Reset();
    }
  }
  ~StepsBeside() {
    if (needed_) trace_.database().Execute("DROP TABLE temp.step");
  }
  StepsBeside(const StepsBeside&) = delete;
  StepsBeside& operator=(const StepsBeside&) = delete;

 private:
  const storage::Reader& trace_;
  bool needed_;
};

}  // namespace

json BreakdownOf(const storage::Reader& trace, const std::vector<storage::Step>& steps) {
  json view{{"rows", json::array()}, {"why_none", ""}};
  if (steps.empty()) {
    view["why_none"] = "The program has no steps that repeat.";
  } else if (!storage::HasColumns(trace, "device_span", "call_id") ||
             !storage::HasColumns(trace, "scope_range", "begin_ns")) {
    view["why_none"] = "The trace is of an older schema, which lacks the times that tell.";
  } else if (trace.CallCount(false) > kMostCallsForBreakdown) {
    view["why_none"] =
        fmt::format("Left out, because the trace has more than {} calls.", kMostCallsForBreakdown);
  } else {
    const StepsBeside beside(trace, steps);
    view["rows"] = RowsOf(trace, storage::FindNamedQuery("step_breakdown")->sql);
  }
  return view;
}

}  // namespace acltape::page
