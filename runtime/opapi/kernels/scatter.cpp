// Elements and slices at positions in several dims, and caches of keys and values in blocks. A
// position out of range fails the task.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using IndexList = c10::List<c10::optional<Tensor>>;

// The sizes of what `indices` selects of `self`: its last dim holds a position in the first dims of
// `self`, and the rest of those remains.
std::vector<int64_t> SelectedSizes(const Call& call, int i, const Tensor& indices,
                                   at::IntArrayRef self) {
  call.ExpectIndex(i, indices);
  const int64_t depth = indices.dim() == 0 ? 0 : indices.size(-1);
  if (depth < 1 || depth > static_cast<int64_t>(self.size())) {
    call.RejectArg(i, "has shape " + SizesText(indices.sizes()) +
                          ", whose last dim is no position in a tensor of shape " +
                          SizesText(self));
  }
  std::vector<int64_t> sizes(indices.sizes().begin(), indices.sizes().end() - 1);
  sizes.insert(sizes.end(), self.begin() + depth, self.end());
  return sizes;
}

// The index of each dim that `indices` holds positions of.
IndexList DimIndices(const Tensor& indices) {
  IndexList list;
  for (const Tensor& dim : indices.to(at::kLong).unbind(-1)) {
    list.push_back(c10::optional<Tensor>(dim));
  }
  return list;
}

// (self, indices, negativeIndexSupport, out)
std::unique_ptr<Kernel> BindGatherNd(const Call& call) {
  const Tensor self = call.View(0), indices = call.View(1);
  const bool negative = call.Bool(2);
  return BindWhole(call, 3, SelectedSizes(call, 1, indices, self.sizes()), [=] {
    TORCH_CHECK(negative || !indices.lt(0).any().item<bool>(),
                "an index is negative, which negativeIndexSupport does not allow");
    return self.index(DimIndices(indices));
  });
}

void ExpectUpdates(const Call& call, int data_index, const Tensor& data, int indices_index,
                   const Tensor& indices, int updates_index, const Tensor& updates) {
  call.ExpectSizes(updates_index, updates,
                   SelectedSizes(call, indices_index, indices, data.sizes()));
  if (updates.scalar_type() != data.scalar_type()) {
    call.RejectArg(updates_index,
                   "has another dtype than " + std::string(call.Arg(data_index).name));
  }
}

// (varRef, indices, updates): adds each update to the slice that its index names. The indices are
// rows, or positions in several dims when the updates have fewer dims than rows would ask for.
std::unique_ptr<Kernel> BindTfScatterAdd(const Call& call) {
  const Tensor data = call.Out(0), indices = call.View(1), updates = call.View(2);
  ExpectDtypes(call, 0, data,
               {at::kFloat, at::kHalf, at::kBFloat16, at::kInt, at::kChar, at::kByte});
  ExpectDtypes(call, 2, updates, {data.scalar_type()});
  call.ExpectIndex(1, indices);
  if (data.dim() == 0) call.RejectArg(0, "has no dims");
  const bool by_row = updates.dim() == indices.dim() + data.dim() - 1;
  const Tensor positions = by_row ? indices.unsqueeze(-1) : indices;
  call.ExpectSizes(2, updates, SelectedSizes(call, 1, positions, data.sizes()));
  const int64_t depth = positions.size(-1);
  return MakeKernel([=] {
    const Tensor wide = at::isFloatingType(data.scalar_type()) ? data.to(at::kFloat) : data;
    const Tensor sums = wide.clone(at::MemoryFormat::Contiguous);
    const Tensor dims = positions.to(at::kLong).reshape({-1, depth});
    Tensor rows = at::zeros({dims.size(0)}, dims.options());
    for (int64_t i = 0; i < depth; ++i) {
      const Tensor dim = dims.select(1, i);
      TORCH_CHECK(!dim.lt(0).logical_or(dim.ge(data.size(i))).any().item<bool>(),
                  "an index lies outside of varRef");
      rows = rows * data.size(i) + dim;
    }
    if (sums.numel() == 0) return;
    int64_t count = 1;
    for (int64_t i = 0; i < depth; ++i) count *= data.size(i);
    const Tensor slices = sums.view({count, -1});
    slices.index_add_(0, rows,
                      updates.to(sums.scalar_type()).reshape({rows.size(0), slices.size(1)}));
    data.copy_(sums);
  });
}

// (data, indices, updates, out): data with the updates at their positions
std::unique_ptr<Kernel> BindScatterNd(const Call& call) {
  const Tensor data = call.View(0), indices = call.View(1), updates = call.View(2);
  ExpectUpdates(call, 0, data, 1, indices, 2, updates);
  return BindWhole(call, 3, data.sizes(),
                   [=] { return data.clone().index_put_(DimIndices(indices), updates); });
}

// (varRef, indices, updates)
std::unique_ptr<Kernel> BindScatterNdUpdate(const Call& call) {
  const Tensor data = call.Out(0), indices = call.View(1), updates = call.View(2);
  ExpectUpdates(call, 0, data, 1, indices, 2, updates);
  return MakeKernel([=] { Tensor(data).index_put_(DimIndices(indices), updates); });
}

// (data, indices, updates, axis): entry b of the updates goes into entry b of the data, or, with
// two columns of indices, into the entry that the first one names, from the index on along the
// axis.
std::unique_ptr<Kernel> BindInplaceScatterUpdate(const Call& call) {
  const Tensor data = call.Out(0), indices = call.View(1), updates = call.View(2);
  call.ExpectIndex(1, indices);
  const int64_t axis = call.Dim(3, data.dim());
  if (data.dim() < 2 || axis == 0) call.RejectArg(3, "must not be the first dim");
  const bool named = indices.dim() == 2 && indices.size(1) == 2;
  if (!named) call.ExpectRank(1, indices, 1);
  std::vector<int64_t> sizes = data.sizes().vec();
  sizes[0] = indices.size(0);
  if (updates.dim() == data.dim()) sizes[axis] = updates.size(axis);
  call.ExpectSizes(2, updates, sizes);
  if (updates.scalar_type() != data.scalar_type()) call.RejectArg(2, "has another dtype than data");
  return MakeKernel([=] {
    const Tensor positions = indices.to(at::kLong).contiguous();
    const auto* position = positions.data_ptr<int64_t>();
    for (int64_t b = 0; b < updates.size(0); ++b) {
      const int64_t entry = named ? position[2 * b] : b;
      const int64_t first = named ? position[2 * b + 1] : position[b];
      data[entry].narrow(axis - 1, first, updates.size(axis)).copy_(updates[b]);
    }
  });
}

// --- Caches of keys or values: blocks of slots, each slot a row of heads. A negative slot leaves
// its row out, as padded batches of inference need it.

enum class CacheLayout : uint8_t {
  kRows,    // [blocks, slots, heads, width]
  kPieces,  // [blocks, (heads,) pieces of a row, slots, width of a piece]
};

CacheLayout ReadCacheLayout(const Call& call, int i) {
  const std::string mode = call.Text(i);
  if (mode.empty() || mode == "Norm") return CacheLayout::kRows;
  if (mode != "PA_NZ") call.RejectArg(i, "must be \"Norm\" or \"PA_NZ\"");
  return CacheLayout::kPieces;
}

// A cache, and what goes into it.
struct CacheRows {
  Tensor rows, cache;
  CacheLayout layout;

  void Write(const Tensor& slots) const {
    const Tensor all = slots.to(at::kLong), kept = all.ge(0).nonzero().squeeze(1);
    const Tensor used = all.index_select(0, kept);
    const int64_t block = cache.size(layout == CacheLayout::kRows ? 1 : cache.dim() - 2);
    const Tensor blocks = at::floor_divide(used, block);
    IndexList list;
    list.push_back(c10::optional<Tensor>(blocks));
    std::vector<int64_t> sizes{used.size(0)};
    for (int64_t dim = 1; layout == CacheLayout::kPieces && dim < cache.dim() - 2; ++dim) {
      list.push_back(c10::nullopt);
      sizes.push_back(cache.size(dim));
    }
    list.push_back(c10::optional<Tensor>(used - blocks * block));
    const Tensor chosen = rows.index_select(0, kept);
    if (layout == CacheLayout::kRows) {
      Tensor(cache).index_put_(list, chosen);
      return;
    }
    sizes.push_back(cache.size(-1));
    Tensor(cache).index_put_(list, chosen.reshape(sizes));
  }
};

CacheRows ReadCacheRows(const Call& call, int rows_index, int cache_index, const Tensor& slots,
                        CacheLayout layout) {
  const CacheRows result{call.View(rows_index), call.Out(cache_index), layout};
  const Tensor &rows = result.rows, &cache = result.cache;
  call.ExpectRank(rows_index, rows, 3);
  if (rows.size(0) != slots.size(0)) call.RejectArg(rows_index, "has not one row for each slot");
  if (cache.scalar_type() != rows.scalar_type()) {
    call.RejectArg(cache_index, "has another dtype than the rows");
  }
  bool fits = false;
  if (layout == CacheLayout::kRows) {
    fits = cache.dim() == 4 && cache.sizes().slice(2) == rows.sizes().slice(1);
  } else if (cache.dim() == 4) {
    fits = cache.size(1) * cache.size(3) == rows.size(1) * rows.size(2);
  } else if (cache.dim() == 5) {
    fits = cache.size(1) == rows.size(1) && cache.size(2) * cache.size(4) == rows.size(2);
  }
  if (!fits) {
    call.RejectArg(cache_index, "has shape " + SizesText(cache.sizes()) +
                                    ", which does not hold rows of shape " +
                                    SizesText(rows.sizes().slice(1)));
  }
  return result;
}

Tensor ReadSlots(const Call& call, int i) {
  const Tensor slots = call.View(i);
  call.ExpectIndex(i, slots);
  call.ExpectRank(i, slots, 1);
  return slots;
}

void ExpectUncompressed(const Call& call, std::initializer_list<int> positions) {
  for (int i : positions) {
    if (!call.IsAbsent(i)) call.RejectArg(i, "is given; the soft device does not compress caches");
  }
}

// (key, keyCacheRef, slotMapping, value, valueCacheRef, compressLens?, compressSeqOffset?,
// seqLens?, cacheMode, scatterMode, strides, offsets): without a value, of keys only
std::unique_ptr<Kernel> BindScatterPaKvCache(const Call& call) {
  ExpectUncompressed(call, {5, 6, 7});
  const std::string mode = call.Text(9);
  if (!mode.empty() && mode != "None") {
    call.RejectArg(9, "must be \"None\": the soft device has no compressed or strided rows");
  }
  const CacheLayout layout = ReadCacheLayout(call, 8);
  const Tensor slots = ReadSlots(call, 2);
  const CacheRows key = ReadCacheRows(call, 0, 1, slots, layout);
  if (call.View(3).dim() == 0 || call.IsAbsent(3)) return MakeKernel([=] { key.Write(slots); });
  const CacheRows value = ReadCacheRows(call, 3, 4, slots, layout);
  return MakeKernel([=] {
    key.Write(slots);
    value.Write(slots);
  });
}

// (key, keyCacheRef, slotMapping, compressLens?, compressSeqOffset?, seqLens?, cacheMode)
std::unique_ptr<Kernel> BindScatterPaCache(const Call& call) {
  ExpectUncompressed(call, {3, 4, 5});
  const CacheLayout layout = ReadCacheLayout(call, 6);
  const Tensor slots = ReadSlots(call, 2);
  const CacheRows key = ReadCacheRows(call, 0, 1, slots, layout);
  return MakeKernel([=] { key.Write(slots); });
}

}  // namespace

KernelRows ScatterRows() {
  return {
      {"aclnnGatherNd", BindGatherNd},
      {"aclnnTfScatterAdd", BindTfScatterAdd},
      {"aclnnScatterNd", BindScatterNd},
      {"aclnnScatterNdUpdate", BindScatterNdUpdate},
      {"aclnnInplaceScatterUpdate", BindInplaceScatterUpdate},
      {"aclnnScatterPaKvCache", BindScatterPaKvCache},
      {"aclnnScatterPaCache", BindScatterPaCache},
  };
}

}  // namespace acltape::opapi
