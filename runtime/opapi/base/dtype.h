// Sizes of ACL dtypes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "acl/acl_base_rt.h"
#include "acl/invoke/blocked_layout.h"

namespace acltape::opapi {

// Bytes of one element; 0 for dtypes without a whole-byte host form.
inline size_t ItemSize(aclDataType dtype) {
  switch (dtype) {
    case ACL_BOOL:
    case ACL_INT8:
    case ACL_UINT8:
      return 1;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16:
      return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_COMPLEX32:
      return 4;
    case ACL_DOUBLE:
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_COMPLEX64:
      return 8;
    case ACL_COMPLEX128:
      return 16;
    default:
      return 0;
  }
}

// Columns of a block of a tensor in FRACTAL_NZ; 0 for dtypes that no block holds.
inline int64_t BlockColumns(aclDataType dtype) {
  if (dtype == ACL_INT4) return acl::kBlockColumnsOfFourBits;
  return acl::BlockColumnsOf(static_cast<uint32_t>(ItemSize(dtype)));
}

// Sets the bytes that so many elements take; two of ACL_INT4 share one. False where no number holds
// them.
inline bool BytesOfElements(aclDataType dtype, int64_t elements, int64_t* bytes) {
  if (dtype == ACL_INT4) {
    *bytes = elements / 2 + elements % 2;
    return true;
  }
  return !__builtin_mul_overflow(elements, static_cast<int64_t>(ItemSize(dtype)), bytes);
}

}  // namespace acltape::opapi
