#include "replayer/device/lowered_scalar.h"

#include <algorithm>

namespace acltape::replayer {

using analyzer::lowering::LoweredValue;
using storage::ValueKind;

ScalarValue ScalarOfLowered(const LoweredValue& value) {
  switch (value.kind) {
    case ValueKind::kScalar:
      return RecordedScalar(storage::DTypeFromName(value.text), value.integer, value.reals);
    case ValueKind::kReal:
      return ScalarOf(value.real);
    case ValueKind::kBool:
      return ScalarOf(value.integer != 0);
    case ValueKind::kInt:
      return ScalarOf(value.integer);
    default:
      break;
  }
  ScalarValue none;
  none.dtype = ACL_DT_UNDEFINED;
  return none;
}

// The text of the list names the type of each integer, such as "float32,int64".
std::vector<ScalarValue> ScalarsOfLowered(const LoweredValue& list) {
  std::vector<ScalarValue> scalars;
  size_t begin = 0;
  for (const int64_t integer : list.integers) {
    const size_t end = std::min(list.text.find(',', begin), list.text.size());
    LoweredValue scalar;
    scalar.kind = ValueKind::kScalar;
    scalar.text = list.text.substr(begin, end - begin);
    scalar.integer = integer;
    scalars.push_back(ScalarOfLowered(scalar));
    begin = std::min(end + 1, list.text.size());
  }
  return scalars;
}

}  // namespace acltape::replayer
