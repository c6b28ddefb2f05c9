// Reading and writing at index tensors and masks. An index out of range fails the task.
#include <ATen/CPUFunctions.h>

#include "runtime/opapi/kernels/elementwise.h"
#include "runtime/opapi/kernels/embedding_bag.h"
#include "runtime/opapi/kernels/within.h"

namespace acltape::opapi {
namespace {

namespace f = at::cpu;
using at::Tensor;

Tensor Long(const Tensor& index) { return index.to(at::kLong); }

// Says what an index below 0 means.
enum class IndexSign { kRefused, kFromEnd };

// The index with entries below 0 counted from the end of `size` rows.
Tensor CountedFromStart(const Tensor& index, int64_t size) {
  const Tensor below = index.lt(0);
  return below.any().item<bool>() ? at::where(below, index + size, index) : index;
}

// (self, dim, index, out), the index's dims replacing `dim`.
std::unique_ptr<Kernel> BindRows(const Call& call, const Operand& self, int64_t dim,
                                 int index_index, int out_index,
                                 IndexSign sign = IndexSign::kRefused) {
  const Tensor index = call.View(index_index);
  call.ExpectIndex(index_index, index);
  const Tensor out = call.Out(out_index);
  std::vector<int64_t> sizes = self.sizes().vec();
  if (!sizes.empty()) {
    sizes.erase(sizes.begin() + dim);
    sizes.insert(sizes.begin() + dim, index.sizes().begin(), index.sizes().end());
  }
  call.ExpectSizes(out_index, out, sizes);
  const int64_t rows = self.dim() == 0 ? 1 : self.sizes()[dim];
  const auto read = [=] {
    return sign == IndexSign::kFromEnd ? CountedFromStart(index, rows) : index;
  };
  if (index.dim() == 1) {
    Target target(out, self.view().scalar_type(), Access::kFree, {&self.view(), &index});
    return MakeKernel([=] {
      target.Write([&](Tensor& result) { f::index_select_out(result, self(), dim, read()); });
    });
  }
  return MakeKernel(
      [=] { out.copy_(f::index_select(self(), dim, read().reshape(-1)).view(out.sizes())); });
}

// (self, dim, index, out) with an index of at most one dim, a 0-dim one standing for one row.
std::unique_ptr<Kernel> BindIndexSelect(const Call& call) {
  const Operand self = call.In(0);
  const int64_t dim = call.Dim(1, self.dim());
  const Tensor index = call.View(2);
  if (index.dim() > 1) call.RejectArg(2, "has more than one dim");
  call.ExpectIndex(2, index);
  const Tensor out = call.Out(3);
  std::vector<int64_t> sizes = self.sizes().vec();
  if (!sizes.empty()) sizes[dim] = index.numel();
  call.ExpectSizes(3, out, sizes);
  Target target(out, self.view().scalar_type(), Access::kFree, {&self.view(), &index});
  return MakeKernel([=] {
    target.Write([&](Tensor& result) { f::index_select_out(result, self(), dim, index); });
  });
}

// An index below 0 counts from the end.
std::unique_ptr<Kernel> BindGatherV2(const Call& call) {
  const Operand self = call.In(0);
  return BindRows(call, self, call.Dim(1, self.dim()), 2, 3, IndexSign::kFromEnd);
}

// (self, dim, index, batchDims, mode, out): the mode says how the indices are spread, which changes
// nothing in the result, or that they may lie outside.
std::unique_ptr<Kernel> BindGatherV3(const Call& call) {
  const Operand self = call.In(0);
  if (call.Int(3) != 0) call.RejectArg(3, "must be 0");
  if (call.Int(4) != 0 && call.Int(4) != 1) call.RejectArg(4, "must be 0 or 1");
  return BindRows(call, self, call.Dim(1, self.dim()), 2, 5);
}

// (weight, indices, out)
std::unique_ptr<Kernel> BindEmbedding(const Call& call) {
  call.ExpectRank(0, call.View(0), 2);
  return BindRows(call, call.In(0), 0, 1, 2);
}

// (selfRef, indices, maxNorm, normType): scales the rows that the indices name to the norm, if
// theirs is greater
std::unique_ptr<Kernel> BindEmbeddingRenorm(const Call& call) {
  const Tensor table = call.Out(0), indices = call.View(1);
  call.ExpectRank(0, table, 2);
  if (!at::isFloatingType(table.scalar_type())) call.RejectArg(0, "has no floating dtype");
  call.ExpectIndex(1, indices);
  const double most = call.Real(2), order = call.Real(3);
  return MakeKernel([=] {
    const bool narrow = table.scalar_type() == at::kHalf || table.scalar_type() == at::kBFloat16;
    Tensor scaled = table.to(narrow ? at::kFloat : table.scalar_type()).contiguous().clone();
    at::embedding_renorm_(scaled, indices.to(at::kLong).contiguous(), most, order);
    table.copy_(scaled);
  });
}

// (grad, indices, numWeights, paddingIdx, scaleGradByFreq, out)
std::unique_ptr<Kernel> BindEmbeddingBackward(const Call& call) {
  const Operand gradient = call.In(0);
  const Tensor indices = call.View(1);
  call.ExpectIndex(1, indices);
  const int64_t rows = call.Int(2), padding = call.Int(3);
  const bool by_frequency = call.Bool(4);
  const Tensor out = call.Out(5);
  std::vector<int64_t> sizes = indices.sizes().vec();
  if (gradient.dim() == 0) call.RejectArg(0, "has no dims");
  const int64_t width = gradient.sizes().back();
  sizes.push_back(width);
  call.ExpectSizes(0, gradient.view(), sizes);
  call.ExpectSizes(5, out, {rows, width});
  return MakeKernel([=] {
    out.copy_(at::embedding_dense_backward(gradient(), Within(indices, rows, "indices"), rows,
                                           padding, by_frequency));
  });
}

void ExpectGatherShapes(const Call& call, const Tensor& self, int64_t dim, int index_index,
                        const Tensor& index) {
  bool fits = std::max<int64_t>(self.dim(), 1) == std::max<int64_t>(index.dim(), 1);
  for (int64_t i = 0; fits && i < index.dim(); ++i) {
    fits = i == dim || index.size(i) <= (i < self.dim() ? self.size(i) : 1);
  }
  if (!fits && index.numel() > 0) {
    call.RejectArg(index_index, "has shape " + SizesText(index.sizes()) +
                                    ", which does not fit self of shape " +
                                    SizesText(self.sizes()));
  }
}

// (self, dim, index, out)
std::unique_ptr<Kernel> BindGather(const Call& call) {
  const Operand self = call.In(0);
  const int64_t dim = call.Dim(1, self.dim());
  const Tensor index = call.View(2);
  call.ExpectIndex(2, index);
  ExpectGatherShapes(call, self.view(), dim, 2, index);
  const Tensor out = call.Out(3);
  call.ExpectSizes(3, out, index.sizes());
  Target target(out, self.view().scalar_type(), Access::kFree, {&self.view(), &index});
  return MakeKernel([=] {
    target.Write([&](Tensor& result) { f::gather_out(result, self(), dim, Long(index)); });
  });
}

using IndexList = c10::List<c10::optional<Tensor>>;

struct Indices {
  IndexList list;  // entries of int32 among them, which the library does not take
  bool has_int32 = false;
  bool has_mask = false;
  bool nothing = false;               // an index without elements selects nothing
  std::vector<int64_t> result_sizes;  // the sizes of self[list]; not known when has_mask
  int64_t result_rank = 0;

  // The entries as the library takes them, with what they hold when the kernel runs.
  IndexList Read() const {
    if (!has_int32) return list;
    IndexList read;
    for (const c10::optional<Tensor> entry : list) {
      const bool narrow = entry && entry->scalar_type() == at::kInt;
      read.push_back(narrow ? c10::optional<Tensor>(Long(*entry)) : entry);
    }
    return read;
  }
};

// One entry per indexed dim. An entry without elements stands for a full slice beside entries that
// have some; alone it is an index that selects nothing.
Indices ReadIndices(const Call& call, int i, const Tensor& self) {
  Indices indices;
  std::vector<int64_t> broadcast, kept, positions;
  int64_t dim = 0, first = -1;
  const std::vector<Tensor> entries = call.Views(i);
  indices.nothing =
      !entries.empty() && std::all_of(entries.begin(), entries.end(),
                                      [](const Tensor& entry) { return entry.numel() == 0; });
  for (const Tensor& entry : entries) {
    if (dim >= self.dim()) call.RejectArg(i, "has more entries than self has dims");
    if (entry.numel() == 0) {
      indices.list.push_back(c10::nullopt);
      kept.push_back(self.size(dim++));
      continue;
    }
    if (entry.scalar_type() == at::kBool || entry.scalar_type() == at::kByte) {
      indices.has_mask = true;
      indices.list.push_back(entry);
      dim += entry.dim();
      continue;
    }
    call.ExpectIndex(i, entry);
    indices.list.push_back(entry);
    indices.has_int32 |= entry.scalar_type() == at::kInt;
    broadcast = call.Broadcast({broadcast, entry.sizes()});
    if (first < 0) first = static_cast<int64_t>(kept.size());
    positions.push_back(dim++);
  }
  for (; dim < self.dim(); ++dim) kept.push_back(self.size(dim));
  const bool adjacent = positions.empty() || positions.back() - positions.front() + 1 ==
                                                 static_cast<int64_t>(positions.size());
  indices.result_sizes = kept;
  const int64_t dims_before = adjacent && first > 0 ? first : 0;
  indices.result_sizes.insert(indices.result_sizes.begin() + dims_before, broadcast.begin(),
                              broadcast.end());
  // A mask selects along one dim.
  const size_t least = indices.has_mask ? 1 : 0;
  indices.result_rank = static_cast<int64_t>(kept.size() + std::max(broadcast.size(), least));
  return indices;
}

// (self, indices, out)
std::unique_ptr<Kernel> BindIndex(const Call& call) {
  const Operand self = call.In(0);
  const Indices indices = ReadIndices(call, 1, self.view());
  const Tensor out = call.Out(2);
  if (indices.nothing) {
    if (out.numel() != 0) call.RejectArg(2, "has elements but the indices select none");
    return MakeKernel([] {});
  }
  if (indices.has_mask) {
    return MakeKernel([=] {
      const Tensor result = f::index(self(), indices.Read());
      TORCH_CHECK(result.sizes() == out.sizes(), "aclnnIndex: the mask selects a result of shape ",
                  result.sizes(), " but out has shape ", out.sizes());
      out.copy_(result);
    });
  }
  call.ExpectSizes(2, out, indices.result_sizes);
  Target target(out, self.view().scalar_type(), Access::kFree, {&self.view()});
  for (const c10::optional<Tensor> index : indices.list) {
    if (index) target.Read(*index, Access::kFree);
  }
  return MakeKernel(
      [=] { target.Write([&](Tensor& result) { f::index_out(result, self(), indices.Read()); }); });
}

// (selfRef, indices, values, accumulate, unsafe)
std::unique_ptr<Kernel> BindIndexPut(const Call& call) {
  Tensor self = call.Out(0);
  const Indices indices = ReadIndices(call, 1, self);
  const Tensor values = call.View(2);
  const bool accumulate = call.Bool(3), unsafe = call.Bool(4);
  if (values.scalar_type() != self.scalar_type()) {
    call.RejectArg(2, "has another dtype than selfRef");
  }
  if (indices.nothing) return MakeKernel([] {});
  if (values.dim() > indices.result_rank) {
    call.RejectArg(2, "has more dims than the " + std::to_string(indices.result_rank) +
                          " that the indices select");
  }
  if (!indices.has_mask &&
      call.Broadcast({values.sizes(), indices.result_sizes}) != indices.result_sizes) {
    call.RejectArg(2, "has shape " + SizesText(values.sizes()) + ", which does not broadcast to " +
                          SizesText(indices.result_sizes));
  }
  return MakeKernel(
      [=]() mutable { at::_index_put_impl_(self, indices.Read(), values, accumulate, unsafe); });
}

void ExpectSameDtype(const Call& call, const Tensor& self, int i, const Tensor& other) {
  if (self.scalar_type() != other.scalar_type()) {
    call.RejectArg(i, std::string("has dtype ") + at::toString(other.scalar_type()) +
                          " but self has " + at::toString(self.scalar_type()));
  }
}

// (self, dim, index, source, out)
std::unique_ptr<Kernel> BindIndexCopy(const Call& call) {
  Tensor self = call.View(0), out = call.Out(4);
  const int64_t dim = call.Dim(1, self.dim());
  const Tensor index = call.View(2), source = call.View(3);
  call.ExpectIndex(2, index);
  if (index.dim() > 1) call.RejectArg(2, "has more than one dim");
  ExpectSameDtype(call, self, 3, source);
  std::vector<int64_t> sizes = self.sizes().vec();
  if (!sizes.empty()) sizes[dim] = index.numel();
  if (source.dim() > 0 || !sizes.empty()) call.ExpectSizes(3, source, sizes);
  call.ExpectSizes(4, out, self.sizes());
  ExpectSameDtype(call, self, 4, out);
  return MakeKernel([=, copies = !call.in_place()]() mutable {
    if (copies) out.copy_(self);
    f::index_copy_(out, dim, Long(index), source);
  });
}

// (self, dim, index, source, alpha, out)
std::unique_ptr<Kernel> BindIndexAdd(const Call& call) {
  const Operand self = call.In(0), source = call.In(3);
  const int64_t dim = call.Dim(1, self.dim());
  const Tensor index = call.View(2);
  const at::Scalar alpha = call.Number(4);
  const Tensor out = call.Out(5);
  call.ExpectIndex(2, index);
  ExpectSameDtype(call, self.view(), 3, source.view());
  std::vector<int64_t> sizes = self.sizes().vec();
  if (!sizes.empty()) sizes[dim] = index.numel();
  call.ExpectSizes(3, source.view(), sizes);
  call.ExpectSizes(5, out, self.sizes());
  Target target(out, self.dtype(), Access::kElementwise, {&self.view()});
  target.Read(source.view(), Access::kFree);
  target.Read(index, Access::kFree);
  return MakeKernel([=] {
    target.Write(
        [&](Tensor& result) { f::index_add_out(result, self(), dim, index, source(), alpha); });
  });
}

// (self, dim, index, value, out); the index is a tensor or a host array.
std::unique_ptr<Kernel> BindIndexFill(const Call& call, bool host_index) {
  const Operand self = call.In(0);
  const int64_t dim = call.Dim(1, self.dim());
  const Tensor index = host_index ? at::tensor(call.Ints(2), at::kLong) : call.View(2);
  if (!host_index) call.ExpectIndex(2, index);
  const at::Scalar value = call.Number(3);
  const Tensor out = call.Out(4);
  call.ExpectSizes(4, out, self.sizes());
  Target target(out, self.view().scalar_type(), Access::kElementwise, {&self.view()});
  target.Read(index, Access::kFree);
  return MakeKernel([=] {
    target.Write([&](Tensor& result) {
      if (result.data_ptr() != self.view().data_ptr()) result.resize_(self.sizes()).copy_(self());
      f::index_fill_(result, dim, Long(index), value);
    });
  });
}

constexpr const char* kReduceNames[] = {"", "add", "multiply"};

int64_t ReduceCode(const Call& call, int i) {
  const int64_t reduce = call.Int(i);
  if (reduce < 0 || reduce > 2) call.RejectArg(i, "must be 0 (replace), 1 (add) or 2 (multiply)");
  return reduce;
}

// (self, dim, index, src, reduce, out)
std::unique_ptr<Kernel> BindScatter(const Call& call) {
  const int64_t reduce = ReduceCode(call, 4);
  const Operand self = call.In(0), source = call.In(3);
  const int64_t dim = call.Dim(1, self.dim());
  const Tensor index = call.View(2);
  call.ExpectIndex(2, index);
  ExpectSameDtype(call, self.view(), 3, source.view());
  ExpectGatherShapes(call, self.view(), dim, 2, index);
  ExpectGatherShapes(call, source.view(), -1, 2, index);
  const Tensor out = call.Out(5);
  call.ExpectSizes(5, out, self.sizes());
  Target target(out, self.dtype(), Access::kElementwise, {&self.view()});
  target.Read(source.view(), Access::kFree);
  target.Read(index, Access::kFree);
  return MakeKernel([=] {
    target.Write([&](Tensor& result) {
      if (reduce == 0) {
        f::scatter_out(result, self(), dim, Long(index), source());
      } else {
        f::scatter_out(result, self(), dim, Long(index), source(), kReduceNames[reduce]);
      }
    });
  });
}

// (self, dim, index, src, out): sums, as scatter_add of the library does (which differs from
// scatter with "add" in how it treats duplicates of an index).
std::unique_ptr<Kernel> BindScatterAdd(const Call& call) {
  const Operand self = call.In(0), source = call.In(3);
  const int64_t dim = call.Dim(1, self.dim());
  const Tensor index = call.View(2);
  call.ExpectIndex(2, index);
  ExpectSameDtype(call, self.view(), 3, source.view());
  ExpectGatherShapes(call, self.view(), dim, 2, index);
  ExpectGatherShapes(call, source.view(), -1, 2, index);
  const Tensor out = call.Out(4);
  call.ExpectSizes(4, out, self.sizes());
  Target target(out, self.dtype(), Access::kElementwise, {&self.view()});
  target.Read(source.view(), Access::kFree);
  target.Read(index, Access::kFree);
  return MakeKernel([=] {
    target.Write(
        [&](Tensor& result) { f::scatter_add_out(result, self(), dim, Long(index), source()); });
  });
}

// (self, dim, index, src, reduce, includeSelf, out)
std::unique_ptr<Kernel> BindScatterReduce(const Call& call) {
  static constexpr const char* kNames[] = {"", "sum", "prod", "amax", "amin", "mean"};
  const Operand self = call.In(0), source = call.In(3);
  const int64_t dim = call.Dim(1, self.dim()), reduce = call.Int(4);
  const bool include = call.Bool(5);
  if (reduce < 1 || reduce > 5) {
    call.RejectArg(4, "must be 1 (sum), 2 (product), 3 (greatest), 4 (least) or 5 (mean)");
  }
  const Tensor index = call.View(2), out = call.Out(6);
  call.ExpectIndex(2, index);
  ExpectSameDtype(call, self.view(), 3, source.view());
  ExpectGatherShapes(call, self.view(), dim, 2, index);
  ExpectGatherShapes(call, source.view(), -1, 2, index);
  call.ExpectSizes(6, out, self.sizes());
  return MakeKernel([=] {
    out.copy_(at::scatter_reduce(self(), dim, Long(index), source(), kNames[reduce], include));
  });
}

// (self, dim, index, value, reduce, out)
std::unique_ptr<Kernel> BindScatterValue(const Call& call) {
  const Operand self = call.In(0);
  const int64_t dim = call.Dim(1, self.dim());
  const Tensor index = call.View(2);
  const at::Scalar value = call.Number(3);
  const int64_t reduce = ReduceCode(call, 4);
  call.ExpectIndex(2, index);
  ExpectGatherShapes(call, self.view(), dim, 2, index);
  const Tensor out = call.Out(5);
  call.ExpectSizes(5, out, self.sizes());
  Target target(out, self.dtype(), Access::kElementwise, {&self.view()});
  target.Read(index, Access::kFree);
  return MakeKernel([=] {
    target.Write([&](Tensor& result) {
      if (reduce == 0) {
        f::scatter_out(result, self(), dim, Long(index), value);
      } else {
        f::scatter_out(result, self(), dim, Long(index), value, kReduceNames[reduce]);
      }
    });
  });
}

Tensor ReadMask(const Call& call, int i, const Tensor& self) {
  Tensor mask = call.View(i);
  if (mask.scalar_type() != at::kBool && mask.scalar_type() != at::kByte) {
    call.RejectArg(i, "is neither bool nor uint8");
  }
  if (call.Broadcast({mask.sizes(), self.sizes()}) != self.sizes().vec()) {
    call.RejectArg(i, "has shape " + SizesText(mask.sizes()) + ", which does not broadcast to " +
                          SizesText(self.sizes()));
  }
  return mask;
}

Tensor Truth(const Tensor& mask) { return mask.to(at::kBool); }

// (selfRef, mask, value scalar)
std::unique_ptr<Kernel> BindMaskedFill(const Call& call) {
  Tensor self = call.Out(0);
  const Tensor mask = ReadMask(call, 1, self);
  const at::Scalar value = call.Number(2);
  return MakeKernel([=]() mutable { f::masked_fill_(self, Truth(mask), value); });
}

// (selfRef, mask, value tensor of one element)
std::unique_ptr<Kernel> BindMaskedFillTensor(const Call& call) {
  Tensor self = call.Out(0);
  const Tensor mask = ReadMask(call, 1, self);
  Tensor value = call.View(2);
  if (value.numel() != 1) call.RejectArg(2, "must have one element");
  value = value.reshape({});
  if (value.is_complex() && !self.is_complex()) call.RejectArg(2, "is complex and selfRef is not");
  return MakeKernel(
      [=]() mutable { f::masked_fill_(self, Truth(mask), value.to(self.scalar_type())); });
}

// (selfRef, mask, source)
std::unique_ptr<Kernel> BindMaskedScatter(const Call& call) {
  Tensor self = call.Out(0);
  const Tensor mask = ReadMask(call, 1, self), source = call.View(2);
  ExpectSameDtype(call, self, 2, source);
  return MakeKernel([=]() mutable {
    // The library takes the source in the order of self's memory; row by row is what is meant.
    Tensor dense = self.contiguous();
    f::masked_scatter_(dense, Truth(mask), source);
    if (!dense.is_same(self)) self.copy_(dense);
  });
}

// (self, numClasses, onValue, offValue, axis, out)
std::unique_ptr<Kernel> BindOneHot(const Call& call) {
  const Tensor self = call.View(0);
  call.ExpectIndex(0, self);
  const int64_t classes = call.Int(1), rank = self.dim() + 1;
  const Tensor on = call.View(2), off = call.View(3);
  if (on.numel() != 1) call.RejectArg(2, "must have one element");
  if (off.numel() != 1) call.RejectArg(3, "must have one element");
  int64_t axis = call.Int(4);
  if (axis < -rank || axis >= rank) call.RejectArg(4, "is outside of the result's dims");
  if (axis < 0) axis += rank;
  const Tensor out = call.Out(5);
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes.insert(sizes.begin() + axis, classes);
  call.ExpectSizes(5, out, sizes);
  return MakeKernel([=] {
    std::vector<int64_t> ladder(rank, 1);
    ladder[axis] = classes;
    const Tensor hit = self.unsqueeze(axis).eq(at::arange(classes, self.options()).view(ladder));
    out.copy_(at::where(hit, on.reshape({}).to(out.scalar_type()),
                        off.reshape({}).to(out.scalar_type())));
  });
}

// (self, index, out)
std::unique_ptr<Kernel> BindTake(const Call& call) {
  const Operand self = call.In(0);
  const Tensor index = call.View(1), out = call.Out(2);
  call.ExpectIndex(1, index);
  call.ExpectSizes(2, out, index.sizes());
  return MakeKernel([=] { out.copy_(at::take(self(), Long(index))); });
}

// (selfRef, index, source, accumulate): positions count the elements of self in row-major order.
std::unique_ptr<Kernel> BindPut(const Call& call) {
  Tensor self = call.Out(0);
  const Tensor index = call.View(1), source = call.View(2);
  call.ExpectIndex(1, index);
  ExpectSameDtype(call, self, 2, source);
  if (source.numel() != index.numel()) call.RejectArg(2, "must have as many elements as index");
  const bool accumulate = call.Bool(3);
  return MakeKernel([=]() mutable { at::Tensor(self).put_(Long(index), source, accumulate); });
}

}  // namespace

KernelRows IndexRows() {
  const auto index_fill = [](bool host_index) {
    return [=](const Call& call) { return BindIndexFill(call, host_index); };
  };
  return {
      {"aclnnIndexSelect", BindIndexSelect},
      {"aclnnGatherV2", BindGatherV2},
      {"aclnnGatherV3", BindGatherV3},
      {"aclnnEmbedding", BindEmbedding},
      {"aclnnEmbeddingRenorm", BindEmbeddingRenorm},
      {"aclnnEmbeddingDenseBackward", BindEmbeddingBackward},
      {"aclnnGather", BindGather},
      {"aclnnTake", BindTake},
      {"aclnnInplacePut", BindPut},
      {"aclnnIndex", BindIndex},
      {"aclnnIndexPutImpl", BindIndexPut},
      {"aclnnIndexCopy", kAlsoInPlace, BindIndexCopy},
      {"aclnnIndexAdd", BindIndexAdd},
      {"aclnnIndexFill", kAlsoInPlace, index_fill(false)},
      {"aclnnIndexFillTensor", kAlsoInPlace, index_fill(true)},
      {"aclnnScatter", kAlsoInPlace, BindScatter},
      {"aclnnScatterValue", kAlsoInPlace, BindScatterValue},
      {"aclnnScatterAdd", BindScatterAdd},
      {"aclnnScatterReduce", kAlsoInPlace, BindScatterReduce, Widen::kHalfAndBfloat16},
      {"aclnnInplaceMaskedFillScalar", BindMaskedFill},
      {"aclnnInplaceMaskedFillTensor", BindMaskedFillTensor},
      {"aclnnInplaceMaskedScatter", BindMaskedScatter},
      {"aclnnOneHot", BindOneHot},
      {"aclnnEmbeddingBag", BindEmbeddingBag, Widen::kHalfAndBfloat16, {6}},
  };
}

}  // namespace acltape::opapi
