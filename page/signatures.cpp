#include "page/signatures.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analyzer/calls/acl_calls.h"
#include "analyzer/calls/value_text.h"
#include "meaning/dialects.h"
#include "page/rows.h"

namespace acltape::page {
namespace {

constexpr size_t kMostArgumentBytes = 48
                                      << 20;  // limit of all signatures, before they are compressed
constexpr size_t kMostTextBytes = 400;        // limit of one argument
constexpr size_t kMostListed = 6;             // tensors of a list

bool IsRowMajor(const storage::Layout& layout) {
  int64_t stride = 1;
  for (size_t d = layout.shape.size(); d-- > 0;) {
    if (layout.shape[d] != 1 && layout.strides[d] != stride) return false;
    stride *= std::max<int64_t>(layout.shape[d], 1);
  }
  return true;
}

// True if a call gives the stream that it names something to do. Unknown functions may.
bool PutsWork(const storage::Op& op) {
  if (!meaning::IsAclDialect(op.dialect)) return false;
  const analyzer::AclFunction& function = analyzer::FindAclFunction(op.name);
  if (function.name.empty() || function.kind == analyzer::AclCallKind::kUnknown) return true;
  return analyzer::IsStreamTask(function.kind) || analyzer::IsDeviceWork(function.kind) ||
         analyzer::IsExecution(function.kind);
}

std::string ArgumentText(const storage::Reader& trace, const storage::SignatureArgument& argument) {
  if (!argument.HoldsTensors()) {
    std::string text = analyzer::ValueText(argument);
    if (text.size() > kMostTextBytes) text = text.substr(0, kMostTextBytes) + " ...";
    return text;
  }
  std::string text;
  for (size_t i = 0; i < argument.tensors.size(); ++i) {
    if (i == kMostListed) {
      text += fmt::format(" ... {} in all", argument.tensors.size());
      break;
    }
    if (i > 0) text += ", ";
    const int64_t layout = argument.tensors[i].layout_id;
    text += layout == 0 ? "undefined" : TensorText(trace.GetLayout(layout));
  }
  return argument.kind == storage::ValueKind::kTensorList ? "[" + text + "]" : text;
}

}  // namespace

std::string TensorText(const storage::Layout& layout) {
  std::string text(storage::DTypeName(layout.dtype));
  text += analyzer::ListText(layout.shape);
  if (layout.strides.size() == layout.shape.size() && !IsRowMajor(layout)) {
    text += " strides " + analyzer::ListText(layout.strides);
  }
  if (!layout.format.empty()) text += " " + layout.format;
  return text;
}

int64_t Signatures::NumberOf(int64_t signature_id, int64_t op_id) {
  const auto [place, added] =
      numbers_.emplace(signature_id, static_cast<int64_t>(signatures_.size()));
  if (added) {
    const auto [op, new_op] = op_numbers_.emplace(op_id, static_cast<int64_t>(ops_.size()));
    if (new_op) ops_.push_back(op_id);
    signatures_.emplace_back(signature_id, op->second);
  }
  return place->second;
}

std::string Signatures::Json() const {
  nlohmann::json ops = nlohmann::json::array();
  for (const int64_t op_id : ops_) {
    const storage::Op& op = trace_.GetOp(op_id);
    ops.push_back({op.FullName(), op.dialect, PutsWork(op) ? 1 : 0});
  }
  // Written by hand in part: a tree of JSON values of all signatures would take several times the
  // memory of its text.
  std::string text = "{\"ops\":" + TextOf(ops) + ",\"signatures\":[";
  size_t bare = 0;
  for (size_t i = 0; i < signatures_.size(); ++i) {
    const auto& [signature_id, op] = signatures_[i];
    nlohmann::json arguments = nlohmann::json::array();
    if (text.size() < kMostArgumentBytes) {
      for (const storage::SignatureArgument& argument : trace_.SignatureArguments(signature_id)) {
        arguments.push_back(
            {argument.name, static_cast<int>(argument.direction), ArgumentText(trace_, argument)});
      }
    } else {
      ++bare;
    }
    text += fmt::format("{}[{},{}]", i == 0 ? "" : ",", op, TextOf(arguments));
  }
  return text + fmt::format("],\"without_arguments\":{}}}", bare);
}

}  // namespace acltape::page
