// The bytes of a dump file (DMP-04): the length of a message in eight bytes, lowest first; the
// message, which says what the tensors are; then the elements of each tensor, inputs first, row by
// row without gaps.
//
// The message is that of the vendor's tools (toolkit.dump.DumpData), in the encoding of protocol
// buffers, so that tools which read dumps of a device read these:
//
//   DumpData   1 version, 2 time in microseconds, 3 outputs, 4 inputs, 6 name of the operator
//   an output  1 type, 2 format, 3 shape, 6 bytes of data, 7 original shape
//   an input   1 type, 2 format, 3 shape, 5 bytes of data, 6 original shape
//   a shape    1 sizes, packed
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/kernel_dump.h"

namespace acltape::device {

// `tensors` are all inputs or all outputs.
std::string DumpFileOf(const char* op, const std::vector<SoftTensor>& tensors, uint64_t time_us);

// The elements of a tensor without gaps.
std::string DenseBytes(const SoftTensor& tensor);

}  // namespace acltape::device
