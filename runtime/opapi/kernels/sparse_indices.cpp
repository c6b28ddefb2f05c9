// Indices of sparse tensors and of jagged tables.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/whole.h"
#include "runtime/opapi/kernels/within.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// (uniqueLen, uniqueIndices, indices, values, newIndices, newValues): the entries of a sparse
// tensor of which each position occurs once. `uniqueLen` has an element for each entry of the
// result, and only its length counts: torch_npu gives the positions that are left. Entry i, a
// position of [entries, dims] and its values, becomes part of entry uniqueIndices[i] of the result.
// Callers hand over zeros, which a device adds to; the sums begin at 0 here. The vendor's page is
// aclnnCoalesceSparse.
std::unique_ptr<Kernel> BindCoalesceSparse(const Call& call) {
  const Tensor left = call.View(0), target = call.View(1), indices = call.View(2);
  const Tensor values = call.View(3);
  for (int i : {0, 1}) {
    call.ExpectRank(i, call.View(i), 1);
    call.ExpectIndex(i, call.View(i));
  }
  call.ExpectRank(2, indices, 2);
  call.ExpectIndex(2, indices);
  ExpectDtypes(call, 3, values, {at::kFloat, at::kHalf, at::kInt});
  if (values.dim() == 0) call.RejectArg(3, "has no dims");
  const int64_t entries = values.size(0), count = left.size(0);
  call.ExpectSizes(1, target, {entries});
  call.ExpectSizes(2, indices, {entries, indices.size(1)});
  const Tensor new_indices = call.Out(4), new_values = call.Out(5);
  call.ExpectIndex(4, new_indices);
  call.ExpectSizes(4, new_indices, {count, indices.size(1)});
  ExpectDtypes(call, 5, new_values, {values.scalar_type()});
  std::vector<int64_t> sizes = values.sizes().vec();
  sizes[0] = count;
  call.ExpectSizes(5, new_values, sizes);
  return MakeKernel([=] {
    const Tensor entry = Within(target, count, "uniqueIndices");
    const Tensor positions = at::zeros(new_indices.sizes(), indices.options());
    positions.index_copy_(0, entry, indices);
    new_indices.copy_(positions);
    const bool half = values.scalar_type() == at::kHalf;
    const Tensor wide = half ? values.to(at::kFloat) : values;
    const Tensor sums = at::zeros(new_values.sizes(), wide.options());
    sums.index_add_(0, entry, wide);
    new_values.copy_(sums);
  });
}

// (permute, inputOffset, outputOffset, outputSize, outputPermute): table i of the output is table
// permute[i] of the input, and each element says where it was. The offsets say where the tables
// begin and end. The vendor's page is aclnnExpandIntoJaggedPermute.
std::unique_ptr<Kernel> BindExpandJaggedPermute(const Call& call) {
  const Tensor tables = call.View(0), from = call.View(1), to = call.View(2), out = call.Out(4);
  call.ExpectRank(0, tables, 1);
  for (int i : {1, 2}) call.ExpectSizes(i, call.View(i), {tables.size(0) + 1});
  for (int i : {0, 1, 2}) ExpectDtypes(call, i, call.View(i), {at::kInt});
  ExpectDtypes(call, 4, out, {at::kInt});
  const int64_t size = call.Int(3);
  if (size < 0) call.RejectArg(3, "is negative");
  call.ExpectSizes(4, out, {size});
  return MakeKernel([=] {
    const Tensor table = Within(tables, tables.size(0), "permute");
    const Tensor first = from.to(at::kLong).contiguous(), ends = to.to(at::kLong).contiguous();
    const Tensor places = at::zeros({size}, at::TensorOptions(at::kLong));
    for (int64_t i = 0; i < table.numel(); ++i) {
      const int64_t begin = ends.data_ptr<int64_t>()[i], end = ends.data_ptr<int64_t>()[i + 1];
      TORCH_CHECK(begin >= 0 && begin <= end && end <= size, "outputOffset has the table ", begin,
                  " to ", end, ", which is out of range for ", size);
      const int64_t start = first.data_ptr<int64_t>()[table.data_ptr<int64_t>()[i]];
      places.narrow(0, begin, end - begin).copy_(at::arange(start, start + end - begin));
    }
    out.copy_(places);
  });
}

}  // namespace

KernelRows SparseIndexRows() {
  return {
      {"aclnnCoalesceSparse", BindCoalesceSparse},
      {"aclnnExpandIntoJaggedPermute", BindExpandJaggedPermute},
  };
}

}  // namespace acltape::opapi
