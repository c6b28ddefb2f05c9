// Converts the content of one tensor to the memory order and element type of another tensor.
#pragma once

#include <string>
#include <vector>

#include "replayer/values/contents.h"

namespace acltape::replayer::against {

// Returns the reason why a content of layout `from` cannot be converted to layout `to`; empty if it
// can. The shapes must be equal. Different element types must both be real numbers.
std::string WhyNotConvertible(const storage::Layout& from, const storage::Layout& to);

// Contents are in order of address if the layout is dense, else in row-major order. Numbers are
// rounded to the nearest, ties to even, as a cast does.
Bytes Convert(const storage::Layout& from, const Bytes& content, const storage::Layout& to);

// Returns the elements in row-major order.
std::vector<uint8_t> RowMajorOf(const storage::Layout& layout, const std::vector<uint8_t>& content);

}  // namespace acltape::replayer::against
