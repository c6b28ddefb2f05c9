// Names and directions of an operator's arguments, read from its schema text
// ("aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)").
//
// Directions: `in` unless the argument is written. A written argument is `out` where its old
// content does not matter (an out= argument after the `*`, or `self` of an operator that only
// overwrites, such as copy_), else `inout`. A few operators write arguments that their schema does
// not mark; they are in a table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "storage/trace.h"

namespace acltape::collector {

struct SchemaArgument {
  int position = 0;
  std::string name;
  storage::Direction direction = storage::Direction::kIn;
};

struct OpSchema {
  // The order is that of the signature bytes: the arguments, then those returns that do not alias a
  // written argument. Positions count the other returns too.
  std::vector<SchemaArgument> values;
};

// Never fails. A schema that cannot be read gives no values; the caller then names the arguments
// arg0, arg1, ...
OpSchema ParseOpSchema(std::string_view op_name, std::string_view schema);

}  // namespace acltape::collector
