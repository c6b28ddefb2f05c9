// The element type in which PyTorch computes a binary operation, from its operands' types.
#pragma once

#include "analyzer/lowering/lowering.h"

namespace acltape::analyzer::lowering {

// The common type of two element types, as in torch.promote_types.
storage::DType PromoteTypes(storage::DType a, storage::DType b);

// The common type of two tensors, as in torch.result_type. An operand with dimensions wins over one
// without, unless the latter is of a higher category (bool < integer < floating < complex).
storage::DType ResultType(const storage::Layout& a, const storage::Layout& b);

bool IsFloating(storage::DType dtype);
bool IsIntegral(storage::DType dtype, bool with_bool);

}  // namespace acltape::analyzer::lowering
