// The rows of a diff, made from an alignment: one for each pair, group, inserted and deleted call.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "analyzer/diff/alignment.h"
#include "analyzer/diff/diff.h"

namespace acltape::analyzer::diff {

// A row with its nodes. The last node of each side gives the results.
struct RowNodes {
  std::array<std::vector<int32_t>, 2> nodes;
  int32_t last(int side) const { return nodes[side].empty() ? -1 : nodes[side].back(); }
};

struct DiffRows {
  std::vector<DiffRow> rows;
  std::vector<RowNodes> nodes;                 // by row
  std::array<std::vector<int32_t>, 2> row_of;  // by side and node
};

DiffRows MakeRows(const Flow& a, const Flow& b, const Alignment& alignment);

}  // namespace acltape::analyzer::diff
