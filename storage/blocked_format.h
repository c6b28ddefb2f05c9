// The format of a layout whose tensor lies in blocks. The layout is that of the blocks in memory;
// the format's text holds the view, a matrix, that the program described: "FRACTAL_NZ of [33, 50]",
// or, where the view is not row-major, "FRACTAL_NZ of [50, 33] by [1, 50]", sizes and strides.
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

std::string BlockedFormat(const BlockedView& view);
// Nothing when the text is no such format.
std::optional<BlockedView> ParseBlockedFormat(const std::string& format);

}  // namespace acltape::storage
