// The keys that a query attends to, chosen by scores of quantised heads: what sparse attention of
// vLLM's plug-in takes.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "runtime/opapi/kernels/core_plan.h"
#include "runtime/opapi/kernels/quantize.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr int64_t kWidth = 128, kMostKeys = 2048;

// Where the operators have their arguments; the first eight are those of both.
struct IndexerArguments {
  int modes;  // how queries and keys are quantised; layouts, count and mask follow
  int out;
  int metadata = -1;  // how a device shares out the work
  int before = -1;    // tokens before and after, which are reserved
  int ratio = -1;     // one key stands for so many tokens
  int values = -1;    // asks for the scores
};
constexpr IndexerArguments kIndexer = {.modes = 8, .out = 14};
constexpr IndexerArguments kPluginIndexer = {
    .modes = 9, .out = 21, .metadata = 8, .before = 15, .ratio = 17, .values = 18};

// Queries [tokens, heads, width] of sequences that follow each other, or padded ones [sequences,
// tokens, heads, width]; keys likewise, or in blocks [blocks, rows, 1, width] that a table names.
struct Indexer {
  Tensor query, key, weights, query_scale, key_scale, query_ends, key_ends, table, out;
  bool packed_queries = false, packed_keys = false, blocks = false, causal = false;
  int64_t ratio = 1;  // lengths of keys count tokens, of which one key stands for so many
  std::string op;

  int64_t sequences() const {
    if (!packed_queries) return query.size(0);
    return query_ends.size(0);
  }

  // Begin and length of each sequence, where the lengths are sums in packed layouts.
  struct Part {
    int64_t begin, length;
  };
  std::vector<Part> Parts(const Tensor& ends, bool sums, int64_t count, int64_t padded) const {
    std::vector<Part> parts;
    const Tensor numbers = ends.defined() ? ends.to(at::kLong).contiguous() : Tensor();
    for (int64_t i = 0; i < count; ++i) {
      const int64_t end = ends.defined() ? numbers.data_ptr<int64_t>()[i] : padded;
      const int64_t begin = !sums ? i * padded : i == 0 ? 0 : numbers.data_ptr<int64_t>()[i - 1];
      parts.push_back({begin, sums ? end - begin : end});
      TORCH_CHECK(parts.back().length >= 0, op, ": sequence ", i, " has ", parts.back().length,
                  " rows");
    }
    return parts;
  }

  // Rows of the keys or their scales, of all blocks, for a sequence.
  Tensor KeyRows(const Tensor& rows, int64_t sequence, const Part& part) const {
    if (!blocks) {
      TORCH_CHECK(part.begin + part.length <= rows.size(0), op, ": a sequence ends after the keys");
      return rows.narrow(0, part.begin, part.length);
    }
    const int64_t block = key.size(1);
    std::vector<int64_t> places;
    for (int64_t row = 0; row < part.length; ++row) {
      const int64_t column = row / block;
      TORCH_CHECK(column < table.size(1), op, ": sequence ", sequence, " leaves its table of ",
                  table.size(1), " blocks");
      const int64_t id = table[sequence][column].item<int>();
      TORCH_CHECK(id >= 0 && id < key.size(0), op, ": block ", id, " is outside of ", key.size(0));
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
      const Part &part = of_queries[s], &tokens_part = of_keys[s];
      const Part keys_part = {tokens_part.begin, tokens_part.length / ratio};
      TORCH_CHECK(part.begin + part.length <= tokens.size(0), op,
                  ": a sequence ends after the queries");
      const Tensor keys = KeyRows(all_keys, s, keys_part).to(at::kFloat);
      const Tensor scales = KeyRows(all_scales, s, keys_part).to(at::kFloat);
      for (int64_t i = 0; i < part.length; ++i) {
        const int64_t row = part.begin + i;
        const int64_t seen = std::max<int64_t>(
            causal ? (tokens_part.length - part.length + i + 1) / ratio : keys_part.length, 0);
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

void ReadPluginArguments(const Call& call, const IndexerArguments& at, Indexer& of) {
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max(), kMostTokens = 128;
  for (int i : {at.before, at.before + 1}) {
    if (call.Int(i) != kAll) call.RejectArg(i, "must be the greatest number, for it is reserved");
  }
  of.ratio = call.Int(at.ratio);
  if (of.ratio < 1 || of.ratio > kMostTokens || (of.ratio & (of.ratio - 1)) != 0) {
    call.RejectArg(at.ratio, "must be a power of two up to 128");
  }
  if (call.Bool(at.values)) call.RejectArg(at.values, "is true, but the operator gives no scores");
  if (call.IsAbsent(at.metadata)) call.RejectArg(at.metadata, "is absent");
  const Tensor metadata = call.View(at.metadata);
  ExpectDtypes(call, at.metadata, metadata, {at::kInt});
  call.ExpectSizes(at.metadata, metadata, {kPlanSize});
}

Tensor ReadLengths(const Call& call, int i) {
  if (call.IsAbsent(i)) return {};
  Tensor lengths = call.View(i);
  call.ExpectRank(i, lengths, 1);
  if (lengths.scalar_type() != at::kInt) call.RejectArg(i, "is not of dtype int32");
  return lengths;
}

// (query, key, weights, queryDequantScale, keyDequantScale, actualSeqLengthsQuery?,
// actualSeqLengthsKey?, blockTable?, [metadata,] queryQuantMode, keyQuantMode, layoutQuery,
// layoutKey, sparseCount, sparseMode, [preTokens, nextTokens, cmpRatio, returnValues, stride,
// scaleStride,] out, [values]): -1 follows the keys of a token that sees fewer. The strides are
// those of the views.
std::unique_ptr<Kernel> BindIndexer(const Call& call, const IndexerArguments& at) {
  const int layout = at.modes + 2, count = at.modes + 4, mask = at.modes + 5;
  const bool plugin = at.ratio >= 0;
  Indexer of;
  of.op = call.op().name;
  const std::string queries = call.Text(layout).empty() ? "BSND" : call.Text(layout);
  const std::string keys = call.Text(layout + 1).empty() ? "PA_BSND" : call.Text(layout + 1);
  if (queries != "BSND" && queries != "TND") call.RejectArg(layout, "must be \"BSND\" or \"TND\"");
  if (plugin && keys != "PA_BSND") call.RejectArg(layout + 1, "must be \"PA_BSND\"");
  if (keys != "PA_BSND" && keys != queries) {
    call.RejectArg(layout + 1, "must be \"PA_BSND\" or the layout of the queries");
  }
  of.packed_queries = queries == "TND";
  of.packed_keys = keys == "TND";
  of.blocks = keys == "PA_BSND";
  for (int i : {at.modes, at.modes + 1}) {
    if (call.Int(i) != 0) call.RejectArg(i, "must be 0");
  }
  if (call.Int(mask) != 0 && call.Int(mask) != 3) {
    call.RejectArg(mask, "must be 0 (all) or 3 (causal)");
  }
  of.causal = call.Int(mask) == 3;
  const int64_t most = call.Int(count);
  if (most < 1 || most > kMostKeys) call.RejectArg(count, "must be between 1 and 2048");
  if (plugin) ReadPluginArguments(call, at, of);
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
  // One more sum than there are lengths of keys: a zero begins them.
  const bool begins = plugin && of.packed_queries && of.key_ends.defined() &&
                      of.query_ends.size(0) == of.key_ends.size(0) + 1;
  if (begins) of.query_ends = of.query_ends.slice(0, 1);
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
  of.out = call.Out(at.out);
  if (of.out.scalar_type() != at::kInt) call.RejectArg(at.out, "is not of dtype int32");
  std::vector<int64_t> sizes = of.query.sizes().vec();
  sizes[sizes.size() - 2] = 1;
  sizes.back() = most;
  call.ExpectSizes(at.out, of.out, sizes);
  const Tensor target = of.out;
  return MakeKernel([of, target]() mutable {
    of.out = target.contiguous();
    of.Run();
    if (!of.out.is_same(target)) target.copy_(of.out);
  });
}

}  // namespace

KernelRows QuantizedIndexerRows() {
  const auto indexer = [](const IndexerArguments& at) {
    return [&at](const Call& call) { return BindIndexer(call, at); };
  };
  return {{"aclnnLightningIndexerQuant", indexer(kIndexer)},
          {"aclnnVllmQuantLightningIndexer", indexer(kPluginIndexer), Widen::kNever, {22}}};
}

}  // namespace acltape::opapi
