// Products of int8 with int4, by the page of aclnnQuantMatmulV5.
#pragma once

#include <memory>

#include "runtime/opapi/engine/call.h"
#include "runtime/opapi/engine/kernel.h"

namespace acltape::opapi {

// True where the call multiplies int8 with int4 that lies packed in int32.
bool MultipliesBytesWithFourBits(const Call& call);

// (x1, x2, x1Scale, x2Scale, yScale?, x1Offset?, x2Offset?, yOffset, bias?, transposeX1,
// transposeX2, groupSize, out) of such a call: ((x1 - 8) @ (x2 * x2Scale) + yOffset) * x1Scale
std::unique_ptr<Kernel> BindSplitBytes(const Call& call);

}  // namespace acltape::opapi
