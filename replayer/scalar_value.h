// An aclScalar as its bytes: element type and value.
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
  std::array<uint8_t, 16> bytes{};  // the first ones, as many as the type has
};

// The ACL element type; ACL_DT_UNDEFINED where there is none.
aclDataType AclType(storage::DType dtype);
// The ACL format of a name ("NCHW"); ND for an empty one, UNDEFINED for an unknown one.
aclFormat AclFormat(const std::string& name);

// float16 and bfloat16 as float.
float HalfToFloat(uint16_t bits);
float BfloatToFloat(uint16_t bits);

ScalarValue ScalarOf(int64_t value);
ScalarValue ScalarOf(double value);
ScalarValue ScalarOf(bool value);
// A recorded scalar: `integer` is the value, or of a real type the bits of the value as a double;
// of a complex type the parts are `reals`. Undefined type where `dtype` is unknown.
ScalarValue RecordedScalar(storage::DType dtype, int64_t integer, const std::vector<double>& reals);

}  // namespace acltape::replayer
