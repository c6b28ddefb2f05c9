// Elements of a strided tensor in a row, and back in their places.
#pragma once

#include <cstdint>
#include <functional>

#include "storage/trace.h"

namespace acltape::storage {

// True if the elements follow each other in row-major order, without gaps.
bool IsRowMajor(const Layout& layout);

// Calls `visit(byte offset from element 0)` for each element in row-major order.
void ForEachElement(const Layout& layout, const std::function<void(int64_t)>& visit);

// Copies the elements of a view to packed row-major order. `base` is the address of element 0.
void PackRowMajor(const Layout& layout, const uint8_t* base, uint8_t* packed);
// The reverse.
void UnpackRowMajor(const Layout& layout, const uint8_t* packed, uint8_t* base);

}  // namespace acltape::storage
