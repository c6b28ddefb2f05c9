#include "analyzer/calls/overlap.h"

#include <algorithm>

namespace acltape::analyzer {
namespace {

constexpr int64_t kMostRuns = int64_t{1} << 16;

int64_t Runs(const BytePattern& pattern) {
  int64_t runs = 1;
  for (const BytePattern::Dimension& dimension : pattern.dimensions) {
    if (runs > kMostRuns) break;
    runs *= dimension.count;
  }
  return runs;
}

// Tests if a pattern has a byte in a range. `budget` limits the work. When it is used up, the
// answer is yes.
class RangeTest {
 public:
  RangeTest(const BytePattern& pattern, int64_t& budget) : pattern_(pattern), budget_(budget) {
    // The number of bytes from the first to the last byte of the inner dimensions.
    extents_.assign(pattern.dimensions.size() + 1, pattern.run);
    for (size_t d = pattern.dimensions.size(); d-- > 0;) {
      extents_[d] =
          extents_[d + 1] + pattern.dimensions[d].stride * (pattern.dimensions[d].count - 1);
    }
  }

  bool Hits(int64_t first, int64_t end) const {
    return Hits(0, first - pattern_.first, end - pattern_.first);
  }

 private:
  // [first, end) is relative to the first byte of the inner dimensions from `d` on.
  bool Hits(size_t d, int64_t first, int64_t end) const {
    if (end <= 0 || first >= extents_[d]) return false;
    if (d == pattern_.dimensions.size() || --budget_ < 0) return true;
    if (first <= 0) return true;  // the range holds the very first byte
    const auto& [stride, count] = pattern_.dimensions[d];
    // The repetitions i with i * stride < end and i * stride + extent > first.
    const int64_t from = std::max<int64_t>(0, (first - extents_[d + 1]) / stride);
    const int64_t to = std::min(count - 1, (end - 1) / stride);
    for (int64_t i = from; i <= to; ++i) {
      if (Hits(d + 1, first - i * stride, end - i * stride)) return true;
    }
    return false;
  }

  const BytePattern& pattern_;
  int64_t& budget_;
  std::vector<int64_t> extents_;
};

bool AnyRunHits(const BytePattern& pattern, size_t d, int64_t offset, const RangeTest& test) {
  if (d == pattern.dimensions.size()) return test.Hits(offset, offset + pattern.run);
  for (int64_t i = 0; i < pattern.dimensions[d].count; ++i) {
    if (AnyRunHits(pattern, d + 1, offset + i * pattern.dimensions[d].stride, test)) return true;
  }
  return false;
}

}  // namespace

int64_t BytePattern::end() const {
  int64_t end = first + run;
  for (const Dimension& dimension : dimensions) end += dimension.stride * (dimension.count - 1);
  return end;
}

BytePattern PatternOf(const storage::Layout& layout) {
  BytePattern pattern;
  pattern.first = layout.FirstByte();
  pattern.run = std::max<int64_t>(layout.EndByte() - layout.FirstByte(), 0);
  if (pattern.run == 0 || !layout.format.empty() || layout.strides.size() != layout.shape.size() ||
      layout.IsDense()) {
    return pattern;
  }
  const int64_t element = storage::DTypeBytes(layout.dtype);
  std::vector<BytePattern::Dimension> dimensions;
  for (size_t d = 0; d < layout.shape.size(); ++d) {
    if (layout.strides[d] < 0) return pattern;
    if (layout.shape[d] > 1 && layout.strides[d] > 0) {
      dimensions.push_back({layout.strides[d] * element, layout.shape[d]});
    }
  }
  std::sort(dimensions.begin(), dimensions.end(),
            [](const auto& a, const auto& b) { return a.stride > b.stride; });
  pattern.run = element;
  while (!dimensions.empty() && dimensions.back().stride <= pattern.run) {
    pattern.run += dimensions.back().stride * (dimensions.back().count - 1);
    dimensions.pop_back();
  }
  for (const BytePattern::Dimension& dimension : dimensions) {
    if (!pattern.dimensions.empty() &&
        pattern.dimensions.back().stride == dimension.stride * dimension.count) {
      pattern.dimensions.back().stride = dimension.stride;
      pattern.dimensions.back().count *= dimension.count;
    } else {
      pattern.dimensions.push_back(dimension);
    }
  }
  return pattern;
}

bool ShareBytes(const BytePattern& a, const BytePattern& b) {
  if (a.run == 0 || b.run == 0 || a.end() <= b.first || b.end() <= a.first) return false;
  const int64_t runs_a = Runs(a);
  const int64_t runs_b = Runs(b);
  if (std::min(runs_a, runs_b) > kMostRuns) return true;
  int64_t budget = 16 * kMostRuns;
  const BytePattern& outer = runs_a <= runs_b ? a : b;
  const RangeTest test(&outer == &a ? b : a, budget);
  return AnyRunHits(outer, 0, outer.first, test);
}

bool Touches(const BytePattern& pattern, int64_t first, int64_t end) {
  if (pattern.run == 0 || first >= end) return false;
  if (first <= pattern.first && pattern.first < end) return true;
  int64_t budget = kMostRuns;
  return RangeTest(pattern, budget).Hits(first, end);
}

const BytePattern& OverlapTable::Pattern(const storage::Layout* layout) {
  const auto [entry, created] = patterns_.try_emplace(layout);
  if (created) entry->second = PatternOf(*layout);
  return entry->second;
}

bool OverlapTable::Share(const storage::Layout* a, const storage::Layout* b) {
  if (b < a) std::swap(a, b);
  const auto [entry, created] = shared_.try_emplace({a, b});
  if (created) entry->second = ShareBytes(Pattern(a), Pattern(b));
  return entry->second;
}

}  // namespace acltape::analyzer
