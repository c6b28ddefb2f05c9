// Descriptions of tensors, as callers of operators by name build them. They are plain values: the
// shape and format that the program thinks in, and those of the memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "acl/acl_op.h"

struct aclTensorDesc {
  aclDataType type = ACL_DT_UNDEFINED;
  std::vector<int64_t> shape;  // in elements, of the original format
  aclFormat format = ACL_FORMAT_UNDEFINED;
  std::vector<int64_t> storage_shape;  // the shape in memory; empty: as `shape`
  aclFormat storage_format = ACL_FORMAT_UNDEFINED;
  aclMemType memory = ACL_MEMTYPE_DEVICE;
  std::string name;
  std::vector<char> constant;  // bytes of an input that is known when the operator is compiled
  uint32_t made_by = 0;        // the system's number of the thread that described the tensor
};

namespace acltape::device {

inline size_t ElementsOf(const std::vector<int64_t>& shape) {
  size_t count = 1;
  for (int64_t dim : shape) count *= dim > 0 ? static_cast<size_t>(dim) : 0;
  return count;
}

// Bytes of the described elements, without what a format adds to them.
size_t BytesOf(const aclTensorDesc& desc);

}  // namespace acltape::device
