#include "analyzer/calls/byte_set.h"

namespace acltape::analyzer {
namespace {

// A view with more runs than this counts as the whole range that it spans.
constexpr int64_t kRunLimit = int64_t{1} << 16;

void AddRuns(const storage::Layout& layout, size_t dimension, int64_t offset, ByteSet& set) {
  const int64_t element = storage::DTypeBytes(layout.dtype);
  const size_t last = layout.shape.size() - 1;
  if (dimension == last && layout.strides[last] == 1) {
    set.Add(offset, offset + layout.shape[last] * element);
    return;
  }
  for (int64_t i = 0; i < layout.shape[dimension]; ++i) {
    const int64_t next = offset + i * layout.strides[dimension] * element;
    if (dimension == last) {
      set.Add(next, next + element);
    } else {
      AddRuns(layout, dimension + 1, next, set);
    }
  }
}

}  // namespace

void AddElements(const storage::Layout& layout, ByteSet& set) {
  if (layout.ElementCount() == 0) return;
  if (layout.IsDense() || layout.ElementCount() > kRunLimit) {
    set.Add(layout.FirstByte(), layout.EndByte());
    return;
  }
  AddRuns(layout, 0, layout.byte_offset, set);
}

}  // namespace acltape::analyzer
