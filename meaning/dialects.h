// The dialects: the interfaces to which recorded operators belong. The recorder writes a code, a
// trace keeps the name. Neither is ever given another meaning.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace acltape::meaning {

struct DialectRow {
  std::string_view name;
  bool is_operator;  // a replay executes its calls
  bool is_acl;       // its calls are those of the ACL interface
};

// The place of a row is the dialect's code in records (recorder/wire/records.h).
inline constexpr DialectRow kDialects[] = {
    {"aten", true, false},     {"aclnn", true, true},      {"aclrt", false, true},
    {"aclmdlRI", false, true}, {"autograd", false, false}, {"inductor", true, false},
    {"hccl", false, true},
};

constexpr bool IsAclDialect(std::string_view name) {
  return std::any_of(std::begin(kDialects), std::end(kDialects),
                     [name](const DialectRow& row) { return row.is_acl && row.name == name; });
}

}  // namespace acltape::meaning
