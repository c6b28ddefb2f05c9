// Rows of one tensor that go to tensors of a list: to each a run of rows, from a place of its own.
#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>

#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

struct RowRun {
  int64_t start, length;
};

// The run of member `i`: its start, and its length where `places` has columns for both.
RowRun RunOf(const Tensor& places, int64_t i, int64_t length) {
  if (places.dim() == 1) return {places[i].item<int64_t>(), length};
  return {places[i][0].item<int64_t>(), places[i][1].item<int64_t>()};
}

// (varRef, indice, updates, mask?, reduce, axis): updates[i] overwrite rows of varRef[i] from
// indice[i] on, or those that indice[i] counts. A mask of 0 leaves its tensor as it is. The axis is
// one of updates, whose first dim counts the tensors.
std::unique_ptr<Kernel> BindScatterList(const Call& call) {
  const std::vector<Tensor> vars = call.ListBits(0);
  const Tensor places = call.View(1), updates = call.Bits(2);
  const auto count = static_cast<int64_t>(vars.size());
  if (count == 0) call.RejectArg(0, "is empty");
  for (const Tensor& var : vars) {
    ExpectDtypes(
        call, 0, var,
        {at::kChar, at::kShort, at::kInt, at::kByte, at::kHalf, at::kBFloat16, at::kFloat});
    if (var.scalar_type() != updates.scalar_type()) {
      call.RejectArg(2, "has another dtype than varRef");
    }
    if (var.sizes() != vars[0].sizes()) call.RejectArg(0, "has tensors of different shapes");
    if (at::has_internal_overlap(var) == at::MemOverlap::Yes) {
      call.RejectArg(0, "holds an output of which several elements share memory");
    }
  }
  call.ExpectRank(2, updates, vars[0].dim() + 1);
  const int64_t axis = call.Int(5) < 0 ? call.Int(5) + updates.dim() : call.Int(5);
  if (axis < 1 || axis >= updates.dim()) {
    call.RejectArg(5, "must name a dim of updates other than the first");
  }
  std::vector<int64_t> sizes = vars[0].sizes().vec();
  sizes.insert(sizes.begin(), count);
  if (updates.size(axis) > sizes[axis]) call.RejectArg(2, "has more rows than varRef");
  sizes[axis] = updates.size(axis);
  call.ExpectSizes(2, updates, sizes);
  call.ExpectIndex(1, places);
  if (places.dim() == 2) call.ExpectSizes(1, places, {count, 2});
  if (places.dim() != 2) call.ExpectSizes(1, places, {count});
  Tensor mask;
  if (!call.IsAbsent(3)) {
    mask = call.View(3);
    ExpectDtypes(call, 3, mask, {at::kByte});
    call.ExpectSizes(3, mask, {count});
  }
  if (call.Text(4) != "update") call.RejectArg(4, "must be \"update\"");
  return MakeKernel([=] {
    const int64_t most = updates.size(axis), room = vars[0].size(axis - 1);
    for (int64_t i = 0; i < count; ++i) {
      if (mask.defined() && mask[i].item<uint8_t>() == 0) continue;
      const RowRun run = RunOf(places, i, most);
      TORCH_CHECK(run.length >= 0 && run.length <= most, "aclnnScatterList: tensor ", i,
                  " is given ", run.length, " rows of ", most);
      TORCH_CHECK(run.start >= 0 && run.start <= room - run.length, "aclnnScatterList: tensor ", i,
                  " has ", room, " rows, which do not hold ", run.length, " from ", run.start);
      vars[i]
          .narrow(axis - 1, run.start, run.length)
          .copy_(updates[i].narrow(axis - 1, 0, run.length));
    }
  });
}

}  // namespace

KernelRows ScatterListRows() { return {{"aclnnScatterList", BindScatterList}}; }

}  // namespace acltape::opapi
