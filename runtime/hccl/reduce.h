// The arithmetic of reductions.
#pragma once

#include <cstdint>

#include "hccl/hccl_types.h"

namespace acltape::hccl {

// False for dtypes that cannot be reduced.
bool Reducible(HcclDataType dtype);

// to[i] = first[i] op second[i], rounded to the dtype each time as devices do. `to` may be `first`
// or `second`. Integers wrap. max and min give NaN if one of both is NaN.
void Reduce(HcclDataType dtype, HcclReduceOp op, void* to, const void* first, const void* second,
            uint64_t count);

}  // namespace acltape::hccl
