// Values of arguments as text for messages. Equal texts of one kind are equal values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/trace.h"

namespace acltape::analyzer {

std::string ListText(const std::vector<int64_t>& values);  // "[4, 1, 32]"
// The value of the argument. For tensors it is only the kind.
std::string ValueText(const storage::ArgumentValue& argument);

// The same for messages: a long list is its first values and how many it has.
std::string ShortValueText(const storage::ArgumentValue& argument);

}  // namespace acltape::analyzer
