#include "storage/blocked_format.h"

#include <charconv>
#include <string_view>

namespace acltape::storage {
namespace {

constexpr std::string_view kName = "FRACTAL_NZ of ", kBy = " by ";
constexpr size_t kMostDims = 16;

std::string ListText(const std::vector<int64_t>& numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
  }
  return text + "]";
}

std::vector<int64_t> RowMajor(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) {
    if (__builtin_mul_overflow(strides[i], sizes[i], &strides[i - 1])) return {};
  }
  return strides;
}

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool TakeList(std::string_view& text, std::vector<int64_t>& numbers) {
  if (!TakePrefix(text, "[")) return false;
  while (numbers.size() < kMostDims) {
    int64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc() || number < 0) return false;
    numbers.push_back(number);
    text.remove_prefix(static_cast<size_t>(read.ptr - text.data()));
    if (TakePrefix(text, "]")) return true;
    if (!TakePrefix(text, ", ")) return false;
  }
  return false;
}

}  // namespace

std::string BlockedFormat(const BlockedView& view) {
  std::string text = std::string(kName) + ListText(view.sizes);
  if (view.strides != RowMajor(view.sizes)) text += std::string(kBy) + ListText(view.strides);
  return text;
}

std::optional<BlockedView> ParseBlockedFormat(const std::string& format) {
  std::string_view text = format;
  BlockedView view;
  if (!TakePrefix(text, kName) || !TakeList(text, view.sizes)) return std::nullopt;
  if (text.empty()) {
    view.strides = RowMajor(view.sizes);
  } else if (!TakePrefix(text, kBy) || !TakeList(text, view.strides) || !text.empty()) {
    return std::nullopt;
  }
  if (view.strides.size() != view.sizes.size()) return std::nullopt;
  return view;
}

}  // namespace acltape::storage
