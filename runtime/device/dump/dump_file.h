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

#include "acl/acl_base.h"
#include "runtime/kernel_dump.h"

namespace acltape::device {

// `tensors` are all inputs or all outputs.
std::string DumpFileOf(const char* op, const std::vector<SoftTensor>& tensors, uint64_t time_us);

// A tensor that a program saves itself (DMP-08). Its bytes are `bytes` from `first` on.
struct SavedTensor {
  aclDataType type;
  aclFormat format;
  std::vector<int64_t> shape;
  std::vector<int64_t> original_shape;
  const void* first;
  size_t bytes;
  enum class Role : uint8_t { kInput, kOutput, kWorkspace } role;
};

// As above, with an attribute "userTag" unless `tag` is empty. Workspaces come last:
//
//   DumpData      7 attribute, 8 workspace
//   an attribute  1 name, 2 value
//   a workspace   3 bytes of data
std::string SavedFileOf(const char* name, const std::string& tag,
                        const std::vector<SavedTensor>& tensors, uint64_t time_us);

// The elements of a tensor without gaps.
std::string DenseBytes(const SoftTensor& tensor);

}  // namespace acltape::device
