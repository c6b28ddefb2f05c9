// The numbers that the calls of traces get when the traces become one: they grow in the order in
// which the calls began, over all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/reader.h"

namespace acltape::storage {

// The new numbers of the calls of one trace, by their old ones.
class CallNumbers {
 public:
  // `before` and `after` grow from one to the next.
  void Add(int64_t before, int64_t after) { numbers_.push_back({before, after}); }

  // Nothing where the trace has no such call.
  std::optional<int64_t> Of(int64_t call_id) const;
  // The new number of the first call from this one on; beyond the last call, one more than its.
  int64_t AtOrAfter(int64_t call_id) const;
  // The new number of the last call up to this one; before the first call, one less than its.
  int64_t AtOrBefore(int64_t call_id) const;
  int64_t size() const { return static_cast<int64_t>(numbers_.size()); }

 private:
  struct Number {
    int64_t before;
    int64_t after;
  };
  std::vector<Number>::const_iterator FirstFrom(int64_t call_id) const;
  std::vector<Number> numbers_;
};

// A trace, and what is added to its times so that they are those of one clock.
struct MergeSource {
  const Reader* trace = nullptr;
  int64_t shift_ns = 0;
  int64_t error_ns = 0;  // the sum of both lies at most so far from the time of the clock
  std::string clock;     // how that is known, in words
};

// One for each source. Calls of one trace keep their order. `progress` may be null; it gets the
// calls so far. Throws Error kTrace where a row is none of a recording.
std::vector<CallNumbers> NumberCalls(std::span<const MergeSource> sources,
                                     const std::function<void(int64_t calls)>& progress);

}  // namespace acltape::storage
