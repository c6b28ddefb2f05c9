// Scalars of lowered calls as the bytes that an aclScalar takes.
#pragma once

#include <vector>

#include "analyzer/lowering/lowering.h"
#include "replayer/scalar_value.h"

namespace acltape::replayer {

// A number, a boolean or a recorded scalar; undefined element type for anything else, and for a
// recorded scalar whose type the ACL interface lacks.
ScalarValue ScalarOfLowered(const analyzer::LoweredValue& value);
// The elements of a recorded list of scalars.
std::vector<ScalarValue> ScalarsOfLowered(const analyzer::LoweredValue& list);

}  // namespace acltape::replayer
