// The keys that a query attends to, chosen by scores of quantised heads: what sparse attention of
// vLLM's plug-in takes.
#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/opapi/kernels/quantize.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr int64_t kWidth = 128, kMostKeys = 2048;

// Queries [tokens, heads, width] of sequences that follow each other, or padded ones [sequences,
// tokens, heads, width]; keys likewise, or in blocks [blocks, rows, 1, width] that a table names.
struct Indexer {
  Tensor query, key, weights, query_scale, key_scale, query_ends, key_ends, table, out;
  bool packed_queries = false, packed_keys = false, blocks = false, causal = false;

  int64_t sequences() const {
    if (!packed_queries) return query.size(0);
    return query_ends.size(0);
  }

  // Begin and length of each sequence, where the lengths are sums in packed layouts.
  struct Part {
    int64_t begin, length;
  };
  static std::vector<Part> Parts(const Tensor& ends, bool sums, int64_t count, int64_t padded) {
    std::vector<Part> parts;
    const Tensor numbers = ends.defined() ? ends.to(at::kLong).contiguous() : Tensor();
    for (int64_t i = 0; i < count; ++i) {
      const int64_t end = ends.defined() ? numbers.data_ptr<int64_t>()[i] : padded;
      const int64_t begin = !sums ? i * padded : i == 0 ? 0 : numbers.data_ptr<int64_t>()[i - 1];
      parts.push_back({begin, sums ? end - begin : end});
      TORCH_CHECK(parts.back().length >= 0, "aclnnLightningIndexerQuant: sequence ", i, " has ",
                  parts.back().length, " rows");
    }
    return parts;
  }

  // Rows of the keys or their scales, of all blocks, for a sequence.
  Tensor KeyRows(const Tensor& rows, int64_t sequence, const Part& part) const {
    if (!blocks) {
      TORCH_CHECK(part.begin + part.length <= rows.size(0),
                  "aclnnLightningIndexerQuant: a sequence ends after the keys");
      return rows.narrow(0, part.begin, part.length);
    }
    const int64_t block = key.size(1);
    std::vector<int64_t> places;
    for (int64_t row = 0; row < part.length; ++row) {
      const int64_t column = row / block;
      TORCH_CHECK(column < table.size(1), "aclnnLightningIndexerQuant: sequence ", sequence,
                  " leaves its table of ", table.size(1), " blocks");
      const int64_t id = table[sequence][column].item<int>();
      TORCH_CHECK(id >= 0 && id < key.size(0), "aclnnLightningIndexerQuant: block ", id,
                  " is outside of ", key.size(0));
      places.push_back(id * block + row % block);
    }
    return rows.index_select(0, at::tensor(places, at::kLong));
  }

  // The best keys of one token, whose heads are [heads, width], for keys [rows, width].
  Tensor Best(const Tensor& heads, const Tensor& factors, const Tensor& keys,
              const Tensor& scales) const {
    // Sums of products of int8 are exact in float32; a device keeps them in half, in steps of
    // 2^-10.
    const Tensor products = at::mm(heads.to(at::kFloat), keys.t()).clamp_min(0) / 1024;
    const Tensor scores =
        (products.to(at::kHalf).to(at::kFloat) * factors.unsqueeze(-1)).sum(0) * scales;
    return std::get<1>(at::sort(scores, /*stable=*/c10::optional<bool>(true), /*dim=*/-1,
                                /*descending=*/true));
  }

  void Run() const {
    const int64_t heads = query.size(-2), most = out.size(-1);
    const Tensor tokens = query.reshape({-1, heads, kWidth}), chosen = out.view({-1, most});
    const Tensor factors = (weights.to(at::kFloat) * query_scale.to(at::kFloat))
                               .to(at::kHalf)
                               .to(at::kFloat)
                               .reshape({-1, heads});
    const Tensor all_keys = key.reshape({-1, kWidth}), all_scales = key_scale.reshape({-1});
    const std::vector<Part> of_queries =
        Parts(query_ends, packed_queries, sequences(), packed_queries ? 0 : query.size(1));
    const std::vector<Part> of_keys =
        Parts(key_ends, packed_keys, sequences(), packed_keys || blocks ? 0 : key.size(1));
    if (!packed_queries) chosen.fill_(-1);
    for (int64_t s = 0; s < sequences(); ++s) {
      const Part &part = of_queries[s], &keys_part = of_keys[s];
      TORCH_CHECK(part.begin + part.length <= tokens.size(0),
                  "aclnnLightningIndexerQuant: a sequence ends after the queries");
      const Tensor keys = KeyRows(all_keys, s, keys_part).to(at::kFloat);
      const Tensor scales = KeyRows(all_scales, s, keys_part).to(at::kFloat);
      for (int64_t i = 0; i < part.length; ++i) {
        const int64_t row = part.begin + i;
        const int64_t seen = std::max<int64_t>(
            causal ? keys_part.length - part.length + i + 1 : keys_part.length, 0);
        const Tensor to = chosen[row];
        to.fill_(-1);
        if (seen == 0) continue;
        const Tensor best =
            Best(tokens[row], factors[row], keys.narrow(0, 0, seen), scales.narrow(0, 0, seen));
        const int64_t count = std::min(seen, most);
        to.narrow(0, 0, count).copy_(best.narrow(0, 0, count));
      }
    }
  }
};

Tensor ReadLengths(const Call& call, int i) {
  if (call.IsAbsent(i)) return {};
  Tensor lengths = call.View(i);
  call.ExpectRank(i, lengths, 1);
  if (lengths.scalar_type() != at::kInt) call.RejectArg(i, "is not of dtype int32");
  return lengths;
}

// (query, key, weights, queryDequantScale, keyDequantScale, actualSeqLengthsQuery?,
// actualSeqLengthsKey?, blockTable?, queryQuantMode, keyQuantMode, layoutQuery, layoutKey,
// sparseCount, sparseMode, out): -1 follows the keys of a token that sees fewer.
std::unique_ptr<Kernel> BindLightningIndexerQuant(const Call& call) {
  Indexer of;
  const std::string queries = call.Text(10).empty() ? "BSND" : call.Text(10);
  const std::string keys = call.Text(11).empty() ? "PA_BSND" : call.Text(11);
  if (queries != "BSND" && queries != "TND") call.RejectArg(10, "must be \"BSND\" or \"TND\"");
  if (keys != "PA_BSND" && keys != queries) {
    call.RejectArg(11, "must be \"PA_BSND\" or the layout of the queries");
  }
  of.packed_queries = queries == "TND";
  of.packed_keys = keys == "TND";
  of.blocks = keys == "PA_BSND";
  for (int i : {8, 9}) {
    if (call.Int(i) != 0) call.RejectArg(i, "must be 0");
  }
  if (call.Int(13) != 0 && call.Int(13) != 3) call.RejectArg(13, "must be 0 (all) or 3 (causal)");
  of.causal = call.Int(13) == 3;
  const int64_t most = call.Int(12);
  if (most < 1 || most > kMostKeys) call.RejectArg(12, "must be between 1 and 2048");
  of.query = call.View(0);
  of.key = call.View(1);
  call.ExpectRank(0, of.query, of.packed_queries ? 3 : 4);
  call.ExpectRank(1, of.key, of.packed_keys ? 3 : 4);
  for (int i : {0, 1}) {
    const Tensor& tensor = i == 0 ? of.query : of.key;
    ExpectInt8(call, i, tensor);
    if (tensor.size(-1) != kWidth) call.RejectArg(i, "has heads of another width than 128");
    if (tensor.numel() == 0) call.RejectArg(i, "is empty");
  }
  if (of.key.size(-2) != 1) call.RejectArg(1, "has more than one head");
  of.weights = call.View(2);
  of.query_scale = call.View(3);
  of.key_scale = call.View(4);
  for (int i : {2, 3, 4}) {
    const Tensor& tensor = i == 2 ? of.weights : i == 3 ? of.query_scale : of.key_scale;
    if (tensor.scalar_type() != at::kHalf) call.RejectArg(i, "is not of dtype float16");
    const at::IntArrayRef sizes = i == 4 ? of.key.sizes() : of.query.sizes();
    call.ExpectSizes(i, tensor, sizes.slice(0, sizes.size() - 1));
  }
  of.query_ends = ReadLengths(call, 5);
  of.key_ends = ReadLengths(call, 6);
  if (of.packed_queries && !of.query_ends.defined()) call.RejectArg(5, "is absent");
  if ((of.packed_keys || of.blocks) && !of.key_ends.defined()) call.RejectArg(6, "is absent");
  for (int i : {5, 6}) {
    const Tensor& ends = i == 5 ? of.query_ends : of.key_ends;
    if (ends.defined()) call.ExpectSizes(i, ends, {of.sequences()});
  }
  if (of.blocks == call.IsAbsent(7)) {
    call.RejectArg(7, of.blocks ? "is absent" : "is given without blocks of keys");
  }
  if (of.blocks) {
    of.table = call.View(7);
    call.ExpectRank(7, of.table, 2);
    if (of.table.scalar_type() != at::kInt) call.RejectArg(7, "is not of dtype int32");
    if (of.table.size(0) != of.sequences()) call.RejectArg(7, "has not one row for each sequence");
  }
  if (!of.packed_keys && !of.blocks && of.key.size(0) != of.sequences()) {
    call.RejectArg(1, "has another number of sequences than query");
  }
  of.out = call.Out(14);
  if (of.out.scalar_type() != at::kInt) call.RejectArg(14, "is not of dtype int32");
  std::vector<int64_t> sizes = of.query.sizes().vec();
  sizes[sizes.size() - 2] = 1;
  sizes.back() = most;
  call.ExpectSizes(14, of.out, sizes);
  const Tensor target = of.out;
  return MakeKernel([of, target]() mutable {
    of.out = target.contiguous();
    of.Run();
    if (!of.out.is_same(target)) target.copy_(of.out);
  });
}

}  // namespace

KernelRows QuantizedIndexerRows() {
  return {{"aclnnLightningIndexerQuant", BindLightningIndexerQuant}};
}

}  // namespace acltape::opapi
