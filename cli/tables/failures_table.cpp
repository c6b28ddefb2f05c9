#include "cli/tables/failures_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace acltape::cli {
namespace {

using analyzer::lint::Failure;
using analyzer::lint::FailureRole;
using analyzer::lint::Failures;

bool IsFirst(const Failure& failure) {
  return failure.role == FailureRole::kEnded || failure.role == FailureRole::kWentOn;
}

// The place of a failure among the roles: first failures with what follows from them, then what was
// handled, then teardown.
int PlaceOf(const Failure& failure) {
  if (failure.role == FailureRole::kTeardown) return 2;
  return failure.role == FailureRole::kHandled ? 1 : 0;
}

// A consequence has the order of its cause, so that it stands below it.
int64_t OrderOf(const Failures& failures, const Failure& failure) {
  const bool follows = failure.role == FailureRole::kConsequence;
  return follows ? failures.rows[static_cast<size_t>(failure.cause)].call_id : failure.call_id;
}

std::string Became(const Failures& failures, const Failure& failure) {
  if (failure.role == FailureRole::kEnded && !failures.ended.empty()) return failures.ended;
  if (failure.role == FailureRole::kConsequence) {
    return fmt::format("follows from call {}",
                       failures.rows[static_cast<size_t>(failure.cause)].call_id);
  }
  return std::string(FailureRoleName(failure.role));
}

}  // namespace

Table FailuresTable(const Failures& failures, Format format) {
  constexpr size_t kShown = 12;
  std::vector<const Failure*> order;
  for (const Failure& failure : failures.rows) order.push_back(&failure);
  std::stable_sort(order.begin(), order.end(), [&](const Failure* a, const Failure* b) {
    if (PlaceOf(*a) != PlaceOf(*b)) return PlaceOf(*a) < PlaceOf(*b);
    const int64_t of_a = OrderOf(failures, *a), of_b = OrderOf(failures, *b);
    return of_a != of_b ? of_a < of_b : IsFirst(*a) && !IsFirst(*b);
  });
  Table table({"call_id", "op", "where", "function", "code", "count", "the device said", "operator",
               "operator where", "what became of it"});
  for (const Failure* failure : order) {
    if (format == Format::kTable && table.rows().size() == kShown) {
      table.Add({fmt::format("... {} in all", order.size()), Cell(), Cell(), Cell(), Cell(), Cell(),
                 Cell(), Cell(), Cell(), Cell()});
      break;
    }
    const bool first = IsFirst(*failure) && failure->operator_call != 0;
    table.Add({failure->call_id, TextCell(failure->op), TextCell(failure->where),
               TextCell(failure->function),
               failure->code == 0 ? Cell() : Cell(int64_t{failure->code}), failure->count,
               failure->text.empty() ? Cell("not known") : Cell(failure->text),
               first ? Cell(fmt::format("{} {}", failure->operator_call, failure->operator_name))
                     : Cell(),
               first ? TextCell(failure->operator_where) : Cell(), Became(failures, *failure)});
  }
  return table;
}

std::string HandledFailures(const Failures& failures) {
  int64_t count = 0;
  for (const Failure& failure : failures.rows) {
    if (failure.role == FailureRole::kHandled) count += failure.count;
  }
  if (count == 0) return "";
  return count == 1 ? "; 1 call failed and was handled (table failures)"
                    : fmt::format("; {} calls failed and were handled (table failures)", count);
}

}  // namespace acltape::cli
