#include "analyzer/calls/value_text.h"

#include <cstdio>
#include <cstdlib>

namespace acltape::analyzer {
namespace {

using storage::ValueKind;

std::string RealText(double value) {  // the shortest digits that give the value again
  char text[40];
  for (const int digits : {6, 15, 17}) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, nullptr) == value) break;
  }
  return text;
}

std::string RealsText(const std::vector<double>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += (i == 0 ? "" : ", ") + RealText(values[i]);
  return text + "]";
}

}  // namespace

std::string ListText(const std::vector<int64_t>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  }
  return text + "]";
}

std::string ValueText(const storage::ArgumentValue& argument) {
  switch (argument.kind) {
    case ValueKind::kNone:
      return "none";
    case ValueKind::kInt:
    case ValueKind::kMemoryFormat:
    case ValueKind::kLayout:
      return std::to_string(argument.integer);
    case ValueKind::kBool:
      return argument.integer != 0 ? "true" : "false";
    case ValueKind::kReal:
      return RealText(argument.real);
    case ValueKind::kText:
    case ValueKind::kDevice:
    case ValueKind::kOther:
      return argument.text;
    case ValueKind::kDtype:
      return std::string(DTypeName(static_cast<storage::DType>(argument.integer)));
    case ValueKind::kIntList:
    case ValueKind::kBoolList:
      return ListText(argument.integers);
    case ValueKind::kRealList:
    case ValueKind::kComplex:
      return RealsText(argument.reals);
    case ValueKind::kScalar:
      if (!argument.reals.empty()) return argument.text + " " + RealsText(argument.reals);
      return argument.text + " " +
             (argument.text.find("float") != std::string::npos ? RealText(argument.real)
                                                               : std::to_string(argument.integer));
    case ValueKind::kScalarList:
      return argument.text + " " + ListText(argument.integers);
    default:
      return std::string(ValueKindName(argument.kind));
  }
}

}  // namespace acltape::analyzer
