#include "storage/call_numbers.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>
#include <utility>

#include "storage/checked_row.h"
#include "storage/database.h"
#include "storage/row_gate.h"

namespace acltape::storage {
namespace {

constexpr int64_t kCallsPerProgress = 1 << 16;

// The calls of a source, one after the other.
class CallsInOrder {
 public:
  explicit CallsInOrder(const MergeSource& source)
      : shift_(source.shift_ns + TakeBaseNs(source.trace->path(), source.trace->Meta("base_ns"))),
        rows_(source.trace->database(), "SELECT call_id, begin_ns FROM call_row ORDER BY call_id"),
        row_(rows_, source.trace->path(), "call_row") {}

  bool Next() {
    if (!rows_.Next()) return false;
    call_id_ = row_.Id("call_id");
    // Begins that do not grow, as those of two threads may not, keep the order of their numbers.
    begin_ns_ = std::max(begin_ns_, row_.IntegerOrNull(1, "begin_ns", -kMostNs, kMostNs) + shift_);
    return true;
  }
  int64_t call_id() const { return call_id_; }
  int64_t begin_ns() const { return begin_ns_; }

 private:
  int64_t shift_;
  Statement rows_;
  CheckedRow row_;
  int64_t call_id_ = 0;
  int64_t begin_ns_ = INT64_MIN;
};

}  // namespace

std::vector<CallNumbers::Number>::const_iterator CallNumbers::FirstFrom(int64_t call_id) const {
  return std::ranges::lower_bound(numbers_, call_id, {}, &Number::before);
}

std::optional<int64_t> CallNumbers::Of(int64_t call_id) const {
  const auto found = FirstFrom(call_id);
  if (found == numbers_.end() || found->before != call_id) return std::nullopt;
  return found->after;
}

int64_t CallNumbers::AtOrAfter(int64_t call_id) const {
  if (numbers_.empty()) return 1;
  const auto found = FirstFrom(call_id);
  return found == numbers_.end() ? numbers_.back().after + 1 : found->after;
}

int64_t CallNumbers::AtOrBefore(int64_t call_id) const {
  if (numbers_.empty()) return 0;
  const auto found = FirstFrom(call_id);
  if (found != numbers_.end() && found->before == call_id) return found->after;
  return found == numbers_.begin() ? found->after - 1 : std::prev(found)->after;
}

std::vector<CallNumbers> NumberCalls(std::span<const MergeSource> sources,
                                     const std::function<void(int64_t calls)>& progress) {
  std::vector<CallNumbers> numbers(sources.size());
  std::deque<CallsInOrder> calls;
  using Next = std::pair<int64_t, size_t>;  // when the next call of a source begins
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
  for (const MergeSource& source : sources) {
    if (calls.emplace_back(source).Next()) next.emplace(calls.back().begin_ns(), calls.size() - 1);
  }
  for (int64_t number = 1; !next.empty(); ++number) {
    const size_t source = next.top().second;
    next.pop();
    numbers[source].Add(calls[source].call_id(), number);
    if (calls[source].Next()) next.emplace(calls[source].begin_ns(), source);
    if (progress && number % kCallsPerProgress == 0) progress(number);
  }
  return numbers;
}

}  // namespace acltape::storage
