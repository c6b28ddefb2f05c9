#include "storage/packing.h"

#include <cstring>
#include <vector>

namespace acltape::storage {

bool IsRowMajor(const Layout& layout) {
  int64_t stride = 1;
  for (size_t d = layout.shape.size(); d-- > 0;) {
    if (layout.shape[d] != 1 && layout.strides[d] != stride) return false;
    stride *= layout.shape[d];
  }
  return true;
}

void ForEachElement(const Layout& layout, const std::function<void(int64_t)>& visit) {
  const int64_t count = layout.ElementCount();
  const int64_t bytes = DTypeBytes(layout.dtype);
  const size_t rank = layout.shape.size();
  std::vector<int64_t> index(rank, 0);
  int64_t offset = 0;
  for (int64_t i = 0; i < count; ++i) {
    visit(offset * bytes);
    for (size_t d = rank; d-- > 0;) {
      offset += layout.strides[d];
      if (++index[d] < layout.shape[d]) break;
      offset -= layout.strides[d] * layout.shape[d];
      index[d] = 0;
    }
  }
}

void PackRowMajor(const Layout& layout, const uint8_t* base, uint8_t* packed) {
  const int64_t bytes = DTypeBytes(layout.dtype);
  ForEachElement(layout, [&](int64_t offset) {
    std::memcpy(packed, base + offset, bytes);
    packed += bytes;
  });
}

void UnpackRowMajor(const Layout& layout, const uint8_t* packed, uint8_t* base) {
  const int64_t bytes = DTypeBytes(layout.dtype);
  ForEachElement(layout, [&](int64_t offset) {
    std::memcpy(base + offset, packed, bytes);
    packed += bytes;
  });
}

}  // namespace acltape::storage
