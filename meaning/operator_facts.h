// The types that the tables of operators share (torch_operators.h, acl_operators.h): the resources
// of a device, conditions on the arguments of a call, and names that stand for several operators.
// Standard library alone, because the recorder's plug-in is compiled with it too.
#pragma once

#include <cstdint>
#include <string_view>

namespace acltape::meaning {

// The part of the device that an operator keeps busy. Two operators of one resource do not gain
// from two streams.
enum class Resource : uint8_t { kCube, kVector, kCopy, kCommunication };

// A condition on one argument of a call. Without the name of an argument it always holds.
struct Condition {
  enum class Test : uint8_t {
    kTrue,   // a flag is set: "training" of a normalisation
    kNotOne  // a probability of keeping an element is less than 1
  };
  std::string_view argument = {};
  Test test = Test::kTrue;

  constexpr bool always() const { return argument.empty(); }
};

// True if the pattern stands for the name. A pattern that ends with * stands for every name that
// begins so: "aten::conv*", "c10d::*".
constexpr bool FitsPattern(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return name == pattern;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace acltape::meaning
