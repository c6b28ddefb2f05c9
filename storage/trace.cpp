#include "storage/trace.h"

#include <algorithm>
#include <array>
#include <utility>

namespace acltape::storage {
namespace {

constexpr std::array<std::string_view, kValueKinds> kValueKindNames = {
    "none",          "tensor",   "tensor_list", "int",       "real",   "bool",
    "text",          "int_list", "real_list",   "bool_list", "dtype",  "device",
    "memory_format", "layout",   "complex",     "other",     "scalar", "scalar_list"};

constexpr std::array<std::string_view, kSeverities> kSeverityNames = {"info", "notice", "data_loss",
                                                                      "error"};

}  // namespace

int64_t Layout::ElementCount() const {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

int64_t Layout::EndByte() const {
  if (ElementCount() == 0) return byte_offset;
  int64_t last = 0;
  for (size_t d = 0; d < shape.size() && d < strides.size(); ++d) {
    last += (shape[d] - 1) * strides[d];
  }
  return byte_offset + (last + 1) * DTypeBytes(dtype);
}

bool Layout::IsDense() const {
  if (ElementCount() <= 1) return true;
  if (strides.size() != shape.size()) return false;
  std::vector<std::pair<int64_t, int64_t>> dimensions;  // stride, size
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1) dimensions.emplace_back(strides[d], shape[d]);
  }
  std::sort(dimensions.begin(), dimensions.end());
  int64_t expected = 1;
  for (const auto& [stride, size] : dimensions) {
    if (stride != expected) return false;
    expected *= size;
  }
  return true;
}

std::string_view ValueKindName(ValueKind kind) {
  const auto index = static_cast<size_t>(kind);
  return index < kValueKindNames.size() ? kValueKindNames[index] : "other";
}

std::string_view SeverityName(Severity severity) {
  const auto index = static_cast<size_t>(severity);
  return index < kSeverityNames.size() ? kSeverityNames[index] : "error";
}

}  // namespace acltape::storage
