#include "runtime/opapi/kernels/key_rows.h"

namespace acltape::opapi {

using at::Tensor;

namespace {

// The rows of one block of a cache of any of its three shapes.
int64_t BlockRows(const Tensor& cache) {
  return cache.size(cache.dim() == 3 ? 1 : cache.dim() - 2);
}

int64_t BlockWidth(const Tensor& cache, int64_t heads) {
  return cache.dim() == 3   ? cache.size(2) / heads
         : cache.dim() == 4 ? cache.size(3)
                            : cache.size(2) * cache.size(4);
}

}  // namespace

KeyRows RowsOfBatches(std::vector<Tensor> batches) {
  const int64_t heads = batches.at(0).size(1), width = batches[0].size(3);
  return {heads, width, [batches = std::move(batches)](const KeyPlace& place) {
            return batches[place.batch].narrow(2, place.first, place.count);
          }};
}

KeyRows RowsInBlocks(const Tensor& cache, int64_t heads) {
  const int64_t width = BlockWidth(cache, heads);
  return {heads, width, [=](const KeyPlace& place) {
            Tensor picked = cache.index_select(0, place.blocks);
            if (cache.dim() == 3) picked = picked.unflatten(-1, {heads, width}).transpose(1, 2);
            if (cache.dim() == 5) picked = picked.transpose(2, 3).flatten(3);
            const Tensor rows = picked.transpose(0, 1).flatten(1, 2);
            return rows.narrow(1, place.first, place.count).unsqueeze(0);
          }};
}

KeyRows After(const KeyRows& rows, const KeyRows& first, int64_t count) {
  return {rows.heads, rows.width, [=](const KeyPlace& place) {
            return at::cat({first.at({.count = count}), rows.at(place)}, 2);
          }};
}

KeyRows WithColumns(const KeyRows& rows, const KeyRows& more) {
  return {rows.heads, rows.width + more.width, [=](const KeyPlace& place) {
            return at::cat({rows.at(place), more.at(place)}, -1);
          }};
}

std::vector<Tensor> KeyTensors(const Call& call, int i) {
  if (call.Arg(i).kind == acl::ArgKind::kTensorList) return call.Views(i);
  return {call.View(i)};
}

std::vector<Tensor> ReadKeyBatches(const Call& call, int i, const HeadLayout& layout,
                                   int64_t batches, int64_t heads) {
  std::vector<Tensor> split;
  for (const Tensor& view : KeyTensors(call, i))
    split.push_back(layout.Split(call, i, view, heads));
  if (split.size() == 1 && batches != 1) {
    const Tensor all = split[0];
    if (all.size(0) != batches) call.RejectArg(i, "has another batch than query");
    split.clear();
    for (int64_t b = 0; b < batches; ++b) split.push_back(all.narrow(0, b, 1));
  }
  if (static_cast<int64_t>(split.size()) != batches) {
    call.RejectArg(i,
                   "needs one tensor, or one for each of " + std::to_string(batches) + " batches");
  }
  return split;
}

Tensor ReadKeyBlocks(const Call& call, int i, int64_t heads, int64_t rows) {
  const std::vector<Tensor> views = KeyTensors(call, i);
  if (views.size() != 1) call.RejectArg(i, "must be one cache where a table of blocks is given");
  const Tensor cache = views[0];
  const int64_t dim = cache.dim();
  const bool divides = dim == 3 ? cache.size(2) % heads == 0 : dim > 1 && cache.size(1) == heads;
  if (dim < 3 || dim > 5 || !divides || BlockRows(cache) != rows) {
    call.RejectArg(i, "has shape " + SizesText(cache.sizes()) + ", which is no cache of " +
                          std::to_string(heads) + " heads in blocks of " + std::to_string(rows));
  }
  return cache;
}

}  // namespace acltape::opapi
