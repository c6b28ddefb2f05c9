// Places of elements in tensors, in row-major order.
#pragma once

#include <cstdint>
#include <vector>

namespace acltape::analyzer::executions {

using Shape = std::vector<int64_t>;

inline int64_t CountOf(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

// Visits each element of a shape with its index in every dimension, in row-major order.
template <typename Visit>
void EachIndex(const Shape& shape, Visit&& visit) {
  const int64_t count = CountOf(shape);
  Shape index(shape.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    visit(i, index);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

// The row-major place of an index of a larger shape in a tensor that is broadcast to it.
inline int64_t BroadcastPlace(const Shape& index, const Shape& shape) {
  int64_t place = 0;
  const size_t skipped = index.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    place = place * shape[d] + (shape[d] == 1 ? 0 : index[skipped + d]);
  }
  return place;
}

inline bool BroadcastsTo(const Shape& shape, const Shape& larger) {
  if (shape.size() > larger.size()) return false;
  const size_t skipped = larger.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1 && shape[d] != larger[skipped + d]) return false;
  }
  return true;
}

}  // namespace acltape::analyzer::executions
