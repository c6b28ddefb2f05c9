// Selected attention of native sparse attention: each query sees the blocks of keys that its
// indices name. Computed in float32 and rounded once at the end.
#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/kernels/attention.h"
#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/sequence_lengths.h"
#include "runtime/opapi/kernels/table_rows.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The positions of the arguments that both directions have.
struct SelectedArguments {
  int topk, mask, lengths, key_lengths, scale, heads, layout, mode, block_size, block_count;
};

constexpr SelectedArguments kSelected = {3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
constexpr SelectedArguments kSelectedGrad = {7, 10, 8, 9, 11, 14, 15, 16, 12, 13};

// One query of a sequence, with each head of the keys as a batch of its own.
struct SelectedQuery {
  Tensor query;       // [key heads, group, 1, width]
  Tensor key, value;  // [key heads, 1, selected rows, width]
  Tensor rows;        // [key heads, selected rows]: where they lie in the sequence
  AttentionTerms terms;
};

struct SelectedCall {
  Tensor query, key, value, topk;  // [rows, heads, width]; [rows, key heads, blocks]
  std::vector<SequencePlace> sequences;
  double scale = 1;
  bool causal = false;
  int64_t heads = 0, block = 0;

  int64_t group() const { return heads / key.size(1); }

  // [1 row, heads, width] as [key heads, group, 1, width].
  Tensor Grouped(const Tensor& all, int64_t row) const {
    return all[row].unflatten(0, {key.size(1), group()}).unsqueeze(2);
  }

  // Query `q` of a sequence. Throws where an index names no block.
  SelectedQuery Take(const SequencePlace& place, int64_t q) const {
    const int64_t row = place.first_query + q, key_heads = key.size(1);
    const Tensor blocks = Within(topk[row], place.keys / block, "topkIndices");
    SelectedQuery taken;
    taken.query = Grouped(query, row);
    taken.rows = (blocks.unsqueeze(-1) * block + at::arange(block, at::kLong)).flatten(1);
    const auto rows_of = [&](const Tensor& all) {
      const Tensor own = all.narrow(0, place.first_key, place.keys).transpose(0, 1);
      const Tensor index = taken.rows.unsqueeze(-1).expand({key_heads, -1, all.size(2)});
      return own.gather(1, index).unsqueeze(1);
    };
    taken.key = rows_of(key);
    taken.value = rows_of(value);
    taken.terms.scale = scale;
    if (causal) taken.terms.left_out = taken.rows.gt(q).unsqueeze(1).unsqueeze(1);
    return taken;
  }
};

void ExpectSelectBlock(const Call& call, int i) {
  const int64_t size = call.Int(i);
  if (size < 16 || size > 128 || size % 16 != 0) {
    call.RejectArg(i, "must be a multiple of 16, at most 128");
  }
}

SelectedCall ReadSelected(const Call& call, const SelectedArguments& at) {
  SelectedCall selected;
  if (call.Text(at.layout) != "TND") call.RejectArg(at.layout, "must be \"TND\"");
  selected.query = call.View(0);
  selected.key = call.View(1);
  selected.value = call.View(2);
  selected.scale = call.Real(at.scale);
  selected.heads = call.Int(at.heads);
  const Tensor tensors[] = {selected.query, selected.key, selected.value};
  for (int i : {0, 1, 2}) {
    call.ExpectRank(i, tensors[i], 3);
    if (tensors[i].numel() == 0) call.RejectArg(i, "is empty");
    ExpectDtypes(call, i, tensors[i], {at::kHalf, at::kBFloat16});
    ExpectQueryDtype(call, i, tensors[i], selected.query);
    const int64_t width = tensors[i].size(2);
    if (width != 128 && width != 192) call.RejectArg(i, "must have a width of 128 or 192");
  }
  const int64_t rows = selected.query.size(0), key_heads = selected.key.size(1);
  if (selected.query.size(1) != selected.heads) {
    call.RejectArg(at.heads, "is not query's number of heads");
  }
  if (selected.key.size(2) != selected.query.size(2)) {
    call.RejectArg(1, "has another width than query");
  }
  if (selected.heads % key_heads != 0 || selected.group() > 32) {
    call.RejectArg(1, "must have heads that serve at most 32 of query's each");
  }
  call.ExpectSizes(2, selected.value, {selected.key.size(0), key_heads, selected.value.size(2)});
  if (selected.value.size(2) > selected.key.size(2)) call.RejectArg(2, "is wider than key");

  ExpectSelectBlock(call, at.block_size);
  selected.block = call.Int(at.block_size);
  const int64_t count = call.Int(at.block_count);
  if (count < 1 || count > 128 || count * selected.block > 128 * 64) {
    call.RejectArg(at.block_count, "must be between 1 and 128, and the blocks at most 8192 rows");
  }
  selected.topk = call.View(at.topk);
  ExpectDtypes(call, at.topk, selected.topk, {at::kInt});
  call.ExpectSizes(at.topk, selected.topk, {rows, key_heads, count});

  const int64_t mode = call.Int(at.mode);
  if (mode != 0 && mode != 2) call.RejectArg(at.mode, "must be 0 (all) or 2 (causal)");
  if (!call.IsAbsent(at.mask)) {
    ExpectDtypes(call, at.mask, call.View(at.mask), {at::kBool, at::kByte});
    call.ExpectRank(at.mask, call.View(at.mask), 2);
    selected.causal = mode == 2;  // the mode says all that the triangle could
  }
  const Lengths lengths = PackedLengths(call, at.lengths, rows);
  const Lengths key_lengths = PackedLengths(call, at.key_lengths, selected.key.size(0));
  if (lengths.size() != key_lengths.size()) {
    call.RejectArg(at.key_lengths, "has another number of sequences than actualSeqQLen");
  }
  for (int64_t length : key_lengths) {
    if (length % selected.block != 0 || length < count * selected.block) {
      call.RejectArg(at.key_lengths,
                     "must name sequences of whole blocks that have all selected blocks");
    }
  }
  selected.sequences = PlaceSequences(lengths, key_lengths, /*packed=*/true);
  return selected;
}

// (query, key, value, topkIndices, attenMask?, ..., softmaxMax, softmaxSum, attentionOut). Rows
// after the last sequence are zeros.
std::unique_ptr<Kernel> BindSelected(const Call& call) {
  const SelectedCall selected = ReadSelected(call, kSelected);
  if (selected.query.size(2) != 192) call.RejectArg(0, "must have a width of 192");
  if (selected.value.size(2) != 128) call.RejectArg(2, "must have a width of 128");
  const Tensor maximum = call.Out(13), sum = call.Out(14), out = call.Out(15);
  const std::vector<int64_t> rows = {selected.query.size(0), selected.heads};
  for (int i : {13, 14}) {
    call.ExpectSizes(i, call.View(i), {rows[0], rows[1], 8});
    ExpectDtypes(call, i, call.View(i), {at::kFloat});
  }
  call.ExpectSizes(15, out, {rows[0], rows[1], selected.value.size(2)});
  ExpectDtypes(call, 15, out, {selected.query.scalar_type()});
  return MakeKernel([=] {
    for (const Tensor& all : {maximum, sum, out}) Tensor(all).zero_();
    for (const SequencePlace& place : selected.sequences) {
      for (int64_t q = 0; q < place.queries; ++q) {
        const SelectedQuery one = selected.Take(place, q);
        const AttentionResult result = Attend(one.query, one.key, one.value, one.terms);
        const int64_t row = place.first_query + q;
        out[row].copy_(result.out.view({selected.heads, -1}));
        maximum[row].copy_(result.maximum.view({selected.heads, 1}).expand({-1, 8}));
        sum[row].copy_(result.sum.view({selected.heads, 1}).expand({-1, 8}));
      }
    }
  });
}

// (query, key, value, attentionOut, attentionOutGrad, softmaxMax, softmaxSum, topkIndices, ..., dq,
// dk, dv)
std::unique_ptr<Kernel> BindSelectedGrad(const Call& call) {
  const SelectedCall selected = ReadSelected(call, kSelectedGrad);
  const Tensor gradient = call.View(4), maximum = call.View(5), sum = call.View(6);
  const std::vector<int64_t> rows = {selected.query.size(0), selected.heads};
  for (int i : {3, 4}) {
    call.ExpectSizes(i, call.View(i), {rows[0], rows[1], selected.value.size(2)});
    ExpectDtypes(call, i, call.View(i), {selected.query.scalar_type()});
  }
  for (int i : {5, 6}) {
    call.ExpectSizes(i, call.View(i), {rows[0], rows[1], 8});
    ExpectDtypes(call, i, call.View(i), {at::kFloat});
  }
  const Tensor outs[] = {call.Out(17), call.Out(18), call.Out(19)};
  for (int i : {0, 1, 2}) {
    call.ExpectSizes(17 + i, outs[i], call.View(i).sizes());
    ExpectDtypes(call, 17 + i, outs[i], {selected.query.scalar_type()});
  }
  return MakeKernel([=, dq = outs[0], dk = outs[1], dv = outs[2]] {
    const auto zeros = [](const Tensor& like) { return at::zeros(like.sizes(), at::kFloat); };
    const Tensor of_query = zeros(dq), of_key = zeros(dk), of_value = zeros(dv);
    for (const SequencePlace& place : selected.sequences) {
      for (int64_t q = 0; q < place.queries; ++q) {
        const SelectedQuery one = selected.Take(place, q);
        const int64_t row = place.first_query + q;
        const auto once = [&](const Tensor& statistic) {
          return selected.Grouped(statistic, row).narrow(-1, 0, 1);
        };
        const AttentionGradients result =
            AttendBackward(selected.Grouped(gradient, row), one.query, one.key, one.value,
                           once(maximum), once(sum), one.terms);
        of_query[row].copy_(result.query.view({selected.heads, -1}));
        const auto add = [&](const Tensor& all, const Tensor& rows_of) {
          const Tensor part = rows_of.squeeze(1);
          all.narrow(0, place.first_key, place.keys)
              .transpose(0, 1)
              .scatter_add_(1, one.rows.unsqueeze(-1).expand_as(part), part);
        };
        add(of_key, result.key);
        add(of_value, result.value);
      }
    }
    dq.copy_(of_query);
    dk.copy_(of_key);
    dv.copy_(of_value);
  });
}

// One query of each sequence, whose keys lie in blocks.
struct SelectedStep {
  Tensor query;              // [sequences, heads, width]
  Tensor key, value, table;  // [blocks, rows, key heads, width]
  Tensor topk;               // [sequences, key heads, blocks]
  Lengths lengths;
  int64_t block = 0;
  double scale = 1;

  // The rows of sequence `s` that head `head` of its keys selects. A negative index ends the list.
  Tensor Rows(int64_t s, int64_t head) const {
    const int64_t length = lengths[s];
    std::vector<int64_t> rows;
    const Tensor picked = topk[s][head].to(at::kLong).contiguous();
    const int64_t* indices = picked.data_ptr<int64_t>();
    for (int64_t i = 0; i < picked.numel() && indices[i] >= 0; ++i) {
      const int64_t first = indices[i] * block;
      TORCH_CHECK(indices[i] < (length + block - 1) / block, "topkIndices has the index ",
                  indices[i], ", which is no block of the ", length, " keys of sequence ", s);
      for (int64_t r = first; r < std::min(first + block, length); ++r) rows.push_back(r);
    }
    return at::tensor(rows, at::kLong);
  }

  // [heads, width of a value]
  Tensor Run(int64_t s) const {
    const int64_t key_heads = key.size(2), group = query.size(1) / key_heads;
    std::vector<Tensor> parts;
    AttentionTerms terms;
    terms.scale = scale;
    for (int64_t head = 0; head < key_heads; ++head) {
      const Tensor rows = Rows(s, head), blocks = table[s].to(at::kLong);
      const auto own = [&](const Tensor& cache) {
        return RowsOfTable(cache.select(2, head), blocks, rows).unsqueeze(0).unsqueeze(0);
      };
      const Tensor queries = query[s].narrow(0, head * group, group).unsqueeze(1).unsqueeze(0);
      parts.push_back(Attend(queries, own(key), own(value), terms).out.view({group, -1}));
    }
    return at::cat(parts);
  }
};

// A cache of [blocks, rows, heads * width] or [blocks, rows, heads, width] as the latter.
Tensor ReadStepCache(const Call& call, int i, int64_t heads, int64_t page, int64_t width) {
  Tensor cache = call.View(i);
  ExpectQueryDtype(call, i, cache, call.View(0));
  if (cache.dim() == 3 && cache.size(2) == heads * width)
    cache = cache.unflatten(2, {heads, width});
  if (cache.dim() != 4) {
    call.RejectArg(i, "has shape " + SizesText(call.View(i).sizes()) + ", which is no cache of " +
                          std::to_string(heads) + " heads of " + std::to_string(width) +
                          " columns");
  }
  call.ExpectSizes(i, cache, {cache.size(0), page, heads, width});
  return cache;
}

// A tensor with one row a sequence in the layout, as [sequences, heads, width].
Tensor OneRow(const Call& call, int i, const Tensor& given, const std::string& layout,
              int64_t heads) {
  if (layout == "TND") {
    call.ExpectRank(i, given, 3);
    return given;
  }
  call.ExpectRank(i, given, layout == "BSH" ? 3 : 4);
  if (given.size(1) != 1) {
    call.RejectArg(i, "has more than one row a sequence, which the soft device lacks");
  }
  const Tensor rows = given.squeeze(1);
  if (layout != "BSH") return rows;
  if (rows.size(1) % heads != 0) call.RejectArg(i, "does not split into the heads");
  return rows.unflatten(1, {heads, rows.size(1) / heads});
}

// (query, key, value, topkIndices, attenMask?, blockTable, actualQSeqLen?, actualKvSeqLen, layout,
// numHeads, numKeyValueHeads, selectBlockSize, selectBlockCount, pageBlockSize, scaleValue,
// sparseMode, output). The page reserves the mask and the mode.
std::unique_ptr<Kernel> BindSelectedInfer(const Call& call) {
  SelectedStep step;
  const std::string given = call.Text(8), layout = given.empty() ? "BSND" : given;
  if (layout != "BSH" && layout != "BSND" && layout != "TND") {
    call.RejectArg(8, "must be \"BSH\", \"BSND\" or \"TND\"");
  }
  const int64_t heads = call.Int(9), key_heads = call.Int(10), page = call.Int(13);
  if (heads < 1 || key_heads < 1 || heads % key_heads != 0 || heads / key_heads > 16) {
    call.RejectArg(10, "must divide numHeads into groups of at most 16");
  }
  if (page != 64 && page != 128) call.RejectArg(13, "must be 64 or 128");
  ExpectSelectBlock(call, 11);
  step.block = call.Int(11);
  step.scale = call.Real(14);
  ExpectDtypes(call, 0, call.View(0), {at::kHalf, at::kBFloat16});
  step.query = OneRow(call, 0, call.View(0), layout, heads);
  const int64_t sequences = step.query.size(0);
  if (step.query.size(1) != heads) call.RejectArg(9, "is not query's number of heads");
  if (step.query.size(2) != 192) call.RejectArg(0, "must have a width of 192");
  step.key = ReadStepCache(call, 1, key_heads, page, 192);
  step.value = ReadStepCache(call, 2, key_heads, page, 128);
  if (step.value.size(0) != step.key.size(0)) call.RejectArg(2, "has other blocks than key");

  step.topk = call.View(3);
  ExpectDtypes(call, 3, step.topk, {at::kInt});
  if (step.topk.dim() == 4 && step.topk.size(1) == 1) step.topk = step.topk.squeeze(1);
  if (call.Int(12) < 1) call.RejectArg(12, "must be at least 1");
  call.ExpectSizes(3, step.topk, {sequences, key_heads, call.Int(12)});
  if (call.IsAbsent(5)) call.RejectArg(5, "is absent, but the operator takes keys in blocks");
  step.table = call.View(5);
  ExpectDtypes(call, 5, step.table, {at::kInt});
  call.ExpectRank(5, step.table, 2);
  if (step.table.size(0) != sequences) call.RejectArg(5, "has not one row for each sequence");
  for (int64_t length : call.Ints(6)) {
    if (length != 1) call.RejectArg(6, "must be 1; the soft device has one query a sequence");
  }
  if (call.IsAbsent(7)) call.RejectArg(7, "is absent");
  step.lengths = BatchLengths(call, 7, Lengths(sequences, step.table.size(1) * page));
  const Tensor out_given = call.Out(16), out = OneRow(call, 16, out_given, layout, heads);
  call.ExpectSizes(16, out, {sequences, heads, 128});
  ExpectDtypes(call, 16, out, {step.query.scalar_type()});
  return MakeKernel([=] {
    for (int64_t s = 0; s < sequences; ++s) out[s].copy_(step.Run(s));
  });
}

}  // namespace

KernelRows SelectedAttentionRows() {
  return {
      {"aclnnNsaSelectedAttention", BindSelected},
      {"aclnnNsaSelectedAttentionGrad", BindSelectedGrad},
      {"aclnnNsaSelectedAttentionInfer", BindSelectedInfer, Widen::kNever, {8}},
  };
}

}  // namespace acltape::opapi
