// Reads the rows of sequences out of a cache in blocks. A block outside of the table fails the
// task.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The rows of a sequence begin at a block: where a sequence is read from a later row on, it is the
// begin of the block in which that row lies.
struct Sequences {
  Tensor table, lengths, starts;  // starts: not defined when each is read from its begin
  bool sums = false;              // lengths are sums, from 0 on

  // The rows of a cache with blocks of this length, of all sequences one after the other.
  std::vector<int64_t> Rows(int64_t block) const {
    const Tensor blocks = table.to(at::kLong).contiguous();
    const Tensor counts = lengths.to(at::kLong).contiguous();
    const Tensor from = starts.defined() ? starts.to(at::kLong).contiguous() : Tensor();
    const auto* count = counts.data_ptr<int64_t>();
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < blocks.size(0); ++i) {
      const auto* row = blocks.data_ptr<int64_t>() + i * blocks.size(1);
      const int64_t first = from.defined() ? from.data_ptr<int64_t>()[i] / block : 0;
      const int64_t length = sums ? count[i + 1] - count[i] : count[i];
      for (int64_t j = 0; j < length; ++j) {
        const int64_t place = first + j / block;
        TORCH_CHECK(place >= 0 && place < blocks.size(1), "sequence ", i, " has a row in block ",
                    place, " of its table, which has ", blocks.size(1));
        if (row[place] >= 0) rows.push_back(row[place] * block + j % block);
      }
    }
    return rows;
  }
};

// A cache [blocks, rows, heads, width], and the rows [tokens, heads, width] that are read from it.
struct Gathered {
  Tensor cache, out;

  void Read(const std::vector<int64_t>& rows) const {
    const Tensor taken = cache.reshape({cache.size(0) * cache.size(1), -1})
                             .index_select(0, at::tensor(rows, at::kLong));
    const int64_t count = std::min(taken.size(0), out.size(0));
    Tensor(out)
        .narrow(0, 0, count)
        .copy_(taken.narrow(0, 0, count).reshape(out.narrow(0, 0, count).sizes()));
  }
};

Gathered ReadGathered(const Call& call, int cache_index, int out_index) {
  const Gathered result{call.View(cache_index), call.Out(out_index)};
  call.ExpectRank(cache_index, result.cache, 4);
  if (result.out.scalar_type() != result.cache.scalar_type()) {
    call.RejectArg(out_index, "has another dtype than the cache");
  }
  int64_t width = 1;
  for (int64_t dim = 1; dim < result.out.dim(); ++dim) width *= result.out.size(dim);
  if (result.out.dim() < 2 || width != result.cache.size(2) * result.cache.size(3)) {
    call.RejectArg(out_index, "has shape " + SizesText(result.out.sizes()) +
                                  ", which does not take rows of a cache of shape " +
                                  SizesText(result.cache.sizes()));
  }
  return result;
}

// (keyCache, valueCache, blockTables, seqLens, keyRef, valueRef, seqOffset?, cacheMode,
// isSeqLensCumsum). Entries of a table below 0 are left out, and so are their rows.
std::unique_ptr<Kernel> BindGatherPaKvCache(const Call& call) {
  const std::string mode = call.Text(7);
  if (!mode.empty() && mode != "Norm") {
    call.RejectArg(7, "must be \"Norm\": the soft device reads no caches in fractal layout here");
  }
  Sequences sequences{call.View(2), call.View(3), {}, call.Bool(8)};
  call.ExpectRank(2, sequences.table, 2);
  call.ExpectIndex(2, sequences.table);
  call.ExpectIndex(3, sequences.lengths);
  const int64_t count = sequences.table.size(0);
  call.ExpectSizes(3, sequences.lengths, {sequences.sums ? count + 1 : count});
  if (!call.IsAbsent(6)) {
    sequences.starts = call.View(6);
    call.ExpectIndex(6, sequences.starts);
    call.ExpectSizes(6, sequences.starts, {count});
  }
  const Gathered key = ReadGathered(call, 0, 4), value = ReadGathered(call, 1, 5);
  if (key.cache.sizes().slice(0, 2) != value.cache.sizes().slice(0, 2)) {
    call.RejectArg(1, "has other blocks than the cache of keys");
  }
  return MakeKernel([=] {
    const std::vector<int64_t> rows = sequences.Rows(key.cache.size(1));
    key.Read(rows);
    value.Read(rows);
  });
}

}  // namespace

KernelRows GatherCacheRows() { return {{"aclnnGatherPaKvCache", BindGatherPaKvCache}}; }

}  // namespace acltape::opapi
