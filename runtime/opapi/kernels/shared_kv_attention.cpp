// Attention of vLLM's plug-in whose keys are its values, too: a window of the last ones, and ones
// that stand for several tokens each. Computed in float32 and rounded once at the end.
#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/kernels/attention.h"
#include "runtime/opapi/kernels/core_plan.h"
#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/key_rows.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// Positions of the arguments.
enum SharedKeys {
  kOwn = 1,         // keys of single tokens; those that stand for several follow
  kOwnIndices = 3,  // chosen keys; those of the other keys follow
  kOwnTable = 5,    // blocks of the keys; those of the other keys follow
  kEnds = 7,        // rows of q after each sequence, with a zero before them
  kUsed = 11,       // how many tokens each sequence has
  kSinks = 12,
  kMetadata = 13,
  kScale = 14,
  kRatio = 15,    // a key stands for so many tokens
  kOwnMask = 16,  // the mask of the other keys follows
  kWindow = 20,   // tokens before a query that it sees; those after it follow
  kLayout = 22,   // the layout of the keys follows
  kReturnSums = 24,
  kOut = 25,
};

// Keys in blocks [blocks, rows, 1, width], and the table [sequences, blocks] that names them.
struct KeyBlocks {
  KeyRows rows;
  Tensor table;
  int64_t size = 0;  // rows of a block

  // The first `count` rows of a sequence: [1, 1, count, width].
  Tensor Read(int64_t sequence, int64_t count, const std::string& op) const {
    const int64_t blocks = (count + size - 1) / size;
    TORCH_CHECK(blocks <= table.size(1), op, ": sequence ", sequence, " has ", count,
                " keys, which leave its table of ", table.size(1), " blocks");
    return rows.at({.count = count, .blocks = table[sequence].narrow(0, 0, blocks).to(at::kLong)});
  }
};

struct SharedKeysTask {
  std::string op;
  Tensor query, out;  // [tokens, heads, width], set when the task runs
  Tensor ends;        // see kEnds; undefined: each sequence has `padded` queries
  Tensor used;        // tokens of each sequence, its queries are the last ones
  Tensor sinks;       // may be undefined
  Tensor chosen;      // [tokens, places] of compressed keys, -1 after the last; may be undefined
  KeyBlocks own, compressed;
  bool compresses = false;  // there are compressed keys
  int64_t padded = 0, ratio = 1, before = 0, after = 0;
  double scale = 1;

  void Run() const {
    const auto read = [](const Tensor& tensor) { return tensor.to(at::kLong).contiguous(); };
    const Tensor lengths = read(used), sums = ends.defined() ? read(ends) : Tensor();
    for (int64_t s = 0; s < lengths.size(0); ++s) {
      const int64_t first = sums.defined() ? sums[s].item<int64_t>() : s * padded;
      const int64_t queries = sums.defined() ? sums[s + 1].item<int64_t>() - first : padded;
      TORCH_CHECK(queries >= 0 && first >= 0 && first + queries <= query.size(0), op, ": sequence ",
                  s, " has the queries ", first, " to ", first + queries, " of ", query.size(0));
      RunSequence(s, first, queries, lengths[s].item<int64_t>());
    }
  }

 private:
  void RunSequence(int64_t s, int64_t first, int64_t queries, int64_t tokens) const {
    if (queries == 0) return;
    const Tensor keys = own.Read(s, tokens, op);
    const Tensor summaries = compresses ? compressed.Read(s, tokens / ratio, op) : Tensor();
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t seen = tokens - queries + i + 1;  // tokens up to this one
      const Tensor to = out[first + i];
      if (seen <= 0) {  // the sequence has fewer tokens than queries
        to.zero_();
        continue;
      }
      const int64_t begin = std::max<int64_t>(seen - before - 1, 0);
      const int64_t end = seen + std::min(after, tokens - seen);
      Tensor key = keys.narrow(2, begin, std::max<int64_t>(end - begin, 0));
      if (compresses) key = at::cat({key, Summaries(summaries, first + i, seen / ratio)}, 2);
      AttentionTerms terms;
      terms.scale = scale;
      terms.sink = sinks;
      const Tensor heads = query[first + i].unsqueeze(0).unsqueeze(2);
      to.copy_(Attend(heads, key, key, terms).out[0].squeeze(1));
    }
  }

  // The compressed keys of a token that sees the first `count` of them: all, or the chosen ones.
  Tensor Summaries(const Tensor& rows, int64_t token, int64_t count) const {
    if (!chosen.defined()) return rows.narrow(2, 0, count);
    const Tensor places = chosen[token].to(at::kLong).contiguous();
    std::vector<int64_t> kept;
    for (int64_t i = 0; i < std::min(places.size(0), count); ++i) {
      const int64_t place = places.data_ptr<int64_t>()[i];
      if (place == -1) break;
      TORCH_CHECK(place >= 0, op, ": token ", token, " chooses the key ", place);
      if (place < count) kept.push_back(place);
    }
    return rows.index_select(2, at::tensor(kept, at::kLong));
  }
};

// The keys `which` (0: of single tokens, 1: compressed), and their table.
KeyBlocks ReadKeyBlocks(const Call& call, int which, const Tensor& query, int64_t sequences) {
  const int i = kOwn + which, table = kOwnTable + which;
  if (call.IsAbsent(i)) call.RejectArg(i, "is absent");
  if (call.IsAbsent(table)) call.RejectArg(table, "is absent");
  const Tensor keys = call.View(i);
  call.ExpectRank(i, keys, 4);
  ExpectQueryDtype(call, i, keys, query);
  if (keys.size(2) != 1) call.RejectArg(i, "has more than one head");
  if (keys.size(3) != query.size(-1)) call.RejectArg(i, "has another width than q");
  constexpr int64_t kStep = 16, kMostRows = 1024;
  if (keys.size(1) < kStep || keys.size(1) > kMostRows || keys.size(1) % kStep != 0) {
    call.RejectArg(i, "has blocks of " + std::to_string(keys.size(1)) +
                          " rows, expected a multiple of 16 up to 1024");
  }
  KeyBlocks blocks;
  blocks.rows = RowsInBlocks(keys.transpose(1, 2), 1);
  blocks.size = keys.size(1);
  blocks.table = call.View(table);
  call.ExpectRank(table, blocks.table, 2);
  ExpectDtypes(call, table, blocks.table, {at::kInt});
  if (blocks.table.size(0) != sequences) {
    call.RejectArg(table, "has not one row for each sequence");
  }
  return blocks;
}

void ExpectNumber(const Call& call, int i, int64_t value) {
  if (call.Int(i) != value) call.RejectArg(i, "must be " + std::to_string(value));
}

// (q, oriKv, cmpKv?, NULL, cmpSparseIndices?, oriBlockTable, cmpBlockTable?, cuSeqlensQ?, two that
// a table makes needless, sequsedQ?, sequsedKv, sinks?, metadata, softmaxScale, cmpRatio,
// oriMaskMode, cmpMaskMode, two strides, oriWinLeft, oriWinRight, layoutQ, layoutKv,
// returnSoftmaxLse, out, softmaxLse). The strides are those of the views.
std::unique_ptr<Kernel> BindSparseAttnSharedkv(const Call& call) {
  SharedKeysTask task;
  task.op = call.op().name;
  const std::string layout = call.Text(kLayout).empty() ? "BSND" : call.Text(kLayout);
  if (layout != "BSND" && layout != "TND") {
    call.RejectArg(kLayout, "must be \"BSND\" or \"TND\"");
  }
  if (call.Text(kLayout + 1) != "PA_ND") {
    call.RejectArg(kLayout + 1, "must be \"PA_ND\"; the soft device takes keys in blocks");
  }
  ExpectAbsent(call, {kOwnIndices, kUsed - 1});
  ExpectNumber(call, kOwnMask, 4);
  ExpectNumber(call, kOwnMask + 1, 3);
  if (call.Bool(kReturnSums))
    call.RejectArg(kReturnSums, "is true, but the operator gives no sums");
  const bool packed = layout == "TND";
  const Tensor query = call.View(0);
  call.ExpectRank(0, query, packed ? 3 : 4);
  ExpectDtypes(call, 0, query, {at::kHalf, at::kBFloat16});
  const int64_t heads = query.size(-2), width = query.size(-1);
  if (heads == 0 || heads % 4 != 0) call.RejectArg(0, "has no multiple of 4 heads");
  if (call.IsAbsent(kUsed)) call.RejectArg(kUsed, "is absent");
  task.used = call.View(kUsed);
  call.ExpectRank(kUsed, task.used, 1);
  ExpectDtypes(call, kUsed, task.used, {at::kInt});
  const int64_t sequences = task.used.size(0);
  if (packed) {
    if (call.IsAbsent(kEnds)) call.RejectArg(kEnds, "is absent");
    task.ends = call.View(kEnds);
    ExpectDtypes(call, kEnds, task.ends, {at::kInt});
    call.ExpectSizes(kEnds, task.ends, {sequences + 1});
  } else {
    if (query.size(0) != sequences) call.RejectArg(0, "has another batch than sequsedKv");
    task.padded = query.size(1);
  }
  task.own = ReadKeyBlocks(call, 0, query, sequences);
  task.compresses = !call.IsAbsent(kOwn + 1);
  const bool chooses = !call.IsAbsent(kOwnIndices + 1);
  if (task.compresses) {
    task.compressed = ReadKeyBlocks(call, 1, query, sequences);
    task.ratio = call.Int(kRatio);
    if (task.ratio != 4 && task.ratio != 128) call.RejectArg(kRatio, "must be 4 or 128");
  } else if (chooses) {
    call.RejectArg(kOwnIndices + 1, "is given without cmpKv");
  }
  if (chooses) {
    const Tensor chosen = call.View(kOwnIndices + 1);
    ExpectDtypes(call, kOwnIndices + 1, chosen, {at::kInt});
    call.ExpectRank(kOwnIndices + 1, chosen, query.dim());
    std::vector<int64_t> sizes = query.sizes().vec();
    sizes[sizes.size() - 2] = 1;
    sizes.back() = chosen.size(-1);
    call.ExpectSizes(kOwnIndices + 1, chosen, sizes);
    task.chosen = chosen;
  }
  if (!call.IsAbsent(kSinks)) {
    task.sinks = call.View(kSinks);
    ExpectDtypes(call, kSinks, task.sinks, {at::kFloat});
    call.ExpectSizes(kSinks, task.sinks, {heads});
  }
  if (call.IsAbsent(kMetadata)) call.RejectArg(kMetadata, "is absent");
  const Tensor metadata = call.View(kMetadata);
  ExpectDtypes(call, kMetadata, metadata, {at::kInt});
  call.ExpectSizes(kMetadata, metadata, {kPlanSize});
  task.scale = call.Real(kScale);
  task.before = call.Int(kWindow);
  task.after = call.Int(kWindow + 1);
  for (int i = kWindow; i <= kWindow + 1; ++i) {
    if (call.Int(i) < 0) call.RejectArg(i, "is negative");
  }
  const Tensor out = call.Out(kOut);
  ExpectQueryDtype(call, kOut, out, query);
  call.ExpectSizes(kOut, out, query.sizes());
  return MakeKernel([=] {
    // Rows of no sequence keep what they hold, so a copy begins with it.
    const Tensor dense = out.contiguous();
    SharedKeysTask now = task;
    now.query = query.reshape({-1, heads, width});
    now.out = dense.view(now.query.sizes());
    if (now.chosen.defined()) now.chosen = now.chosen.reshape({-1, now.chosen.size(-1)});
    now.Run();
    if (!dense.is_same(out)) out.copy_(dense);
  });
}

}  // namespace

KernelRows SharedKvAttentionRows() {
  return {{"aclnnSparseAttnSharedkv", BindSparseAttnSharedkv, Widen::kNever, {26}}};
}

}  // namespace acltape::opapi
