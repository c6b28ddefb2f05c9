#include "runtime/opapi/kernels/embedding_bag.h"

#include <ATen/ATen.h>

#include "runtime/opapi/kernels/optional.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr int64_t kSumOfBag = 0, kMeanOfBag = 1, kMaximumOfBag = 2;

// Positions in `indices` belong to the last bag that starts at or before them.
Tensor BagOfEachIndex(const Tensor& offsets, int64_t count) {
  const Tensor positions = at::arange(count, at::TensorOptions(at::kLong));
  return at::searchsorted(offsets, positions, /*out_int32=*/false, /*right=*/true).sub_(1);
}

// The number of indices in each bag. Those that are the padding do not count.
Tensor SizesOfBags(const Tensor& bag_of, const Tensor& indices, int64_t padding, int64_t bags) {
  return at::bincount(bag_of.masked_select(indices.ne(padding)), {}, bags).narrow(0, 0, bags);
}

// Gives the result of each bag, and the rows that maxima come from.
std::tuple<Tensor, Tensor> ReadBags(const Tensor& weight, const Tensor& indices,
                                    const Tensor& offsets, int64_t mode,
                                    const OptionalTensor& factors, bool has_end, int64_t padding) {
  const auto result =
      at::_embedding_bag(weight, indices, offsets, /*scale_grad_by_freq=*/false, mode,
                         /*sparse=*/false, factors, has_end, padding);
  return {std::get<0>(result), std::get<3>(result)};
}

void ExpectBagIndex(const Call& call, int i, const Tensor& index) {
  call.ExpectIndex(i, index);
  call.ExpectRank(i, index, 1);
}

}  // namespace

// (weight, indices, offsets, scaleGradByFreq, mode, sparse, perSampleWeights?, includeLastOffset,
// paddingIdx, output, offset2bag, bagSize, maxIndices). The two flags about gradients change
// nothing here. offset2bag may be empty, which says that the caller does not need it.
std::unique_ptr<Kernel> BindEmbeddingBag(const Call& call) {
  const Operand weight = call.In(0), factors = call.OptionalIn(6);
  const Tensor indices = call.View(1), offsets = call.View(2);
  ExpectFloats(call, 0, weight.view());
  call.ExpectRank(0, weight.view(), 2);
  ExpectBagIndex(call, 1, indices);
  ExpectBagIndex(call, 2, offsets);
  const int64_t mode =
      call.Int(4) == kSumOfBag || call.Int(4) == kMeanOfBag ? call.Int(4) : kMaximumOfBag;
  if (factors.defined()) {
    if (mode != kSumOfBag) call.RejectArg(6, "is given, which only mode 0 (sum) allows");
    call.ExpectSizes(6, factors.view(), indices.sizes());
    if (factors.view().scalar_type() != weight.view().scalar_type()) {
      call.RejectArg(6, "has another dtype than weight");
    }
  }
  const bool has_end = call.Bool(7);
  const int64_t padding = call.Int(8), bags = offsets.size(0) - (has_end ? 1 : 0);
  if (bags < 0) call.RejectArg(2, "is empty, but includeLastOffset asks for one entry");

  const Tensor out = call.Out(9), bag_of = call.Out(10), sizes = call.Out(11), rows = call.Out(12);
  const std::vector<int64_t> out_sizes{bags, weight.sizes()[1]};
  call.ExpectSizes(9, out, out_sizes);
  if (bag_of.numel() != 0) call.ExpectSizes(10, bag_of, indices.sizes());
  call.ExpectSizes(11, sizes, {bags});
  call.ExpectSizes(12, rows, mode == kMaximumOfBag ? out_sizes : std::vector<int64_t>{bags});
  for (int i : {10, 11, 12}) call.ExpectIndex(i, call.View(i));
  return MakeKernel([=] {
    if (bags == 0) return;
    // The library reads both as if they were dense.
    const Tensor index = indices.to(at::kLong).contiguous(),
                 starts = offsets.to(at::kLong).contiguous();
    const Tensor bag = BagOfEachIndex(starts.narrow(0, 0, bags), index.size(0));
    if (bag_of.numel() != 0) bag_of.copy_(bag);
    sizes.copy_(SizesOfBags(bag, index, padding, bags));
    // The library writes past its results where indices come after the end of the last bag.
    const int64_t end = has_end ? starts[-1].item<int64_t>() : index.size(0);
    TORCH_CHECK(end >= 0 && end <= index.size(0), "aclnnEmbeddingBag: the last bag ends at ", end,
                " of ", index.size(0), " indices");
    const OptionalTensor each =
        factors.defined() ? OptionalTensor(factors().narrow(0, 0, end)) : c10::nullopt;
    const auto [result, chosen] =
        ReadBags(weight(), index.narrow(0, 0, end), starts, mode, each, has_end, padding);
    out.copy_(result);
    // Only the maximum chooses rows; the output of the other modes holds zeros.
    if (mode == kMaximumOfBag) {
      rows.copy_(chosen);
    } else {
      Tensor(rows).zero_();
    }
  });
}

}  // namespace acltape::opapi
