#include "acl/invoke/operator_table.h"

#include <algorithm>

#include "generated/acl/operator_rows.h"

namespace acltape::acl {

const OperatorInfo* FindOperator(std::string_view name) {
  const OperatorInfo* end = kOperators + kOperatorCount;
  const OperatorInfo* found = std::lower_bound(
      kOperators, end, name,
      [](const OperatorInfo& row, std::string_view value) { return row.name < value; });
  return found != end && found->name == name ? found : nullptr;
}

const OperatorInfo& OperatorAt(uint32_t index) { return kOperators[index]; }

uint32_t OperatorCount() { return kOperatorCount; }

}  // namespace acltape::acl
