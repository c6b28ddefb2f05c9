#include "analyzer/calls/value_text.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "storage/scalar_list.h"

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

// "float64 [0.5 (14 times), 2]"; `dtypes` are separated by commas, and the bits of a real number as
// a double are its integer.
std::string ScalarsText(std::string_view dtypes, const std::vector<int64_t>& values) {
  if (values.empty()) return "[]";
  const storage::ScalarTypes types(dtypes);
  const bool one_type = types.all_equal();
  const auto text_of = [&](size_t i) {
    const std::string_view type = types.Of(i);
    const std::string value = storage::IsRealDtype(type)
                                  ? RealText(std::bit_cast<double>(values[i]))
                                  : std::to_string(values[i]);
    return one_type ? value : std::string(type) + " " + value;
  };
  std::string text = one_type ? std::string(types.Of(0)) + " [" : "[";
  for (size_t i = 0; i < values.size();) {
    const std::string value = text_of(i);
    size_t end = i + 1;
    while (end < values.size() && text_of(end) == value) ++end;
    text += (i == 0 ? "" : ", ") + value;
    if (end - i > 1) text += " (" + std::to_string(end - i) + " times)";
    i = end;
  }
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
             (storage::IsRealDtype(argument.text) ? RealText(argument.real)
                                                  : std::to_string(argument.integer));
    case ValueKind::kScalarList:
      return ScalarsText(argument.text, argument.integers);
    default:
      return std::string(ValueKindName(argument.kind));
  }
}

std::string ShortValueText(const storage::ArgumentValue& argument) {
  constexpr size_t kFirstValues = 4;
  const size_t count = std::max(argument.integers.size(), argument.reals.size());
  if (count <= kFirstValues) return ValueText(argument);
  const auto all_equal = [](const auto& values) {
    return std::all_of(values.begin(), values.end(),
                       [&](const auto& value) { return value == values.front(); });
  };
  const bool same = all_equal(argument.integers) && all_equal(argument.reals);
  storage::ArgumentValue head = argument;
  head.integers.resize(std::min(same ? 1 : kFirstValues, argument.integers.size()));
  head.reals.resize(std::min(same ? 1 : kFirstValues, argument.reals.size()));
  std::string text = ValueText(head);
  if (text.ends_with(']')) text.pop_back();
  return text + (same ? " (" + std::to_string(count) + " times)]"
                      : ", ... (" + std::to_string(count) + " values)]");
}

}  // namespace acltape::analyzer
