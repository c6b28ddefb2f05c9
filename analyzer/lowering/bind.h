// Evaluates a rule's expressions for one recorded call.
#pragma once

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "analyzer/lowering/lowering.h"
#include "analyzer/lowering/pattern.h"

namespace acltape::analyzer {

// The conditions of rules that are for each element of a list, and for leaves that ran on a device.
constexpr std::string_view kEach = "each";
constexpr std::string_view kDevice = "device";

// Whether `when` of a rule row has this condition.
bool Asks(std::string_view when, std::string_view condition);

// The rule does not fit these arguments; the text says why.
class CannotBind : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Binds the patterns of one leaf; collects invocations and temporaries.
class Binder {
 public:
  Binder(const Program& program, const Leaf& leaf) : program_(program), leaf_(leaf) {}

  // Appends the call, after the calls that its operands needed.
  void Bind(const CallPattern& pattern, Lowering* lowering);

  // Whether the conditions of a rule row hold (grammar in rules.h).
  bool Holds(std::string_view when) const;

  // For the condition "each": the number of tensors in self, and from now on names of lists stand
  // for their element of this index.
  size_t ElementCount() const;
  // What calls of the rule share is shared within an element.
  void TakeElement(size_t index) {
    element_ = index;
    shared_.clear();
  }

  LoweredValue Evaluate(const Expression& expression);
  // The recorded argument or result; none when the call has none of this name.
  LoweredValue Named(std::string_view name) const;
  // The first tensor that the call writes.
  LoweredTensor Result() const;
  // A contiguous tensor in fresh memory that lives as long as the calls of this leaf.
  LoweredTensor Temporary(storage::DType dtype, std::vector<int64_t> shape);
  // The same, but calls of one rule that give the same name get the same memory.
  LoweredTensor Shared(const std::string& name, storage::DType dtype, std::vector<int64_t> shape);
  // Puts a call before the one being bound.
  void Before(Invocation invocation);

 private:
  bool HoldsOne(std::string_view condition) const;

  const Program& program_;
  const Leaf& leaf_;
  Lowering* lowering_ = nullptr;
  std::optional<size_t> element_;
  std::map<std::string, LoweredTensor> shared_;
};

// Whether bind.cpp has a function of this name; for the tests of the tables.
bool IsBindFunction(std::string_view name);

}  // namespace acltape::analyzer
