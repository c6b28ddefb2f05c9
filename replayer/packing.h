// Elements of a strided tensor in a row, and back in their places.
#pragma once

#include <cstdint>

#include "storage/trace.h"

namespace acltape::replayer {

// Copies the elements of a view to packed row-major order. `base` is the address of element 0.
void PackRowMajor(const storage::Layout& layout, const uint8_t* base, uint8_t* packed);
// The reverse.
void UnpackRowMajor(const storage::Layout& layout, const uint8_t* packed, uint8_t* base);

}  // namespace acltape::replayer
