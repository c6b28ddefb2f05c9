// Bytes of a device's memory by address. The two levels of a trace have different buffers: one per
// tensor, and one per block of the device's allocator. So they are compared by address.
#pragma once

#include <cstdint>

#include "storage/reader.h"

namespace acltape::analyzer {

// Bytes [first, end) of the device's address space.
struct DeviceRange {
  int64_t first = 0;
  int64_t end = 0;
  bool Overlaps(const DeviceRange& other) const { return first < other.end && other.first < end; }
  bool Holds(const DeviceRange& other) const { return first <= other.first && other.end <= end; }
};

inline DeviceRange RangeOf(const storage::Reader& trace, const storage::TensorRef& tensor) {
  const int64_t base = trace.GetBuffer(tensor.buffer_id).address;
  const storage::Layout& layout = trace.GetLayout(tensor.layout_id);
  return {base + layout.FirstByte(), base + layout.EndByte()};
}

}  // namespace acltape::analyzer
