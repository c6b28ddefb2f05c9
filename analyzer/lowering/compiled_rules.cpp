#include "analyzer/lowering/compiled_rules.h"

#include <algorithm>
#include <stdexcept>

#include "analyzer/lowering/rules.h"

namespace acltape::analyzer::lowering {
namespace {

using Kind = Expression::Kind;

Expression Self() {
  Expression self;
  self.kind = Kind::kName;
  self.name = "self";
  return self;
}

bool IsName(const Expression& expression, std::string_view name) {
  return expression.kind == Kind::kName && expression.name == name;
}

// "add_.Tensor" of "add.Tensor".
std::string InPlaceName(std::string_view aten) {
  std::string name(aten);
  name.insert(std::min(name.find('.'), name.size()), "_");
  return name;
}

// aclnnInplaceAdd(self, other, alpha) of aclnnAdd(self, other, alpha, out).
void CallInPlaceOperator(CallPattern* call) {
  constexpr std::string_view kOperatorPrefix = "aclnn";
  call->op.insert(kOperatorPrefix.size(), "Inplace");
  std::erase_if(call->arguments, [](const Expression& each) { return IsName(each, "out"); });
  call->arguments.front() = Self();
}

void WriteSelf(Expression* expression) {
  if (IsName(*expression, "out")) *expression = Self();
  for (Expression& operand : expression->operands) WriteSelf(&operand);
}

// aclnnAbs(self, self) of aclnnAbs(self, out). A copy of self into itself is left out.
void WriteSelf(std::vector<CallPattern>* calls) {
  for (CallPattern& call : *calls) {
    for (Expression& argument : call.arguments) WriteSelf(&argument);
  }
  std::erase_if(*calls, [](const CallPattern& call) {
    return call.op == "aclnnInplaceCopy" && IsName(call.arguments[0], "self") &&
           IsName(call.arguments[1], "self");
  });
}

CompiledRule InPlaceRule(const LoweringRule& row, std::vector<CallPattern> calls) {
  if (row.in_place == InPlace::kIntoSelf) {
    WriteSelf(&calls);
  } else if (calls.size() == 1) {
    CallInPlaceOperator(&calls.front());
  } else {
    throw std::invalid_argument("the lowering rule of " + std::string(row.aten) +
                                " has an in-place operator, but is not one call");
  }
  return {InPlaceName(row.aten), row.when, std::move(calls)};
}

}  // namespace

const std::vector<CompiledRule>& CompiledRules() {
  static const std::vector<CompiledRule> all = [] {
    std::vector<CompiledRule> rules;
    for (const auto& part :
         {MathRules, LayerRules, SpatialRules, DataRules, ListRules, AdapterRules}) {
      for (const LoweringRule& row : part()) {
        std::vector<CallPattern> calls = ParsePattern(row.calls);
        if (row.in_place != InPlace::kNo) rules.push_back(InPlaceRule(row, calls));
        rules.push_back({std::string(row.aten), row.when, std::move(calls)});
      }
    }
    return rules;
  }();
  return all;
}

}  // namespace acltape::analyzer::lowering
