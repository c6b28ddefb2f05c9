// The gradients of a matrix product are products themselves. These functions give their factors.
//
// A vector counts as a matrix with one row if it is the left operand, and with one column if it is
// the right one. Its gradient has that dimension too. If one operand is a single matrix and the
// other one is a batch, the gradient of the single one is a sum over the batch: the product of all
// rows laid side by side.
#include <optional>

#include "analyzer/lowering/values.h"

namespace acltape::analyzer::lowering {
namespace {

using storage::Layout;

size_t Rank(const LoweredTensor& x) { return x.layout.shape.size(); }

// Adds a dimension of one element before the dimension `at`.
LoweredTensor Unsqueezed(LoweredTensor x, size_t dim) {
  Layout& layout = x.layout;
  const int64_t stride =
      dim < layout.shape.size() ? layout.shape[dim] * layout.strides[dim] : int64_t{1};
  layout.shape.insert(layout.shape.begin() + dim, 1);
  layout.strides.insert(layout.strides.begin() + dim, stride);
  return x;
}

LoweredTensor AsRow(LoweredTensor x) { return Rank(x) == 1 ? Unsqueezed(std::move(x), 0) : x; }
LoweredTensor AsColumn(LoweredTensor x) { return Rank(x) == 1 ? Unsqueezed(std::move(x), 1) : x; }

LoweredTensor Transposed(LoweredTensor x) {
  const size_t rank = Rank(x);
  if (rank < 2) throw CannotBind("a matrix is needed");
  std::swap(x.layout.shape[rank - 2], x.layout.shape[rank - 1]);
  std::swap(x.layout.strides[rank - 2], x.layout.strides[rank - 1]);
  return x;
}

// True if x is one matrix and the other operand a batch. Both have matrices in their last two
// dimensions.
bool IsOneForABatch(const LoweredTensor& x, const LoweredTensor& other) {
  return Rank(x) == 2 && Rank(other) > 2;
}

// Dimensions [first, end) merged into one. Empty if their strides do not allow it.
struct OneDimension {
  int64_t size = 1;
  int64_t stride = 1;
};
std::optional<OneDimension> AsOne(const Layout& layout, size_t first, size_t end) {
  OneDimension one;
  for (size_t d = end; d-- > first;) {
    if (layout.shape[d] == 1) continue;
    if (one.size == 1) {
      one.stride = layout.strides[d];
    } else if (layout.strides[d] != one.stride * one.size) {
      return std::nullopt;
    }
    one.size *= layout.shape[d];
  }
  return one;
}

// Merges dimensions [first, end) into one: a view if possible, else a view of a copy.
LoweredTensor Merged(Binder& binder, LoweredTensor x, size_t first, size_t end) {
  std::optional<OneDimension> one = AsOne(x.layout, first, end);
  if (!one) {
    const LoweredTensor copy = binder.Temporary(x.layout.dtype, x.layout.shape);
    binder.Before({"aclnnInplaceCopy", {Tensor(copy), Tensor(x)}});
    x = copy;
    one = AsOne(x.layout, first, end);
  }
  const auto replace = [&](std::vector<int64_t>& dims, int64_t value) {
    dims.erase(dims.begin() + first, dims.begin() + end);
    dims.insert(dims.begin() + first, value);
  };
  replace(x.layout.shape, one->size);
  replace(x.layout.strides, one->stride);
  return x;
}

// All rows of a batch of matrices, one below the other.
LoweredTensor Rows(Binder& binder, const LoweredTensor& x) {
  return Merged(binder, x, 0, Rank(x) - 1);
}

// The matrices of a batch, side by side.
LoweredTensor SideBySide(Binder& binder, LoweredTensor x) {
  Layout& layout = x.layout;
  const auto rows_first = [](std::vector<int64_t>& dims) {
    std::rotate(dims.begin(), dims.end() - 2, dims.end() - 1);
  };
  rows_first(layout.shape);
  rows_first(layout.strides);
  return Merged(binder, x, 1, Rank(x));
}

// The operands of a matrix product and the gradient of its result. Vectors are matrices here.
struct Product {
  LoweredTensor gradient, self, other;

  Product(const char* function, Values& operands)
      : gradient(TensorOf(operands[0], function)),
        self(TensorOf(operands[1], function)),
        other(TensorOf(operands[2], function)) {
    if (Rank(self) == 0 || Rank(other) == 0) throw CannotBind("a matrix product needs matrices");
    if (Rank(other) == 1) gradient = Unsqueezed(gradient, Rank(gradient));
    if (Rank(self) == 1) gradient = Unsqueezed(gradient, Rank(gradient) - 1);
    self = AsRow(self);
    other = AsColumn(other);
  }
};

// selfgradleft(grad, self, other): the left factor of the gradient of self.
LoweredValue SelfGradLeftFunction(Binder& binder, Values& operands) {
  const Product product("selfgradleft", operands);
  const bool sums = IsOneForABatch(product.self, product.other);
  return Tensor(sums ? SideBySide(binder, product.gradient) : product.gradient);
}

// selfgradright(grad, self, other): the right factor of the gradient of self.
LoweredValue SelfGradRightFunction(Binder& binder, Values& operands) {
  const Product product("selfgradright", operands);
  const LoweredTensor other = Transposed(product.other);
  return Tensor(IsOneForABatch(product.self, product.other) ? Rows(binder, other) : other);
}

// othergradleft(grad, self, other): the left factor of the gradient of other.
LoweredValue OtherGradLeftFunction(Binder& binder, Values& operands) {
  const Product product("othergradleft", operands);
  const bool sums = IsOneForABatch(product.other, product.self);
  return Tensor(Transposed(sums ? Rows(binder, product.self) : product.self));
}

// othergradright(grad, self, other): the right factor of the gradient of other.
LoweredValue OtherGradRightFunction(Binder& binder, Values& operands) {
  const Product product("othergradright", operands);
  const bool sums = IsOneForABatch(product.other, product.self);
  return Tensor(sums ? Rows(binder, product.gradient) : product.gradient);
}

// row(x): a vector as a matrix with one row. Anything else is unchanged.
LoweredValue RowFunction(Binder&, Values& operands) {
  return Tensor(AsRow(TensorOf(operands[0], "row")));
}

// column(x): a vector as a matrix with one column. Anything else is unchanged.
LoweredValue ColumnFunction(Binder&, Values& operands) {
  return Tensor(AsColumn(TensorOf(operands[0], "column")));
}

}  // namespace

const std::vector<BindFunction>& MatrixFunctions() {
  static const std::vector<BindFunction> functions = {
      {"selfgradleft", 3, SelfGradLeftFunction},
      {"selfgradright", 3, SelfGradRightFunction},
      {"othergradleft", 3, OtherGradLeftFunction},
      {"othergradright", 3, OtherGradRightFunction},
      {"row", 1, RowFunction},
      {"column", 1, ColumnFunction},
  };
  return functions;
}

}  // namespace acltape::analyzer::lowering
