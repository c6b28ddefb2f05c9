#include "storage/arrow/step_of_call.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "storage/database.h"
#include "storage/sql_functions.h"

namespace acltape::storage::arrow {
namespace {

struct StepCalls {
  std::optional<int64_t> step;
  int64_t first_call;
  int64_t last_call;
};

class StepFinder {
 public:
  explicit StepFinder(std::vector<StepCalls> steps) : steps_(std::move(steps)) {}

  std::optional<int64_t> StepOf(int64_t call) {
    if (!IsLast(call)) {
      const auto after = std::upper_bound(
          steps_.begin(), steps_.end(), call,
          [](int64_t wanted, const StepCalls& step) { return wanted < step.first_call; });
      begun_ = static_cast<size_t>(after - steps_.begin());
    }
    if (begun_ == 0 || steps_[begun_ - 1].last_call < call) return std::nullopt;
    return steps_[begun_ - 1].step;
  }

 private:
  // True if the first `begun_` steps are those that begin at the call or before.
  bool IsLast(int64_t call) const {
    return (begun_ == 0 || steps_[begun_ - 1].first_call <= call) &&
           (begun_ == steps_.size() || call < steps_[begun_].first_call);
  }

  std::vector<StepCalls> steps_;
  size_t begun_ = 0;
};

}  // namespace

void AddStepOfCall(Database& database) {
  std::vector<StepCalls> steps;
  Statement rows(database, "SELECT step, first_call, last_call FROM step ORDER BY first_call");
  while (rows.Next()) {
    steps.push_back({rows.IsNull(0) ? std::nullopt : std::optional(rows.Integer(0)),
                     rows.Integer(1), rows.Integer(2)});
  }
  AddIntegerFunction(database, "step_of_call",
                     [finder = StepFinder(std::move(steps))](int64_t call) mutable {
                       return finder.StepOf(call);
                     });
}

}  // namespace acltape::storage::arrow
