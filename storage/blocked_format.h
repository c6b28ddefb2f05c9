// The formats of layouts that are those of the memory and not of the view that the program
// described. The format's text holds the view.
//
// A matrix in blocks: "FRACTAL_NZ of [33, 50]", or, where the view is not row-major, "FRACTAL_NZ of
// [50, 33] by [1, 50]", sizes and strides. The layout is that of the blocks.
// Integers of 4 bits: "INT4 of [33, 50]", or "INT4 of [50, 33] by [1, 50] from 1", where one
// integer lies in front of the first one in its byte. The layout is that of the bytes, each of
// which holds two.
// Both together: "INT4 in FRACTAL_NZ of [33, 50]", with the layout of the blocks, whose columns are
// bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace acltape::storage {

struct BlockedView {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // elements of the matrix
};

struct FourBitView {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // integers
  int64_t offset = 0;            // integers in front of the first one in its byte: 0 or 1
};

std::string BlockedFormat(const BlockedView& view);
std::string FourBitFormat(const FourBitView& view);
std::string FourBitBlocksFormat(const BlockedView& view);
// Nothing when the text is no such format.
std::optional<BlockedView> ParseBlockedFormat(const std::string& format);
std::optional<FourBitView> ParseFourBitFormat(const std::string& format);
std::optional<BlockedView> ParseFourBitBlocksFormat(const std::string& format);

}  // namespace acltape::storage
