// Contents of one tensor brought into the memory order and element type of another.
#pragma once

#include <string>
#include <vector>

#include "replayer/contents.h"

namespace acltape::replayer {

// Why contents of one layout cannot take the place of the other's; empty when they can: shapes have
// to agree, and element types that differ have to be numbers without an imaginary part.
std::string WhyNotConvertible(const storage::Layout& from, const storage::Layout& to);

// Contents here are in order of address where the layout is dense, row-major where not. Numbers are
// rounded to the nearest, ties to even, as a cast does.
Bytes Convert(const storage::Layout& from, const Bytes& content, const storage::Layout& to);

// The elements in row-major order.
std::vector<uint8_t> RowMajorOf(const storage::Layout& layout, const std::vector<uint8_t>& content);

}  // namespace acltape::replayer
