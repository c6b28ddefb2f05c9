// Evaluates a rule's expressions for one recorded call.
#pragma once

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "analyzer/lowering/lowering.h"
#include "analyzer/lowering/pattern.h"

namespace acltape::analyzer::lowering {

// The conditions of rules for each element of a list, and of rules for leaves that ran on a device.
constexpr std::string_view kEach = "each";
constexpr std::string_view kDevice = "device";

// True if `when` of a rule row has this condition.
bool Asks(std::string_view when, std::string_view condition);

// The rule does not fit these arguments. The text says why.
class CannotBind : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Binds the patterns of one leaf, and collects invocations and temporaries.
class Binder {
 public:
  Binder(const Program& program, const Leaf& leaf) : program_(program), leaf_(leaf) {}

  // Appends the call, after the calls that its operands need.
  void Bind(const CallPattern& pattern, Lowering* lowering);

  // True if the conditions of a rule row hold (grammar in rules.h).
  bool Holds(std::string_view when) const;

  // The number of tensors in self, for the condition "each".
  size_t ElementCount() const;
  // From now on, names of lists mean their element of this index. Memory that the rule's calls
  // share is shared within this element only.
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
  // A temporary as above, but calls of one rule that give the same name get the same memory.
  LoweredTensor Shared(const std::string& name, storage::DType dtype, std::vector<int64_t> shape);
  // Puts a call before the one that is being bound.
  void Before(Invocation invocation);

 private:
  bool HoldsOne(std::string_view condition) const;

  const Program& program_;
  const Leaf& leaf_;
  Lowering* lowering_ = nullptr;
  std::optional<size_t> element_;
  std::map<std::string, LoweredTensor> shared_;
};

// True if the rules' language has a function of this name. For the tests of the tables.
bool IsBindFunction(std::string_view name);

}  // namespace acltape::analyzer::lowering
