// Products of many matrices at once whose results are added up, laid out differently, or added to
// the rows of an adapter.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/whole.h"
#include "runtime/opapi/kernels/within.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// (x1 [batch, m, k], x2 [batch, k, n], x1Scale [batch, m], x2Scale [n], yScale?, x1Offset?,
// x2Offset?, yOffset?, bias?, transposeX1, transposeX2, groupSize, dims, keepDims, out [m, n]): the
// sum over the batch.
std::unique_ptr<Kernel> BindQuantMatmulReduceSum(const Call& call) {
  const Tensor a = call.View(0), b = call.View(1), of_rows = call.View(2),
               of_columns = call.View(3);
  call.ExpectAbsent({4, 5, 6, 7, 8});
  for (int i : {9, 10, 13}) {
    if (call.Bool(i)) call.RejectArg(i, "must be false");
  }
  if (call.Int(11) != 0) call.RejectArg(11, "must be 0");
  if (call.Ints(12) != std::vector<int64_t>{0}) call.RejectArg(12, "must be {0}");
  for (int i : {0, 1}) {
    ExpectDtypes(call, i, call.View(i), {at::kChar});
    call.ExpectRank(i, call.View(i), 3);
  }
  const int64_t batch = a.size(0), rows = a.size(1), inner = a.size(2), columns = b.size(2);
  call.ExpectSizes(1, b, {batch, inner, columns});
  ExpectDtypes(call, 2, of_rows, {at::kFloat});
  ExpectDtypes(call, 3, of_columns, {at::kBFloat16});
  call.ExpectSizes(2, of_rows, {batch, rows});
  call.ExpectSizes(3, of_columns, {columns});
  ExpectDtypes(call, 14, call.View(14), {at::kBFloat16});
  return BindWhole(call, 14, {rows, columns}, [=] {
    // Sums of products of int8 are exact in float64.
    const Tensor products = at::bmm(a.to(at::kDouble), b.to(at::kDouble)).to(at::kFloat);
    return (products * of_rows.unsqueeze(2) * of_columns.to(at::kFloat)).sum(0);
  });
}

// An order of the dims that the operator takes.
void ExpectOrderOfDims(const Call& call, int i, std::initializer_list<std::vector<int64_t>> orders,
                       const char* expected) {
  const std::vector<int64_t> order = call.Ints(i);
  if (std::find(orders.begin(), orders.end(), order) == orders.end()) call.RejectArg(i, expected);
}

// (x1, x2 [batch, k, n], bias?, scale?, permX1, permX2, permY, cubeMathType, batchSplitFactor,
// out): rows of the products of all matrices, one after the other, in as many parts as the factor
// says.
std::unique_ptr<Kernel> BindTransposeBatchMatMulWeightNz(const Call& call) {
  call.ExpectAbsent({2, 3});
  ExpectOrderOfDims(call, 4, {{0, 1, 2}, {1, 0, 2}}, "must be {0, 1, 2} or {1, 0, 2}");
  ExpectOrderOfDims(call, 5, {{0, 1, 2}}, "must be {0, 1, 2}");
  ExpectOrderOfDims(call, 6, {{1, 0, 2}}, "must be {1, 0, 2}");
  const Tensor given = call.View(0), b = call.View(1), out = call.Out(9);
  ExpectDtypes(call, 0, given, {at::kHalf, at::kBFloat16});
  ExpectDtypes(call, 1, b, {given.scalar_type()});
  ExpectDtypes(call, 9, out, {given.scalar_type()});
  call.ExpectRank(0, given, 3);
  call.ExpectRank(1, b, 3);
  const Tensor a = given.permute(call.Ints(4));
  const int64_t batch = b.size(0), inner = b.size(1), columns = b.size(2), rows = a.size(1);
  if (a.size(0) != batch || a.size(2) != inner) call.RejectArg(1, "does not fit x1");
  if (inner % 16 != 0 || columns % 16 != 0) {
    call.RejectArg(1, "has matrices whose dims are no multiples of 16");
  }
  const int64_t parts = call.Int(8);
  if (parts < 1 || batch % parts != 0) call.RejectArg(8, "does not divide the batch");
  const int64_t each = batch / parts;
  call.ExpectSizes(9, out,
                   parts == 1 ? at::IntArrayRef({rows, batch, columns})
                              : at::IntArrayRef({parts, rows, each * columns}));
  return MakeKernel([=] {
    const Tensor products = at::bmm(a.to(at::kFloat), b.to(at::kFloat));
    if (parts == 1) {
      out.copy_(products.transpose(0, 1));
    } else {
      out.copy_(products.unflatten(0, {parts, each}).transpose(1, 2).reshape(out.sizes()));
    }
  });
}

// (tensors, equation, output): products of all pairs of two vectors, or of vectors with matrices.
std::unique_ptr<Kernel> BindEinsum(const Call& call) {
  const std::vector<Tensor> tensors = call.ListBits(0);
  const std::string equation = call.Text(1);
  const bool pairs = equation == "a,b->ab";
  if (!pairs && equation != "abcd,abced->abce") {
    call.RejectArg(1, "must be \"abcd,abced->abce\" or \"a,b->ab\"");
  }
  if (tensors.size() != 2) call.RejectArg(0, "must hold two tensors");
  const Tensor a = tensors[0], b = tensors[1], out = call.BitsOut(2);
  for (const Tensor& tensor : tensors) {
    ExpectDtypes(call, 0, tensor, {at::kHalf, at::kFloat, at::kShort, at::kInt, at::kLong});
  }
  if (a.scalar_type() != b.scalar_type()) call.RejectArg(0, "has tensors of different dtypes");
  ExpectDtypes(call, 2, out, {a.scalar_type()});
  call.ExpectRank(0, a, pairs ? 1 : 4);
  call.ExpectRank(0, b, pairs ? 1 : 5);
  std::vector<int64_t> sizes = {a.size(0), b.size(0)};
  if (!pairs) {
    sizes = {a.size(0), a.size(1), a.size(2), b.size(3)};
    call.ExpectSizes(0, b, {a.size(0), a.size(1), a.size(2), b.size(3), a.size(3)});
  }
  call.ExpectSizes(2, out, sizes);
  const bool half = a.scalar_type() == at::kHalf;
  return MakeKernel([=] {
    const Tensor left = half ? a.to(at::kFloat) : a, right = half ? b.to(at::kFloat) : b;
    // Integers wrap around, so that the bits of unsigned ones are right, too.
    out.copy_(pairs ? left.unsqueeze(1) * right : (left.unsqueeze(3) * right).sum(-1));
  });
}

// (y [rows, width], x, weightB [adapters, layers, out, rank], indices [rows], weightA? [adapters,
// layers, rank, in], layerIdx, scale, yOffset, ySliceSize, out): adds to columns of each row of y
// what the matrices of its adapter make of the row of x.
std::unique_ptr<Kernel> BindAddLora(const Call& call) {
  const Tensor y = call.View(0), x = call.View(1), up = call.View(2), indices = call.View(3);
  const Tensor down = call.IsAbsent(4) ? Tensor() : call.View(4), out = call.Out(9);
  for (int i : {0, 1, 2, 4, 9}) {
    if (i != 4 || down.defined()) ExpectDtypes(call, i, call.View(i), {at::kHalf});
  }
  for (int i : {0, 1}) call.ExpectRank(i, call.View(i), 2);
  call.ExpectRank(2, up, 4);
  const int64_t rows = y.size(0), inner = x.size(1);
  const int64_t adapters = up.size(0), layers = up.size(1), width = up.size(2), rank = up.size(3);
  if (adapters < 1 || adapters > 32 || layers < 1 || layers > 32) {
    call.RejectArg(2, "must have 1 to 32 adapters and layers");
  }
  for (const int64_t size : {inner, width, rank}) {
    if (size < 16 || size % 16 != 0) call.RejectArg(2, "and x must have dims in multiples of 16");
  }
  if (rank > 128) call.RejectArg(2, "has a last dim above 128");
  call.ExpectSizes(1, x, {rows, inner});
  if (down.defined()) call.ExpectSizes(4, down, {adapters, layers, rank, inner});
  if (!down.defined()) call.ExpectSizes(1, x, {rows, rank});
  ExpectDtypes(call, 3, indices, {at::kInt});
  call.ExpectSizes(3, indices, {rows});
  const int64_t layer = call.Int(5), first = call.Int(7), columns = call.Int(8);
  const double scale = call.Real(6);
  if (layer < 0 || layer >= layers) call.RejectArg(5, "names no layer of weightB");
  if (columns != width) call.RejectArg(8, "is not the number of rows of weightB");
  if (first < 0 || first + columns > y.size(1)) call.RejectArg(7, "and ySliceSize leave y");
  call.ExpectSizes(9, out, y.sizes());
  return MakeKernel([=] {
    const Tensor adapter = Within(indices, adapters, "aclnnAddLora");
    const auto of_rows = [&](const Tensor& matrices) {
      return matrices.select(1, layer).index_select(0, adapter).to(at::kFloat);
    };
    Tensor low = x.to(at::kFloat).unsqueeze(2);
    if (down.defined()) low = of_rows(down).bmm(low);
    const Tensor result = y.to(at::kFloat);
    result.narrow(1, first, columns).add_(of_rows(up).bmm(low).squeeze(2), scale);
    out.copy_(result);
  });
}

}  // namespace

KernelRows BatchedProductRows() {
  return {
      {"aclnnQuantMatmulReduceSumWeightNz", BindQuantMatmulReduceSum},
      {"aclnnTransposeBatchMatMulWeightNz", BindTransposeBatchMatMulWeightNz},
      {"aclnnEinsum", BindEinsum},
      {"aclnnAddLora", BindAddLora},
  };
}

}  // namespace acltape::opapi
