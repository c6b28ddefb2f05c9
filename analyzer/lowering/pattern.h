// The syntax tree of a rule's calls (grammar in rules.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace acltape::analyzer::lowering {

struct Expression {
  enum class Kind : uint8_t { kNone, kName, kFunction, kInt, kReal, kBool, kText };
  Kind kind = Kind::kNone;
  std::string name;  // name of an argument or function, or the text
  int64_t integer = 0;
  double real = 0;
  std::vector<Expression> operands;
};

struct CallPattern {
  std::string op;
  std::vector<Expression> arguments;
};

// Throws std::invalid_argument that quotes the pattern and the place of the error.
std::vector<CallPattern> ParsePattern(std::string_view text);

}  // namespace acltape::analyzer::lowering
