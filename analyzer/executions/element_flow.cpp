#include "analyzer/executions/element_flow.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "analyzer/executions/element_places.h"

namespace acltape::analyzer::executions {
namespace {

using storage::Layout;

enum class Flow { kFill, kElements, kReduction, kAlongDim, kProduct };

struct Row {
  std::string_view name;  // without the namespace; with "_" at its end it works in place
  Flow flow;
};

constexpr Row kFlows[] = {
    {"fill_", Flow::kFill},
    {"zero_", Flow::kFill},
    {"ones", Flow::kFill},
    {"zeros", Flow::kFill},
    {"full", Flow::kFill},
    {"normal_", Flow::kFill},
    {"uniform_", Flow::kFill},
    {"random_", Flow::kFill},
    {"arange", Flow::kFill},
    {"copy_", Flow::kElements},
    {"_to_copy", Flow::kElements},
    {"clone", Flow::kElements},
    {"contiguous", Flow::kElements},
    {"add", Flow::kElements},
    {"sub", Flow::kElements},
    {"rsub", Flow::kElements},
    {"mul", Flow::kElements},
    {"div", Flow::kElements},
    {"abs", Flow::kElements},
    {"neg", Flow::kElements},
    {"exp", Flow::kElements},
    {"log", Flow::kElements},
    {"sqrt", Flow::kElements},
    {"rsqrt", Flow::kElements},
    {"tanh", Flow::kElements},
    {"relu", Flow::kElements},
    {"gelu", Flow::kElements},
    {"silu", Flow::kElements},
    {"sigmoid", Flow::kElements},
    {"pow", Flow::kElements},
    {"sin", Flow::kElements},
    {"cos", Flow::kElements},
    {"square", Flow::kElements},
    {"reciprocal", Flow::kElements},
    {"clamp", Flow::kElements},
    {"maximum", Flow::kElements},
    {"minimum", Flow::kElements},
    {"round", Flow::kElements},
    {"floor", Flow::kElements},
    {"_npu_dtype_cast", Flow::kElements},
    {"npu_dtype_cast", Flow::kElements},
    {"sum", Flow::kReduction},
    {"mean", Flow::kReduction},
    {"amax", Flow::kReduction},
    {"amin", Flow::kReduction},
    {"max", Flow::kReduction},
    {"min", Flow::kReduction},
    {"prod", Flow::kReduction},
    {"linalg_vector_norm", Flow::kReduction},
    {"norm", Flow::kReduction},
    {"logsumexp", Flow::kReduction},
    {"var", Flow::kReduction},
    {"std", Flow::kReduction},
    {"_softmax", Flow::kAlongDim},
    {"_log_softmax", Flow::kAlongDim},
    {"softmax", Flow::kAlongDim},
    {"log_softmax", Flow::kAlongDim},
    {"cumsum", Flow::kAlongDim},
    {"mm", Flow::kProduct},
    {"matmul", Flow::kProduct},
    {"linear", Flow::kProduct},
    {"addmm", Flow::kProduct},
    {"bmm", Flow::kProduct},
    {"baddbmm", Flow::kProduct},
    {"mv", Flow::kProduct},
    {"dot", Flow::kProduct},
};

const Row* FindRow(std::string_view name) {
  const size_t colons = name.find("::");
  std::string_view bare = colons == std::string_view::npos ? name : name.substr(colons + 2);
  const auto find = [&](std::string_view wanted) {
    return std::find_if(std::begin(kFlows), std::end(kFlows),
                        [&](const Row& row) { return row.name == wanted; });
  };
  const Row* row = find(bare);
  if (row == std::end(kFlows) && bare.ends_with('_')) row = find(bare.substr(0, bare.size() - 1));
  return row == std::end(kFlows) ? nullptr : row;
}

std::vector<char> Elements(const std::vector<FlowTensor>& inputs, const Shape& shape) {
  std::vector<char> marked(static_cast<size_t>(CountOf(shape)), 0);
  for (const FlowTensor& input : inputs) {
    if (input.undefined.empty()) continue;
    if (!BroadcastsTo(input.layout->shape, shape)) return {};
    EachIndex(shape, [&](int64_t i, const Shape& index) {
      const int64_t place = BroadcastPlace(index, input.layout->shape);
      if (input.undefined[static_cast<size_t>(place)] != 0) marked[static_cast<size_t>(i)] = 1;
    });
  }
  return marked;
}

// The dimensions that an argument "dim" names, none: all.
std::vector<size_t> DimsOf(const std::vector<storage::SignatureArgument>& arguments, size_t rank) {
  std::vector<size_t> dims;
  const auto add = [&](int64_t dim) {
    dims.push_back(static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(rank) : dim));
  };
  for (const storage::SignatureArgument& argument : arguments) {
    if (argument.name != "dim" && argument.name != "dims") continue;
    if (argument.kind == storage::ValueKind::kInt) add(argument.integer);
    for (const int64_t dim : argument.integers) add(dim);
  }
  return dims;
}

std::vector<char> Reduction(const std::vector<storage::SignatureArgument>& arguments,
                            const FlowTensor& input, const Shape& result) {
  const Shape& shape = input.layout->shape;
  const std::vector<size_t> dims = DimsOf(arguments, shape.size());
  const int64_t count = CountOf(result);
  std::vector<char> marked(static_cast<size_t>(count), 0);
  bool fits = true;
  EachIndex(shape, [&](int64_t i, const Shape& index) {
    if (input.undefined[static_cast<size_t>(i)] == 0) return;
    int64_t place = 0;
    if (!dims.empty()) {
      for (size_t d = 0; d < shape.size(); ++d) {
        const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
        if (!reduced) place = place * shape[d] + index[d];
      }
    }
    if (place >= count) {
      fits = false;
    } else {
      marked[static_cast<size_t>(place)] = 1;
    }
  });
  return fits ? marked : std::vector<char>();
}

std::vector<char> AlongDim(const std::vector<storage::SignatureArgument>& arguments,
                           const FlowTensor& input, const Shape& result) {
  const Shape& shape = input.layout->shape;
  const std::vector<size_t> dims = DimsOf(arguments, shape.size());
  if (shape != result || dims.size() != 1 || dims[0] >= shape.size()) return {};
  Shape line = shape;
  line[dims[0]] = 1;
  std::vector<char> of_line(static_cast<size_t>(CountOf(line)), 0);
  EachIndex(shape, [&](int64_t i, const Shape& index) {
    if (input.undefined[static_cast<size_t>(i)] != 0) {
      of_line[static_cast<size_t>(BroadcastPlace(index, line))] = 1;
    }
  });
  std::vector<char> marked(static_cast<size_t>(CountOf(shape)), 0);
  EachIndex(shape, [&](int64_t i, const Shape& index) {
    marked[static_cast<size_t>(i)] = of_line[static_cast<size_t>(BroadcastPlace(index, line))];
  });
  return marked;
}

// Marks of matrices: a row of the first factor makes a row of the result, a column of the second
// makes a column.
struct Factors {
  const char* a = nullptr;  // null: nothing of it is marked
  const char* b = nullptr;
  int64_t rows = 0, depth = 0, columns = 0;
  bool transposed = false;  // the second factor has its columns as rows
};

void MarkProduct(const Factors& of, char* marked) {
  for (int64_t i = 0; i < of.rows && of.a != nullptr; ++i) {
    const char* first = of.a + i * of.depth;
    if (std::find(first, first + of.depth, 1) == first + of.depth) continue;
    std::fill_n(marked + i * of.columns, of.columns, 1);
  }
  for (int64_t j = 0; j < of.columns && of.b != nullptr; ++j) {
    bool any = false;
    for (int64_t k = 0; k < of.depth; ++k) {
      any = any || of.b[of.transposed ? j * of.depth + k : k * of.columns + j] != 0;
    }
    for (int64_t i = 0; any && i < of.rows; ++i) marked[i * of.columns + j] = 1;
  }
}

const char* MarksOf(const FlowTensor& tensor, int64_t from) {
  return tensor.undefined.empty() ? nullptr : tensor.undefined.data() + from;
}

// Each matrix of a batch is a product of its own. A factor without the batch serves all of it.
std::vector<char> BatchedProduct(const FlowTensor& a, const FlowTensor& b, const Shape& result) {
  const Shape& left = a.layout->shape;
  const Shape& right = b.layout->shape;
  if (left.size() < 2 || right.size() < 2 || result.size() < 2) return {};
  Factors one{nullptr, nullptr, left[left.size() - 2], left.back(), right.back(), false};
  const Shape batch(result.begin(), result.end() - 2);
  const Shape of_left(left.begin(), left.end() - 2), of_right(right.begin(), right.end() - 2);
  const bool fits = right[right.size() - 2] == one.depth && BroadcastsTo(of_left, batch) &&
                    BroadcastsTo(of_right, batch) &&
                    CountOf(batch) * one.rows * one.columns == CountOf(result);
  if (!fits) return {};
  std::vector<char> marked(static_cast<size_t>(CountOf(result)), 0);
  EachIndex(batch, [&](int64_t i, const Shape& index) {
    one.a = MarksOf(a, BroadcastPlace(index, of_left) * one.rows * one.depth);
    one.b = MarksOf(b, BroadcastPlace(index, of_right) * one.depth * one.columns);
    MarkProduct(one, marked.data() + i * one.rows * one.columns);
  });
  return marked;
}

// Dimensions of a batch before the rows count as rows if the second factor is a matrix.
std::vector<char> Product(std::string_view name, std::vector<FlowTensor> inputs,
                          const Shape& result) {
  const bool linear = name.ends_with("linear");
  if ((name.ends_with("addmm") || name.ends_with("addbmm")) && inputs.size() == 3) {
    std::rotate(inputs.begin(), inputs.begin() + 1, inputs.end());  // the term that is added last
  }
  if (inputs.size() < 2) return {};
  const FlowTensor& a = inputs[0];
  const FlowTensor& b = inputs[1];
  const Shape& left = a.layout->shape;
  const Shape& right = b.layout->shape;
  if (left.empty() || right.empty()) return {};
  std::vector<char> marked;
  if (right.size() > 2) {
    marked = BatchedProduct(a, b, result);
  } else {
    const int64_t depth = left.back();
    const int64_t columns = right.size() == 1 ? 1 : right[linear ? 0 : 1];
    const int64_t rows = depth == 0 ? 0 : CountOf(left) / depth;
    if (rows * columns != CountOf(result)) return {};
    marked.assign(static_cast<size_t>(rows * columns), 0);
    MarkProduct({MarksOf(a, 0), MarksOf(b, 0), rows, depth, columns, linear}, marked.data());
  }
  if (marked.empty()) return marked;
  for (size_t i = 2; i < inputs.size(); ++i) {
    if (inputs[i].undefined.empty()) continue;
    const std::vector<char> added = Elements({inputs[i]}, result);
    for (size_t e = 0; e < added.size(); ++e) marked[e] |= added[e];
  }
  return marked;
}

}  // namespace

bool IsFlowKnown(std::string_view name) { return FindRow(name) != nullptr; }

std::vector<char> FlowOf(std::string_view name,
                         const std::vector<storage::SignatureArgument>& arguments,
                         const std::vector<FlowTensor>& inputs, const Layout& result) {
  const Row* row = FindRow(name);
  if (row == nullptr || inputs.empty()) return {};
  switch (row->flow) {
    case Flow::kFill:
      return {};
    case Flow::kElements: {
      // The tensor that copy_ overwrites is no input of it.
      std::vector<FlowTensor> read = inputs;
      if (row->name == "copy_" && read.size() > 1) read.erase(read.begin());
      return Elements(read, result.shape);
    }
    case Flow::kReduction:
      return inputs[0].undefined.empty() ? std::vector<char>()
                                         : Reduction(arguments, inputs[0], result.shape);
    case Flow::kAlongDim:
      return inputs[0].undefined.empty() ? std::vector<char>()
                                         : AlongDim(arguments, inputs[0], result.shape);
    default:
      return Product(name, inputs, result.shape);
  }
}

}  // namespace acltape::analyzer::executions
