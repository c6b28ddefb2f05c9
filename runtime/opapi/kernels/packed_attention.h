// Fused attention of training over sequences of different lengths that follow each other (layout
// TND), forward and backward.
#pragma once

#include "runtime/opapi/engine/kernel_table.h"

namespace acltape::opapi {

KernelRows PackedAttentionRows();

}  // namespace acltape::opapi
