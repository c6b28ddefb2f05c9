// Tests if two views of one buffer share a byte. The test is exact even for views that interleave,
// such as the columns of a matrix, or its even and odd rows.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "storage/trace.h"

namespace acltape::analyzer {

// The bytes of a view. There is a run of `run` bytes at `first` plus each combination of steps of
// the dimensions. Dimensions are sorted by falling stride. Two dimensions that continue each other
// are one.
struct BytePattern {
  struct Dimension {
    int64_t stride = 0;  // bytes, positive
    int64_t count = 0;   // at least 2
    bool operator==(const Dimension&) const = default;
  };
  int64_t first = 0;
  int64_t run = 0;  // 0: no bytes at all
  std::vector<Dimension> dimensions;

  bool operator==(const BytePattern&) const = default;
  bool dense() const { return dimensions.empty(); }
  int64_t end() const;  // one past the last byte
};

// The pattern of a layout. A layout with a negative stride or a special format counts as its whole
// range. Repeated dimensions (stride 0) count as one element.
BytePattern PatternOf(const storage::Layout& layout);

// True if the two share a byte. The test is exact if one of the views has at most 65,536 runs, and
// if few dimensions of the other one overlap each other. Beyond that, two views whose ranges
// overlap count as sharing.
bool ShareBytes(const BytePattern& a, const BytePattern& b);
// True if the view has a byte in [first, end).
bool Touches(const BytePattern& pattern, int64_t first, int64_t end);

// Keeps the answers for the layouts of one trace, so that each is computed once.
class OverlapTable {
 public:
  // The key is the address, because layouts are interned and owned by the reader.
  const BytePattern& Pattern(const storage::Layout* layout);
  bool Share(const storage::Layout* a, const storage::Layout* b);

 private:
  std::map<const storage::Layout*, BytePattern> patterns_;
  std::map<std::pair<const storage::Layout*, const storage::Layout*>, bool> shared_;
};

}  // namespace acltape::analyzer
