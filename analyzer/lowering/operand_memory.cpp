#include "analyzer/lowering/operand_memory.h"

#include <stdexcept>
#include <string>

namespace acltape::analyzer::lowering {

void OperandMemory::ThrowWrongKind(Kind is, Kind asked) {
  constexpr const char* kNames[] = {"no memory", "a buffer", "a temporary", "a block"};
  throw std::logic_error(std::string("an operand lies in ") + kNames[static_cast<size_t>(is)] +
                         ", where " + kNames[static_cast<size_t>(asked)] + " is expected");
}

}  // namespace acltape::analyzer::lowering
