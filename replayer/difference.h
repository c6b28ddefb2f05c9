// How two contents of one tensor differ, element by element.
#pragma once

#include <cstdint>

#include "replayer/replay.h"
#include "storage/trace.h"

namespace acltape::replayer {

// Compares `elements` packed elements of `dtype`. Equal means equal bits. ULP distance counts the
// representable values between two numbers of a floating type; a NaN against a number gives -1.
Difference Compare(storage::DType dtype, const uint8_t* expected, const uint8_t* actual,
                   int64_t elements);

// One element as text ("0.125", "7", "true").
std::string ElementText(storage::DType dtype, const uint8_t* element);

// float16 and bfloat16 as float.
float HalfToFloat(uint16_t bits);
float BfloatToFloat(uint16_t bits);

// Copies the elements of a view to packed row-major order. `base` is the address of element 0.
void PackRowMajor(const storage::Layout& layout, const uint8_t* base, uint8_t* packed);
// The reverse.
void UnpackRowMajor(const storage::Layout& layout, const uint8_t* packed, uint8_t* base);

}  // namespace acltape::replayer
