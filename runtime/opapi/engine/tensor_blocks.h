// The blocks of a tensor in FRACTAL_NZ.
#pragma once

#include "acl/invoke/blocked_layout.h"
#include "runtime/opapi/base/dtype.h"
#include "runtime/opapi/base/objects.h"

namespace acltape::opapi {

// False for a tensor of another format, and for one whose view no blocks hold.
inline bool BlocksOf(const aclTensor& tensor, acl::BlockedLayout* blocks) {
  return tensor.format == ACL_FORMAT_FRACTAL_NZ &&
         acl::BlockedLayoutOf(
             tensor.sizes.data(), tensor.strides.data(), static_cast<uint32_t>(tensor.sizes.size()),
             tensor.storage_dims.data(), static_cast<uint32_t>(tensor.storage_dims.size()),
             BlockColumns(tensor.dtype), blocks);
}

}  // namespace acltape::opapi
