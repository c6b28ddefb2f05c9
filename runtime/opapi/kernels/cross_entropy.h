// The cross entropy of scores and classes in one operator, with the logarithms of the chances that
// its gradient needs.
#pragma once

#include "runtime/opapi/engine/kernel_table.h"

namespace acltape::opapi {

std::unique_ptr<Kernel> BindCrossEntropyLoss(const Call& call);
std::unique_ptr<Kernel> BindCrossEntropyLossGrad(const Call& call);

}  // namespace acltape::opapi
