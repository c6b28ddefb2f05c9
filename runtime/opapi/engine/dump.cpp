#include "runtime/opapi/engine/dump.h"

#include <cstdio>
#include <cstring>

#include "runtime/opapi/base/dtype.h"
#include "runtime/opapi/base/objects.h"

namespace acltape::opapi {
namespace {

using acl::ArgInfo;
using acl::ArgKind;
using acl::ArgValue;
using acl::Direction;

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + "\"";
}

std::string RealText(double value) {
  if (value != value || value - value != 0) {  // JSON has neither NaN nor infinities
    char name[32];
    std::snprintf(name, sizeof(name), "\"%g\"", value);
    return name;
  }
  char text[40];
  std::snprintf(text, sizeof(text), "%.17g", value);
  return text;
}

template <typename Values, typename Text>
std::string ListText(const Values& values, const Text& text) {
  std::string list;
  for (const auto& value : values) list += (list.empty() ? "" : ", ") + text(value);
  return "[" + list + "]";
}

std::string IntText(int64_t value) { return std::to_string(value); }

template <typename T>
double ScalarAs(const aclScalar& scalar) {
  T value;
  std::memcpy(&value, scalar.bytes, sizeof(value));
  return static_cast<double>(value);
}

// The type says when a value has another form than a C number.
std::string ScalarText(const aclScalar* scalar) {
  if (scalar == nullptr) return "null";
  switch (scalar->dtype) {
    case ACL_FLOAT:
      return RealText(ScalarAs<float>(*scalar));
    case ACL_DOUBLE:
      return RealText(ScalarAs<double>(*scalar));
    case ACL_INT64:
      return RealText(ScalarAs<int64_t>(*scalar));
    case ACL_INT32:
      return RealText(ScalarAs<int32_t>(*scalar));
    case ACL_BOOL:
      return scalar->bytes[0] != 0 ? "true" : "false";
    default:
      return Quoted("of type " + std::to_string(static_cast<int>(scalar->dtype)));
  }
}

std::string TensorText(std::string_view name, const aclTensor& tensor) {
  return "{\"name\": " + Quoted(name) + ", \"data_type\": " + std::to_string(tensor.dtype) +
         ", \"format\": " + std::to_string(tensor.format) +
         ", \"shape\": " + ListText(tensor.sizes, IntText) +
         ", \"strides\": " + ListText(tensor.strides, IntText) + "}";
}

template <typename T>
const T* Object(const ArgValue& value) {
  return static_cast<const T*>(value.pointer);
}

std::string AttributeText(const ArgInfo& arg, const ArgValue& value) {
  switch (arg.kind) {
    case ArgKind::kScalar:
      return ScalarText(Object<aclScalar>(value));
    case ArgKind::kScalarList:
      return value.pointer == nullptr ? "null"
                                      : ListText(Object<aclScalarList>(value)->scalars, ScalarText);
    case ArgKind::kIntArray:
      return value.pointer == nullptr ? "null"
                                      : ListText(Object<aclIntArray>(value)->values, IntText);
    case ArgKind::kFloatArray:
      return value.pointer == nullptr ? "null"
                                      : ListText(Object<aclFloatArray>(value)->values, RealText);
    case ArgKind::kBoolArray:
      return value.pointer == nullptr ? "null"
                                      : ListText(Object<aclBoolArray>(value)->values, IntText);
    case ArgKind::kString:
      return value.pointer == nullptr ? "null" : Quoted(Object<char>(value));
    case ArgKind::kBool:
      return value.integer != 0 ? "true" : "false";
    case ArgKind::kFloat:
    case ArgKind::kDouble:
      return RealText(value.real);
    default:
      return std::to_string(value.integer);
  }
}

// Calls `take(tensor, info)` for each tensor of the call.
template <typename Take>
void EachTensor(const acl::OperatorInfo& op, const ArgValue* args, const Take& take) {
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    if (args[i].pointer == nullptr) continue;
    if (op.args[i].kind == ArgKind::kTensor) take(Object<aclTensor>(args[i]), op.args[i]);
    if (op.args[i].kind != ArgKind::kTensorList) continue;
    for (const aclTensor* member : Object<aclTensorList>(args[i])->tensors) {
      if (member != nullptr) take(member, op.args[i]);
    }
  }
}

std::string ArgumentsText(const acl::OperatorInfo& op, const ArgValue* args) {
  std::string inputs, outputs, attributes;
  const auto add = [](std::string* list, const std::string& text) {
    *list += (list->empty() ? "" : ", ") + text;
  };
  EachTensor(op, args, [&](const aclTensor* tensor, const ArgInfo& arg) {
    const std::string text = TensorText(arg.name, *tensor);
    if (arg.direction != Direction::kOut) add(&inputs, text);
    if (arg.direction != Direction::kIn) add(&outputs, text);
  });
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    if (op.args[i].kind == ArgKind::kTensor || op.args[i].kind == ArgKind::kTensorList) continue;
    add(&attributes, "{\"name\": " + Quoted(op.args[i].name) +
                         ", \"value\": " + AttributeText(op.args[i], args[i]) + "}");
  }
  return "{\"op_name\": " + Quoted(op.name) + ", \"inputs\": [" + inputs + "], \"outputs\": [" +
         outputs + "], \"attributes\": [" + attributes + "]}";
}

}  // namespace

DumpedCall::DumpedCall(const acl::OperatorInfo& op, const ArgValue* args, uint32_t what) : op_(op) {
  if ((what & kSoftDumpsArguments) != 0) arguments_ = ArgumentsText(op, args);
  if ((what & kSoftDumpsTensors) == 0) return;
  EachTensor(op, args, [this](const aclTensor* tensor, const ArgInfo& arg) {
    AddTensor(tensor, arg.direction);
  });
}

void DumpedCall::AddTensor(const aclTensor* tensor, Direction direction) {
  const std::vector<int64_t>& sizes = shapes_.emplace_back(tensor->sizes);
  const std::vector<int64_t>& strides = shapes_.emplace_back(tensor->strides);
  const size_t item = ItemSize(tensor->dtype);
  const auto skipped = tensor->offset * static_cast<int64_t>(item);
  const char* first =
      tensor->address == nullptr ? nullptr : static_cast<const char*>(tensor->address) + skipped;
  SoftTensor row{sizes.data(),   strides.data(), sizes.size(), tensor->dtype,
                 tensor->format, item,           first,        false};
  if (direction != Direction::kOut) tensors_.push_back(row);
  row.is_output = true;
  if (direction != Direction::kIn) tensors_.push_back(row);
}

// Names of the table are literals, so they end with a zero byte.
void DumpedCall::Before() const {
  if (!arguments_.empty()) SoftDumpArguments(op_.name.data(), arguments_.c_str());
  if (!tensors_.empty()) SoftDumpTensors(op_.name.data(), tensors_.data(), tensors_.size(), false);
}

void DumpedCall::After() const {
  if (!tensors_.empty()) SoftDumpTensors(op_.name.data(), tensors_.data(), tensors_.size(), true);
}

}  // namespace acltape::opapi
