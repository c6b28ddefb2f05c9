// The ends of groups among rows, from a list that a tensor holds.
#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace acltape::opapi {

// The end of each group, from their ends or their lengths. Throws, so that the task fails, where a
// group does not lie within the rows.
inline std::vector<int64_t> GroupEnds(const at::Tensor& groups, bool lengths, int64_t rows) {
  const at::Tensor ends = lengths ? groups.cumsum(0) : groups;
  std::vector<int64_t> result(ends.numel());
  int64_t last = 0;
  for (int64_t g = 0; g < ends.numel(); ++g) {
    result[g] = ends[g].item<int64_t>();
    TORCH_CHECK(result[g] >= last && result[g] <= rows, "group ", g, " ends at ", result[g],
                ", which lies outside of ", last, " to ", rows);
    last = result[g];
  }
  return result;
}

}  // namespace acltape::opapi
