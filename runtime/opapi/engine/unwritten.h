// Kernels that make a result of memory that nothing wrote.
//
// With the setting `poison` new memory has all bits set: a NaN that no arithmetic makes of numbers.
// A kernel is reported whose floating inputs hold such elements when it runs, and which has made a
// NaN of them, or a result that is no float. What a mask or an index leaves out of the result is
// therefore no finding, nor are copies and joins, which pass elements on.
#pragma once

#include <memory>

#include "runtime/opapi/engine/call.h"
#include "runtime/opapi/engine/kernel.h"

namespace acltape::opapi {

// The kernel with the look at its inputs and outputs around it. `call` is the one it was bound to.
std::unique_ptr<Kernel> WithWatchedReads(const Call& call, std::unique_ptr<Kernel> kernel);

}  // namespace acltape::opapi
