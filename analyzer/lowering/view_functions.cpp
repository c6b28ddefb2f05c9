// Views of tensors that operators read or write in another order.
#include "analyzer/lowering/values.h"

namespace acltape::analyzer::lowering {
namespace {

using storage::Layout;

// Appends a dimension to a layout under construction.
void Append(Layout& layout, int64_t size, int64_t stride) {
  layout.shape.push_back(size);
  layout.strides.push_back(stride);
}

// The last `count` dimensions are taken off, and their number is checked.
Layout Leading(const Layout& layout, size_t count, const char* function) {
  if (layout.shape.size() < count) {
    throw CannotBind(std::string(function) + " needs " + std::to_string(count) + " dimensions");
  }
  Layout leading = layout;
  leading.shape.resize(layout.shape.size() - count);
  leading.strides.resize(leading.shape.size());
  return leading;
}

int64_t PositiveOf(const LoweredValue& value, const char* function) {
  const int64_t number = IntOf(value, function);
  if (number < 1) throw CannotBind(std::string(function) + " needs a positive number");
  return number;
}

// planes(x, r): x of (*, C r r, H, W) as (*, C, r, r, H, W).
LoweredValue PlanesFunction(Binder&, Values& operands) {
  LoweredTensor x = TensorOf(operands[0], "planes");
  const int64_t r = PositiveOf(operands[1], "planes");
  const Layout& from = x.layout;
  Layout layout = Leading(from, 3, "planes");
  const size_t channel = layout.shape.size();
  if (from.shape[channel] % (r * r) != 0) throw CannotBind("planes of unequal parts");
  const int64_t stride = from.strides[channel];
  Append(layout, from.shape[channel] / (r * r), stride * r * r);
  Append(layout, r, stride * r);
  Append(layout, r, stride);
  Append(layout, from.shape[channel + 1], from.strides[channel + 1]);
  Append(layout, from.shape[channel + 2], from.strides[channel + 2]);
  x.layout = layout;
  return Tensor(x);
}

// blocks(x, r): x of (*, C, H r, W r) as (*, C, r, r, H, W), the order in which planes(y, r) has
// the elements that pixel_shuffle puts there.
LoweredValue BlocksFunction(Binder&, Values& operands) {
  LoweredTensor x = TensorOf(operands[0], "blocks");
  const int64_t r = PositiveOf(operands[1], "blocks");
  const Layout& from = x.layout;
  Layout layout = Leading(from, 2, "blocks");
  const size_t row = layout.shape.size(), column = row + 1;
  if (from.shape[row] % r != 0 || from.shape[column] % r != 0) {
    throw CannotBind("blocks of unequal parts");
  }
  Append(layout, r, from.strides[row]);
  Append(layout, r, from.strides[column]);
  Append(layout, from.shape[row] / r, from.strides[row] * r);
  Append(layout, from.shape[column] / r, from.strides[column] * r);
  x.layout = layout;
  return Tensor(x);
}

// diagonal(x, offset, dim1, dim2): the view that torch.diagonal gives.
LoweredValue DiagonalFunction(Binder&, Values& operands) {
  LoweredTensor x = TensorOf(operands[0], "diagonal");
  Layout& layout = x.layout;
  const int64_t rank = static_cast<int64_t>(layout.shape.size());
  const int64_t offset = IntOf(operands[1], "diagonal");
  const int64_t first = Wrapped(IntOf(operands[2], "diagonal"), rank);
  const int64_t second = Wrapped(IntOf(operands[3], "diagonal"), rank);
  if (first < 0 || first >= rank || second < 0 || second >= rank || first == second) {
    throw CannotBind("diagonal of dimensions that the tensor lacks");
  }
  const int64_t rows = layout.shape[first], columns = layout.shape[second];
  const int64_t length = std::max<int64_t>(
      0, offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns));
  const int64_t stride = layout.strides[first] + layout.strides[second];
  if (length > 0) {
    const int64_t skipped =
        offset >= 0 ? offset * layout.strides[second] : -offset * layout.strides[first];
    layout.byte_offset += skipped * storage::DTypeBytes(layout.dtype);
  }
  for (const int64_t dim : {std::max(first, second), std::min(first, second)}) {
    layout.shape.erase(layout.shape.begin() + dim);
    layout.strides.erase(layout.strides.begin() + dim);
  }
  Append(layout, length, stride);
  return Tensor(x);
}

}  // namespace

const std::vector<BindFunction>& ViewFunctions() {
  static const std::vector<BindFunction> functions = {
      {"planes", 2, PlanesFunction},
      {"blocks", 2, BlocksFunction},
      {"diagonal", 4, DiagonalFunction},
  };
  return functions;
}

}  // namespace acltape::analyzer::lowering
