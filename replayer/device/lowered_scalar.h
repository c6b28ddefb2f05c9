// Converts scalars of lowered calls to the bytes that an aclScalar takes.
#pragma once

#include <vector>

#include "analyzer/lowering/lowering.h"
#include "replayer/device/scalar_value.h"

namespace acltape::replayer {

// Converts a number, a boolean or a recorded scalar. The element type is undefined for any other
// value, and for a recorded scalar whose type the ACL interface lacks.
ScalarValue ScalarOfLowered(const analyzer::lowering::LoweredValue& value);
// Converts the elements of a recorded list of scalars.
std::vector<ScalarValue> ScalarsOfLowered(const analyzer::lowering::LoweredValue& list);

}  // namespace acltape::replayer
