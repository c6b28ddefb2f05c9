#include "tests/opapi/options_census.h"

namespace acltape::opapi {
namespace {

constexpr size_t kMostValues = 64;

// The value as the table of options writes it; empty for what is no plain value.
std::string ValueOf(const Arg& arg) {
  if (const auto* flag = std::get_if<bool>(&arg)) return *flag ? "true" : "false";
  if (const auto* value = std::get_if<int>(&arg)) return std::to_string(*value);
  if (const auto* value = std::get_if<int64_t>(&arg)) return std::to_string(*value);
  if (const auto* text = std::get_if<const char*>(&arg)) return *text != nullptr ? *text : "";
  if (const auto* number = std::get_if<at::Scalar>(&arg)) {
    if (number->isBoolean()) return number->toBool() ? "true" : "false";
    if (number->isIntegral(/*includeBool=*/false)) return std::to_string(number->toLong());
  }
  return "";
}

bool IsGiven(const Arg& arg) {
  if (std::holds_alternative<Null>(arg)) return false;
  if (const auto* tensor = std::get_if<at::Tensor>(&arg)) return tensor->defined();
  if (const auto* list = std::get_if<std::vector<at::Tensor>>(&arg)) return !list->empty();
  if (const auto* list = std::get_if<std::vector<at::Scalar>>(&arg)) return !list->empty();
  if (const auto* list = std::get_if<std::vector<int64_t>>(&arg)) return !list->empty();
  if (const auto* text = std::get_if<const char*>(&arg)) return *text != nullptr;
  return true;
}

}  // namespace

OptionsCensus& Census() {
  static OptionsCensus census;
  return census;
}

void CountOptions(const char* name, const Args& args) {
  OperatorUse& use = Census()[name];
  use.last_call = args;
  std::vector<OptionUse>& uses = use.arguments;
  uses.resize(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    (IsGiven(args[i]) ? uses[i].given : uses[i].left_out) = true;
    const std::string value = ValueOf(args[i]);
    if (!value.empty() && uses[i].values.size() < kMostValues) uses[i].values.insert(value);
  }
}

}  // namespace acltape::opapi
