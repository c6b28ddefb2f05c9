// Leaves of a trace as the rows of a torch.fx graph: what torch.fx prints with print_tabular, but
// from a recording instead of a symbolic trace. Nodes are named like torch.fx names them ("add",
// "add_1"); an argument is the name of the node that produced the tensor.
//
// A tensor that no picked leaf produced becomes a `get_attr` row when the recorder marked it as a
// parameter and a `placeholder` row otherwise. An in-place call is the producer of what it wrote
// from then on. The `output` row lists the nodes that no later picked leaf uses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/reader.h"

namespace acltape::cli {

struct FxNode {
  int64_t call_id = 0;  // 0: not a call
  std::string opcode;   // placeholder, get_attr, call_function, output
  std::string name;
  std::string target;  // op with overload; of an input its buffer ("buffer:12")
  std::string args;
  std::string kwargs;
  std::string result;  // "float32[2, 3]"; several returns joined with ", "
};

std::vector<FxNode> BuildFxGraph(const storage::Reader& reader,
                                 const std::vector<storage::Call>& leaves);

}  // namespace acltape::cli
