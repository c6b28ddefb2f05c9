// The value of an aclScalar as its element type and bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "storage/trace.h"

namespace acltape::replayer {

struct ScalarValue {
  aclDataType dtype = ACL_INT64;
  std::array<uint8_t, 16> bytes{};  // the first bytes hold the value
};

// Returns the ACL element type, or ACL_DT_UNDEFINED if there is none.
aclDataType AclType(storage::DType dtype);
// Returns the ACL format with this name, such as "NCHW". An empty name gives ND, an unknown one
// UNDEFINED.
aclFormat AclFormat(const std::string& name);

// Convert float16 and bfloat16 to float.
float HalfToFloat(uint16_t bits);
float BfloatToFloat(uint16_t bits);

ScalarValue ScalarOf(int64_t value);
ScalarValue ScalarOf(double value);
ScalarValue ScalarOf(bool value);
// Converts a recorded scalar. `integer` is the value. For a real type it holds the bits of the
// value as a double. For a complex type `reals` holds both parts. The type is undefined if `dtype`
// is unknown.
ScalarValue RecordedScalar(storage::DType dtype, int64_t integer, const std::vector<double>& reals);

}  // namespace acltape::replayer
