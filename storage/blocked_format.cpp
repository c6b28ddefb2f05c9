#include "storage/blocked_format.h"

#include <charconv>
#include <string_view>

namespace acltape::storage {
namespace {

constexpr std::string_view kBlocks = "FRACTAL_NZ of ", kFourBits = "INT4 of ", kBy = " by ";
constexpr std::string_view kFromOne = " from 1", kFourBitBlocks = "INT4 in FRACTAL_NZ of ";
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

std::string ViewText(std::string_view name, const std::vector<int64_t>& sizes,
                     const std::vector<int64_t>& strides) {
  std::string text = std::string(name) + ListText(sizes);
  if (strides != RowMajor(sizes)) text += std::string(kBy) + ListText(strides);
  return text;
}

// Takes what ViewText wrote.
bool TakeView(std::string_view& text, std::string_view name, std::vector<int64_t>& sizes,
              std::vector<int64_t>& strides) {
  if (!TakePrefix(text, name) || !TakeList(text, sizes)) return false;
  if (!TakePrefix(text, kBy)) {
    strides = RowMajor(sizes);
  } else if (!TakeList(text, strides)) {
    return false;
  }
  return strides.size() == sizes.size();
}

std::optional<BlockedView> ParseView(std::string_view text, std::string_view name) {
  BlockedView view;
  if (!TakeView(text, name, view.sizes, view.strides) || !text.empty()) return std::nullopt;
  return view;
}

}  // namespace

std::string BlockedFormat(const BlockedView& view) {
  return ViewText(kBlocks, view.sizes, view.strides);
}

std::string FourBitFormat(const FourBitView& view) {
  std::string text = ViewText(kFourBits, view.sizes, view.strides);
  if (view.offset != 0) text += kFromOne;
  return text;
}

std::string FourBitBlocksFormat(const BlockedView& view) {
  return ViewText(kFourBitBlocks, view.sizes, view.strides);
}

std::optional<BlockedView> ParseBlockedFormat(const std::string& format) {
  return ParseView(format, kBlocks);
}

std::optional<BlockedView> ParseFourBitBlocksFormat(const std::string& format) {
  return ParseView(format, kFourBitBlocks);
}

std::optional<FourBitView> ParseFourBitFormat(const std::string& format) {
  std::string_view text = format;
  FourBitView view;
  if (!TakeView(text, kFourBits, view.sizes, view.strides)) return std::nullopt;
  view.offset = TakePrefix(text, kFromOne) ? 1 : 0;
  if (!text.empty()) return std::nullopt;
  return view;
}

}  // namespace acltape::storage
