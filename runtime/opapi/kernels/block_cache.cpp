// Caches in blocks, as servers of language models keep them: rows that are written by slot, by runs
// of slots or by index, blocks whose heads came in parts, and the slots of compressed rows. A row
// outside of its cache fails the task.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

void ExpectDense(const Call& call, int i, const Tensor& tensor) {
  if (!tensor.is_contiguous()) call.RejectArg(i, "is not dense");
}

Tensor ReadInts(const Call& call, int i) {
  Tensor numbers = call.View(i);
  call.ExpectRank(i, numbers, 1);
  ExpectDtypes(call, i, numbers, {at::kInt});
  return numbers;
}

// The numbers of a tensor of integers when the task runs.
std::vector<int64_t> ValuesOf(const Tensor& numbers) {
  const Tensor wide = numbers.to(at::kLong).contiguous();
  return {wide.data_ptr<int64_t>(), wide.data_ptr<int64_t>() + wide.numel()};
}

// (keyIn [rows, width], keyCacheIn [blocks, heads, block, width], slotMapping, seqLen, out): the
// tokens of a sequence come head by head. `keyCacheIn` gives the shape; `out` is the cache.
std::unique_ptr<Kernel> BindReshapeAndCacheBnsd(const Call& call) {
  const Tensor key = call.View(0), like = call.View(1), out = call.Out(4);
  const Tensor slots = ReadInts(call, 2), lengths = ReadInts(call, 3);
  call.ExpectRank(0, key, 2);
  call.ExpectRank(1, like, 4);
  // The plug-in's kernel counts bytes where its shapes count elements.
  for (int i : {0, 1, 4}) ExpectDtypes(call, i, i == 4 ? out : call.View(i), {at::kByte});
  if (key.size(1) != like.size(3)) call.RejectArg(0, "has other columns than the cache");
  call.ExpectSizes(4, out, like.sizes());
  return MakeKernel([=] {
    const int64_t heads = out.size(1), block = out.size(2);
    const std::vector<int64_t> slot = ValuesOf(slots);
    std::vector<int64_t> rows, blocks, places;
    int64_t token = 0;
    for (const int64_t length : ValuesOf(lengths)) {
      TORCH_CHECK(length >= 0 && token + length <= static_cast<int64_t>(slot.size()),
                  "aclnnReshapeAndCacheBnsd: a sequence of ", length, " tokens begins at slot ",
                  token, " of ", slot.size());
      TORCH_CHECK((token + length) * heads <= key.size(0),
                  "aclnnReshapeAndCacheBnsd: keyIn has only ", key.size(0), " rows");
      for (int64_t t = 0; t < length; ++t) {
        const int64_t to = slot[token + t];
        TORCH_CHECK(to >= 0 && to < out.size(0) * block, "aclnnReshapeAndCacheBnsd: slot ", to,
                    " is outside of the cache of ", out.size(0) * block);
        blocks.push_back(to / block);
        places.push_back(to % block);
        for (int64_t head = 0; head < heads; ++head) {
          rows.push_back(token * heads + head * length + t);
        }
      }
      token += length;
    }
    if (rows.empty()) return;
    const Tensor taken = key.index_select(0, at::tensor(rows, at::kLong));
    Tensor(out).transpose(1, 2).index_put_(
        {at::tensor(blocks, at::kLong), at::tensor(places, at::kLong)},
        taken.reshape({static_cast<int64_t>(blocks.size()), heads, out.size(3)}));
  });
}

// (keyIn [tokens, ...], keyCacheIn, groupLen, groupKeyIdx, groupKeyCacheIdx, blockSize): runs of
// rows, each from its first row of keys to its first row of the cache. A run without rows or with
// a begin below 0 is left out.
std::unique_ptr<Kernel> BindStoreKvBlock(const Call& call) {
  const Tensor key = call.View(0), cache = call.Out(1);
  const Tensor lengths = ReadInts(call, 2), from = ReadInts(call, 3), to = ReadInts(call, 4);
  const int64_t most = call.Int(5);
  for (int i : {0, 1}) {
    const Tensor& tensor = i == 0 ? key : cache;
    if (tensor.dim() < 2 || tensor.dim() > 7) call.RejectArg(i, "must have 2 to 7 dims");
    ExpectDtypes(call, i, tensor, {at::kChar, at::kHalf, at::kBFloat16});
  }
  if (cache.scalar_type() != key.scalar_type()) call.RejectArg(1, "has another dtype than keyIn");
  ExpectDense(call, 1, cache);
  for (int i : {3, 4}) call.ExpectSizes(i, i == 3 ? from : to, lengths.sizes());
  if (most < 1) call.RejectArg(5, "must be at least 1");
  int64_t width = 1;
  for (int64_t dim = 1; dim < key.dim(); ++dim) width *= key.size(dim);
  if (width == 0 || cache.numel() % width != 0) call.RejectArg(1, "does not hold rows of keyIn");
  return MakeKernel([=] {
    const Tensor given = key.reshape({-1, width}), rows = cache.view({-1, width});
    const std::vector<int64_t> count = ValuesOf(lengths), first = ValuesOf(from);
    const std::vector<int64_t> place = ValuesOf(to);
    for (size_t i = 0; i < count.size(); ++i) {
      if (count[i] <= 0 || first[i] < 0 || place[i] < 0) continue;
      TORCH_CHECK(count[i] <= most, "aclnnStoreKVBlock: run ", i, " has ", count[i],
                  " rows, a block has ", most);
      TORCH_CHECK(first[i] + count[i] <= given.size(0), "aclnnStoreKVBlock: run ", i,
                  " ends after the ", given.size(0), " rows of keyIn");
      TORCH_CHECK(place[i] + count[i] <= rows.size(0), "aclnnStoreKVBlock: run ", i,
                  " ends after the ", rows.size(0), " rows of the cache");
      rows.narrow(0, place[i], count[i]).copy_(given.narrow(0, first[i], count[i]));
    }
  });
}

// (slotMapping, groupLen, groupKeyIdx, groupKeyCacheIdx, blockSize): the runs of slots that follow
// each other within a block, as aclnnStoreKVBlock takes them. Slots below 0 are left out; zeros
// follow the last run.
std::unique_ptr<Kernel> BindStoreKvBlockMetadata(const Call& call) {
  const Tensor slots = ReadInts(call, 0);
  const int64_t block = call.Int(4);
  std::vector<Tensor> outs;
  for (int i : {1, 2, 3}) {
    outs.push_back(call.Out(i));
    call.ExpectRank(i, outs.back(), 1);
    ExpectDtypes(call, i, outs.back(), {at::kInt});
    call.ExpectSizes(i, outs.back(), outs[0].sizes());
  }
  if (slots.numel() == 0) call.RejectArg(0, "is empty");
  if (block < 1) call.RejectArg(4, "must be at least 1");
  return MakeKernel([=] {
    const std::vector<int64_t> slot = ValuesOf(slots);
    std::vector<int64_t> made[3];
    for (size_t i = 0; i < slot.size(); ++i) {
      if (slot[i] < 0) continue;
      const bool follows = i > 0 && slot[i] == slot[i - 1] + 1 && slot[i] % block != 0;
      if (!follows) {
        made[0].push_back(0);
        made[1].push_back(static_cast<int64_t>(i));
        made[2].push_back(slot[i]);
      }
      ++made[0].back();
    }
    const auto count = static_cast<int64_t>(made[0].size());
    for (size_t i = 0; i < outs.size(); ++i) {
      TORCH_CHECK(count <= outs[i].size(0), "aclnnStoreKvBlockMetadata: there are ", count,
                  " runs, the results hold ", outs[i].size(0));
      outs[i].narrow(0, 0, count).copy_(at::tensor(made[i], at::kLong));
      outs[i].narrow(0, count, outs[i].size(0) - count).zero_();
    }
  });
}

// (kCache, vCache, blockIDs, blockSize, headNum, headDim, splitNum, layerNum): blocks that hold
// their heads in parts, one after the other, get them row by row. Keys and values have one width.
std::unique_ptr<Kernel> BindTransposeKvCacheByBlock(const Call& call) {
  const int64_t rows = call.Int(3), heads = call.Int(4), width = call.Int(5);
  const int64_t parts = call.Int(6), layers = call.Int(7);
  if (rows < 1) call.RejectArg(3, "must be at least 1");
  if (parts < 1) call.RejectArg(6, "must be at least 1");
  if (heads < 1 || heads % parts != 0) call.RejectArg(4, "is not a multiple of splitNum");
  if (width < 1 || width % 16 != 0) call.RejectArg(5, "is not a multiple of 16");
  const Tensor ids = call.View(2);
  call.ExpectRank(2, ids, 1);
  ExpectDtypes(call, 2, ids, {at::kLong});
  std::vector<Tensor> caches;
  for (int i : {0, 1}) {
    const std::vector<Tensor> members = call.Outs(i);
    if (static_cast<int64_t>(members.size()) != layers) {
      call.RejectArg(i, "has not one tensor for each layer");
    }
    for (const Tensor& cache : members) {
      ExpectDtypes(call, i, cache, {at::kHalf, at::kBFloat16});
      ExpectDense(call, i, cache);
      if (cache.numel() % (rows * heads * width) != 0) call.RejectArg(i, "does not hold blocks");
      caches.push_back(cache.view({-1, parts, rows, heads / parts * width}));
    }
  }
  return MakeKernel([=] {
    for (const int64_t id : ValuesOf(ids)) {
      for (const Tensor& cache : caches) {
        TORCH_CHECK(id >= 0 && id < cache.size(0), "aclnnTransposeKvCacheByBlock: block ", id,
                    " is outside of the ", cache.size(0), " of a cache");
        const Tensor block = cache[id];
        block.copy_(block.transpose(0, 1).contiguous().view(block.sizes()));
      }
    }
  });
}

// (varRef, indices [..., n], updates, strides): each index names a place of the first n dims by
// their strides, and the elements of the other dims are written there. An index whose place lies
// outside of the tensor's memory is left out; of equal ones the last counts.
std::unique_ptr<Kernel> BindScatterNdUpdateV2(const Call& call) {
  const Tensor var = call.Out(0), indices = call.View(1), updates = call.View(2);
  const std::vector<int64_t> strides = call.Ints(3);
  ExpectDtypes(call, 0, var,
               {at::kHalf, at::kFloat, at::kBFloat16, at::kBool, at::kLong, at::kInt, at::kShort,
                at::kChar});
  ExpectDtypes(call, 1, indices, {at::kInt, at::kLong});
  if (updates.scalar_type() != var.scalar_type()) {
    call.RejectArg(2, "has another dtype than varRef");
  }
  if (indices.dim() < 1) call.RejectArg(1, "has no dims");
  const int64_t named = indices.size(-1);
  if (named < 1 || named > var.dim()) {
    call.RejectArg(1, "has a last dim that is not between 1 and the dims of varRef");
  }
  if (static_cast<int64_t>(strides.size()) < named) call.RejectArg(3, "has too few entries");
  int64_t width = 1, span = 0;
  for (int64_t dim = var.dim(); dim-- > named;) {
    if (var.size(dim) != 1 && var.stride(dim) != width) {
      call.RejectArg(0, "is not dense after the dims that indices name");
    }
    width *= var.size(dim);
  }
  for (int64_t dim = 0; dim < named; ++dim) {
    if (var.size(dim) > 1 && strides[dim] != var.stride(dim)) {
      call.RejectArg(3, "are not those of varRef");
    }
    span += (var.size(dim) - 1) * strides[dim];
  }
  const int64_t rows = indices.numel() / named;
  if (updates.numel() != rows * width) call.RejectArg(2, "has not one row for each index");
  if (var.numel() == 0 || rows == 0) return MakeKernel([] {});
  return MakeKernel([=] {
    const std::vector<int64_t> index = ValuesOf(indices);
    const Tensor given = updates.contiguous();
    const size_t bytes = given.element_size() * static_cast<size_t>(width);
    const auto* from = static_cast<const char*>(given.data_ptr());
    auto* to = static_cast<char*>(var.data_ptr());
    for (int64_t row = 0; row < rows; ++row) {
      int64_t place = 0;
      for (int64_t dim = 0; dim < named; ++dim) place += index[row * named + dim] * strides[dim];
      if (place < 0 || place >= span + width) continue;
      TORCH_CHECK(place <= span, "aclnnScatterNdUpdateV2: index ", row,
                  " names a row that ends after varRef");
      std::copy_n(from + static_cast<size_t>(row) * bytes, bytes,
                  to + static_cast<size_t>(place) * given.element_size());
    }
  });
}

// One row of keys that are compressed to one of `ratio`: its request, and its place there.
struct CompressedRow {
  int64_t request, position;
};

// The rows that become complete with the tokens of each request, which begin at `starts`.
std::vector<CompressedRow> CompleteRows(const std::vector<int64_t>& ends,
                                        const std::vector<int64_t>& starts, int64_t requests,
                                        int64_t ratio) {
  std::vector<CompressedRow> rows;
  for (int64_t request = 0; request < requests; ++request) {
    const int64_t start = starts[request], length = ends[request + 1] - ends[request];
    if (start < 0 || length <= 0) continue;
    for (int64_t row = start / ratio; row < (start + length) / ratio; ++row) {
      rows.push_back({request, row});
    }
  }
  return rows;
}

// (ropeCos, ropeSin, cuSeqlens, startPos, kvBlockTable, kvBlockSize, slotMappingFormat, cmpRatio,
// actualNumReqs, compressCos, compressSin, slotMapping): angles and slots of the rows that become
// complete. A row without a slot, and those after the last one, get the angle 0 and a slot of -1.
std::unique_ptr<Kernel> BindCompressorMetadata(const Call& call) {
  const Tensor cosine = call.View(0), sine = call.View(1), table = call.View(4);
  const Tensor ends = ReadInts(call, 2), starts = ReadInts(call, 3);
  const int64_t block = call.Int(5), format = call.Int(6), ratio = call.Int(7);
  const int64_t requests = call.Int(8);
  const Tensor cosines = call.Out(9), sines = call.Out(10), slots = call.Out(11);
  call.ExpectRank(0, cosine, 2);
  call.ExpectSizes(1, sine, cosine.sizes());
  if (cosine.numel() == 0) call.RejectArg(0, "is empty");
  call.ExpectRank(4, table, 2);
  ExpectDtypes(call, 0, cosine, {at::kFloat, at::kHalf, at::kBFloat16});
  ExpectDtypes(call, 4, table, {at::kInt});
  ExpectDtypes(call, 11, slots, {at::kInt});
  for (int i : {1, 9, 10}) ExpectDtypes(call, i, call.View(i), {cosine.scalar_type()});
  if (block < 1) call.RejectArg(5, "must be at least 1");
  if (format != 1 && format != 2) call.RejectArg(6, "must be 1 (slots) or 2 (blocks and places)");
  if (ratio < 1) call.RejectArg(7, "must be at least 1");
  if (requests < 1) call.RejectArg(8, "must be at least 1");
  if (ends.size(0) <= requests) call.RejectArg(2, "has too few entries for actualNumReqs");
  if (starts.size(0) < requests) call.RejectArg(3, "has too few entries for actualNumReqs");
  if (table.size(0) < requests) call.RejectArg(4, "has too few rows for actualNumReqs");
  if (cosines.dim() < 2 || cosines.size(0) == 0 ||
      cosines.numel() != cosines.size(0) * cosine.size(1) || cosines.size(-1) != cosine.size(1)) {
    call.RejectArg(9, "does not hold rows of ropeCos");
  }
  const int64_t count = cosines.size(0);
  call.ExpectSizes(10, sines, cosines.sizes());
  call.ExpectSizes(11, slots, format == 2 ? at::IntArrayRef({count, 2}) : at::IntArrayRef(count));
  return MakeKernel([=] {
    const std::vector<CompressedRow> rows =
        CompleteRows(ValuesOf(ends), ValuesOf(starts), requests, ratio);
    const std::vector<int64_t> blocks = ValuesOf(table);
    std::vector<int64_t> from(count, 0), made;
    std::vector<bool> found(count, false);
    for (int64_t i = 0; i < count; ++i) {
      int64_t id = -1, place = block - 1;
      if (i < static_cast<int64_t>(rows.size())) {
        const auto [request, position] = rows[i];
        const int64_t column = position / block;
        const bool known = column < table.size(1) && position * ratio < cosine.size(0);
        const int64_t entry = known ? blocks[request * table.size(1) + column] : -1;
        found[i] = entry >= 0 && (format == 2 || entry * block + position % block <=
                                                     std::numeric_limits<int32_t>::max());
        if (found[i]) {
          id = entry;
          place = position % block;
          from[i] = position * ratio;
        }
      }
      if (format == 2) made.insert(made.end(), {id, place});
      if (format == 1) made.push_back(found[i] ? id * block + place : -1);
    }
    const Tensor places = at::tensor(from, at::kLong);
    const Tensor lost = at::zeros({count, 1}, at::kBool);
    for (int64_t i = 0; i < count; ++i) lost.data_ptr<bool>()[i] = !found[i];
    cosines.copy_(cosine.index_select(0, places).masked_fill(lost, 1).view(cosines.sizes()));
    sines.copy_(sine.index_select(0, places).masked_fill(lost, 0).view(sines.sizes()));
    slots.copy_(at::tensor(made, at::kLong).view(slots.sizes()));
  });
}

}  // namespace

KernelRows BlockCacheRows() {
  return {
      {"aclnnReshapeAndCacheBnsd", BindReshapeAndCacheBnsd},
      {"aclnnStoreKVBlock", BindStoreKvBlock},
      {"aclnnStoreKvBlockMetadata", BindStoreKvBlockMetadata},
      {"aclnnTransposeKvCacheByBlock", BindTransposeKvCacheByBlock},
      {"aclnnScatterNdUpdateV2", BindScatterNdUpdateV2},
      {"aclnnCompressorMetadata", BindCompressorMetadata},
  };
}

}  // namespace acltape::opapi
