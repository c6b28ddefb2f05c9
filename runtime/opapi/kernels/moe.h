// Operators around the products of experts: which experts a token goes to (gating), the tokens in
// the order of their experts (routing), and the way back.
#pragma once

#include "runtime/opapi/engine/kernel_table.h"

namespace acltape::opapi {

KernelRows MoeGatingRows();
KernelRows MoeRoutingRows();

}  // namespace acltape::opapi
