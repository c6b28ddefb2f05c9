// Sums, means and maxima of rows of a table, one for each bag of indices.
#pragma once

#include "runtime/opapi/engine/kernel_table.h"

namespace acltape::opapi {

std::unique_ptr<Kernel> BindEmbeddingBag(const Call& call);

}  // namespace acltape::opapi
