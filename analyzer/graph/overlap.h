// Whether two views of one buffer share a byte: exactly, also when they interleave (the columns of
// a matrix, the even and the odd rows).
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "storage/trace.h"

namespace acltape::analyzer {

// The bytes of a view: runs of `run` bytes at `first` plus every combination of the dimensions'
// steps. Dimensions are by falling stride; those that continue each other are one.
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

// A layout with a stride below 0 or with a format of its own counts as its whole range. Repeated
// dimensions (stride 0) are one.
BytePattern PatternOf(const storage::Layout& layout);

// Exact up to 65,536 runs of the view with fewer runs, and as long as few of the other one's
// dimensions reach over each other; beyond that two views whose ranges overlap count as sharing.
bool ShareBytes(const BytePattern& a, const BytePattern& b);
// Whether the view has a byte in [first, end).
bool Touches(const BytePattern& pattern, int64_t first, int64_t end);

// The answers for the layouts of one trace, each worked out once.
class OverlapTable {
 public:
  // By address: layouts are interned and owned by the reader.
  const BytePattern& Pattern(const storage::Layout* layout);
  bool Share(const storage::Layout* a, const storage::Layout* b);

 private:
  std::map<const storage::Layout*, BytePattern> patterns_;
  std::map<std::pair<const storage::Layout*, const storage::Layout*>, bool> shared_;
};

}  // namespace acltape::analyzer
