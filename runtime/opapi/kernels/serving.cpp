// Operators that servers of language models call between the layers: they choose among the
// likeliest tokens, lay out the tokens of a draft, and multiply with the matrices of adapters.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "runtime/opapi/kernels/optional.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr double kNever = -std::numeric_limits<double>::infinity();

// (logits [rows, tokens], p? [rows], k? [rows], out): -inf where a logit is below the k-th greatest
// of its row, or where the probabilities of the likelier ones reach p already.
std::unique_ptr<Kernel> BindApplyTopKTopP(const Call& call) {
  const Tensor logits = call.View(0);
  const Tensor p = call.IsAbsent(1) ? Tensor() : call.View(1);
  const Tensor k = call.IsAbsent(2) ? Tensor() : call.View(2);
  call.ExpectRank(0, logits, 2);
  ExpectFloats(call, 0, logits);
  if (!p.defined() && !k.defined()) call.RejectArg(1, "and k are both absent");
  if (p.defined()) {
    call.ExpectSizes(1, p, {logits.size(0)});
    if (p.scalar_type() != logits.scalar_type()) call.RejectArg(1, "has another dtype than logits");
  }
  if (k.defined()) {
    call.ExpectSizes(2, k, {logits.size(0)});
    if (k.scalar_type() != at::kInt) call.RejectArg(2, "is not of dtype int32");
  }
  return BindWhole(call, 3, logits.sizes(), [=] {
    const int64_t tokens = logits.size(1);
    const auto [ordered, places] = at::sort(logits.to(at::kFloat), /*stable=*/true, -1, false);
    Tensor kept = ordered;
    if (k.defined() && tokens > 0) {
      const Tensor count = k.to(at::kLong).clamp(1, tokens).unsqueeze(-1);
      kept = kept.masked_fill(kept < kept.gather(-1, tokens - count), kNever);
    }
    if (p.defined() && tokens > 0) {
      Tensor unlikely = at::softmax(kept, -1).cumsum(-1) <= 1 - p.to(at::kFloat).unsqueeze(-1);
      unlikely.select(-1, tokens - 1).fill_(false);
      kept = kept.masked_fill(unlikely, kNever);
    }
    return at::empty_like(kept).scatter_(-1, places, kept);
  });
}

// (targetTokenIds, targetPositions, nextTokenIds, queryStartLoc, queryEndLoc, paddingTokenId,
// parallelDraftingTokenId, numPaddingSlotsPerRequest, shiftInputIds, totalInputTokens, outInputIds,
// outPositions, outIsRejectedTokenMask, outIsMaskedTokenMask, outNewTokenIndices,
// outHiddenStateMapping): the input of a draft model. A request's tokens that were accepted are
// followed by its new one, by slots for tokens that are drafted at once, and by its rejected ones.
std::unique_ptr<Kernel> BindCopyAndExpandEagleInputs(const Call& call) {
  std::vector<Tensor> in, out;
  for (int i = 0; i < 5; ++i) {
    in.push_back(call.View(i));
    call.ExpectRank(i, in.back(), 1);
    // The plug-in counts rejected tokens in int64 where it has no Triton of a device.
    call.ExpectIndex(i, in.back());
  }
  const int64_t padding = call.Int(5), drafted = call.Int(6), slots = call.Int(7);
  const bool shift = call.Bool(8);
  for (int i = 10; i < 16; ++i) out.push_back(call.Out(i));
  const int64_t requests = in[4].size(0);
  if (slots < 1) call.RejectArg(7, "must be at least 1");
  call.ExpectSizes(2, in[2], {requests});
  call.ExpectSizes(3, in[3], {requests + 1});
  call.ExpectSizes(14, out[4], {requests * slots});
  return MakeKernel([=] {
    std::vector<Tensor> given, made;
    for (const Tensor& each : in) given.push_back(each.to(at::kLong).contiguous());
    const Tensor &tokens = given[0], &places = given[1], &next = given[2];
    const Tensor &starts = given[3], &ends = given[4];
    for (const Tensor& each : out) made.push_back(each.to(at::kLong).contiguous());
    const auto read = [](const Tensor& numbers, int64_t i) {
      TORCH_CHECK(i >= 0 && i < numbers.numel(), "aclnnCopyAndExpandEagleInputs: ", i,
                  " is outside of the ", numbers.numel(), " input tokens");
      return numbers.data_ptr<int64_t>()[i];
    };
    const auto put = [&](int which, int64_t i, int64_t value) {
      TORCH_CHECK(i >= 0 && i < made[which].numel(), "aclnnCopyAndExpandEagleInputs: ", i,
                  " is outside of output ", which, " of ", made[which].numel());
      made[which].data_ptr<int64_t>()[i] = value;
    };
    for (int64_t request = 0; request < requests; ++request) {
      const int64_t start = read(starts, request), end = read(ends, request);
      const int64_t after = read(starts, request + 1);
      const int64_t rejected = std::max<int64_t>(after - end - 1, 0);
      const int64_t valid = std::max<int64_t>(end - start + (shift ? 0 : 1), 0);
      const int64_t first = start + request * (shift ? slots - 1 : slots);
      const int64_t position = read(places, start);
      for (int64_t j = 0; j < valid + slots + rejected; ++j) {
        const bool is_rejected = j >= valid + slots, is_drafted = j > valid && !is_rejected;
        const int64_t token = is_rejected  ? padding
                              : is_drafted ? drafted
                              : j == valid ? read(next, request)
                                           : read(tokens, start + j + (shift ? 1 : 0));
        put(0, first + j, token);
        put(1, first + j, is_rejected ? 0 : position + j);
        put(2, first + j, is_rejected ? 1 : 0);
        put(3, first + j, is_drafted ? 1 : 0);
        if (j >= valid && !is_rejected) put(4, request * slots + j - valid, first + j);
      }
      for (int64_t j = 0; shift && j < after - start; ++j) put(5, start + j, first + j);
    }
    for (size_t i = 0; i < out.size(); ++i) out[i].copy_(made[i]);
  });
}

// A match of the last tokens of a row with earlier ones: where it begins, and its length.
struct NgramMatch {
  int64_t begin = -1, length = 0;
};

// The first match of the longest n-gram that has one, as the plug-in's kernel looks for it. In rows
// that do not fit into a core's memory it stops at the shortest one.
constexpr int64_t kTokensInCore = 32768;
NgramMatch FindNgram(const std::vector<int32_t>& tokens, int64_t shortest, int64_t longest,
                     bool in_core) {
  NgramMatch match;
  const auto count = static_cast<int64_t>(tokens.size());
  for (int64_t n = shortest; n <= longest && n < count; ++n) {
    const auto found =
        std::search(tokens.begin(), tokens.end() - 1, tokens.end() - n, tokens.end());
    if (found == tokens.end() - 1) continue;
    match = {found - tokens.begin(), n};
    if (!in_core) break;
  }
  return match;
}

// (tokenIds [requests, tokens], numTokensNoSpec, sampledTokenIds [requests, sampled],
// discardRequestMask, vocabSize, minN, maxN, k, nextTokenIds, draftTokenIds [requests, k],
// numValidDraftTokens): sampled tokens are appended to their row, and drafted are those that
// followed the same n-gram before.
std::unique_ptr<Kernel> BindNgramSpecDecode(const Call& call) {
  std::vector<Tensor> in, out;
  for (int i = 0; i < 4; ++i) in.push_back(i == 0 ? call.Out(0) : call.View(i));
  for (int i = 8; i < 11; ++i) out.push_back(call.Out(i));
  const int64_t vocabulary = call.Int(4), shortest = call.Int(5), longest = call.Int(6);
  const int64_t drafted = call.Int(7);
  for (int i : {0, 2}) call.ExpectRank(i, in[i], 2);
  const int64_t requests = in[0].size(0), room = in[0].size(1), sampled = in[2].size(1);
  if (room < 1) call.RejectArg(0, "has no columns");
  if (shortest < 1 || longest < shortest) call.RejectArg(6, "and minN are no range above 0");
  if (drafted < 1) call.RejectArg(7, "must be at least 1");
  call.ExpectSizes(1, in[1], {requests});
  call.ExpectSizes(2, in[2], {requests, sampled});
  call.ExpectSizes(3, in[3], {requests});
  call.ExpectSizes(8, out[0], {requests});
  call.ExpectSizes(9, out[1], {requests, drafted});
  call.ExpectSizes(10, out[2], {requests});
  for (int i : {0, 1, 2, 3, 8, 9, 10}) {
    const Tensor& tensor = i < 4 ? in[i] : out[i - 8];
    if (tensor.scalar_type() != at::kInt) call.RejectArg(i, "is not of dtype int32");
  }
  return MakeKernel([=] {
    const Tensor held = in[0].contiguous(), known = in[1].contiguous();
    const Tensor given = in[2].contiguous(), discarded = in[3].contiguous();
    const Tensor next = at::empty({requests}, at::kInt), valid = at::empty({requests}, at::kInt);
    const Tensor draft = at::full({requests, drafted}, -1, at::kInt);
    for (int64_t i = 0; i < requests; ++i) {
      const auto* row = held.data_ptr<int32_t>() + i * room;
      const int64_t length = known.data_ptr<int32_t>()[i];
      TORCH_CHECK(length >= 0 && length <= room, "aclnnNgramSpecDecode: request ", i, " has ",
                  length, " tokens in a row of ", room);
      std::vector<int32_t> added(given.data_ptr<int32_t>() + i * sampled,
                                 given.data_ptr<int32_t>() + (i + 1) * sampled);
      const bool dropped = discarded.data_ptr<int32_t>()[i] != 0;
      for (int32_t& token : added) token = dropped || token >= vocabulary ? -1 : token;
      const int64_t fit =
          std::min<int64_t>(sampled - std::count(added.begin(), added.end(), -1), room - length);
      added.resize(static_cast<size_t>(fit));
      next.data_ptr<int32_t>()[i] = fit > 0 ? added.back() : row[std::max<int64_t>(length - 1, 0)];
      std::vector<int32_t> tokens(row, row + length);
      tokens.insert(tokens.end(), added.begin(), added.end());
      auto* drafts = draft.data_ptr<int32_t>() + i * drafted;
      if (fit > 0) {
        in[0][i].narrow(0, length, fit).copy_(at::tensor(added, at::kInt));
        const NgramMatch match = FindNgram(tokens, shortest, longest, room <= kTokensInCore);
        if (match.begin >= 0) {
          const auto from = tokens.begin() + match.begin + match.length;
          std::copy_n(from, std::min<int64_t>(drafted, tokens.end() - from), drafts);
        }
      }
      valid.data_ptr<int32_t>()[i] =
          static_cast<int32_t>(std::find(drafts, drafts + drafted, -1) - drafts);
    }
    out[0].copy_(next);
    out[1].copy_(draft);
    out[2].copy_(valid);
  });
}

// The adapter of each token: given as such, or for runs of tokens whose lengths `counts` has; the
// tokens after the last run have none (-1).
std::vector<int64_t> AdapterOfTokens(const Tensor& adapters, const Tensor& counts, int64_t tokens) {
  const Tensor known = adapters.to(at::kLong).contiguous();
  const auto* adapter = known.data_ptr<int64_t>();
  if (!counts.defined()) return {adapter, adapter + std::min(tokens, known.numel())};
  const Tensor lengths = counts.to(at::kLong).contiguous();
  std::vector<int64_t> result;
  for (int64_t run = 0; run < std::min(known.numel(), lengths.numel()); ++run) {
    const int64_t room = tokens - static_cast<int64_t>(result.size());
    const int64_t length = std::clamp<int64_t>(lengths.data_ptr<int64_t>()[run], 0, room);
    result.insert(result.end(), static_cast<size_t>(length), adapter[run]);
  }
  return result;
}

// Calls fn(first token, token after the last, adapter) for runs of tokens with one adapter.
template <typename Fn>
void ForRuns(const std::vector<int64_t>& adapters, Fn fn) {
  const auto size = static_cast<int64_t>(adapters.size());
  for (int64_t first = 0, after = 0; first < size; first = after) {
    while (after < size && adapters[after] == adapters[first]) ++after;
    if (adapters[first] >= 0) fn(first, after, adapters[first]);
  }
}

// The matrix of an adapter, in float32. `first` is that of the first one; the others lie after it,
// and how many there are nobody says.
Tensor MatrixOf(const Tensor& first, int64_t adapter) {
  const auto bytes = adapter * static_cast<int64_t>(first.nbytes());
  return at::from_blob(static_cast<char*>(first.data_ptr()) + bytes, first.sizes(), first.options())
      .to(at::kFloat);
}

// The arguments that the four products share: x, the matrix of the first adapter, the tokens'
// adapters and perhaps the lengths of runs, y.
struct Product {
  Product(const Call& call, bool runs)
      : x(call.View(0)), matrix(call.View(1)), adapters(call.View(2)), y(call.View(runs ? 4 : 3)) {
    if (runs) lengths = call.View(3);
    call.ExpectRank(0, x, 2);
    call.ExpectRank(1, matrix, 2);
    call.ExpectRank(runs ? 4 : 3, y, 2);
    call.ExpectIndex(2, adapters);
    if (!matrix.is_contiguous()) call.RejectArg(1, "is not dense");
    if (y.size(0) < x.size(0)) call.RejectArg(runs ? 4 : 3, "has fewer rows than x");
  }

  Tensor x, matrix, adapters, lengths, y;
};

// (x [tokens, in], weight [rank, in], indices, seqLen with runs, y [tokens, rank], scale)
Binder Shrink(bool runs) {
  return [runs](const Call& call) {
    const Product of(call, runs);
    const double scale = call.Real(runs ? 5 : 4);
    if (of.matrix.size(1) != of.x.size(1)) call.RejectArg(1, "has other columns than x");
    if (of.y.size(1) != of.matrix.size(0)) call.RejectCall("y has other columns than the rank");
    return MakeKernel([=] {
      ForRuns(AdapterOfTokens(of.adapters, of.lengths, of.x.size(0)),
              [&](int64_t first, int64_t after, int64_t adapter) {
                const Tensor rows = of.x.slice(0, first, after).to(at::kFloat);
                of.y.slice(0, first, after)
                    .copy_(at::matmul(rows, MatrixOf(of.matrix, adapter).t()) * scale);
              });
    });
  };
}

// (x [tokens, rank], weight [size, rank], indices, seqLen with runs, y, offset, size): added to y's
// columns from the offset on.
Binder Expand(bool runs) {
  return [runs](const Call& call) {
    const Product of(call, runs);
    const int64_t offset = call.Int(runs ? 5 : 4), size = call.Int(runs ? 6 : 5);
    if (of.matrix.size(1) != of.x.size(1)) call.RejectArg(1, "has other columns than x");
    if (of.matrix.size(0) != size) call.RejectArg(1, "has other rows than the slice");
    if (offset < 0 || offset + size > of.y.size(1)) call.RejectCall("the slice is outside of y");
    return MakeKernel([=] {
      ForRuns(AdapterOfTokens(of.adapters, of.lengths, of.x.size(0)),
              [&](int64_t first, int64_t after, int64_t adapter) {
                const Tensor rows = of.x.slice(0, first, after).to(at::kFloat);
                const Tensor to = of.y.slice(0, first, after).slice(1, offset, offset + size);
                to.copy_(to.to(at::kFloat) + at::matmul(rows, MatrixOf(of.matrix, adapter).t()));
              });
    });
  };
}

}  // namespace

KernelRows ServingRows() {
  return {
      {"aclnnApplyTopKTopP", BindApplyTopKTopP, Widen::kNever, {1, 2}},
      {"aclnnCopyAndExpandEagleInputs", BindCopyAndExpandEagleInputs},
      {"aclnnNgramSpecDecode", BindNgramSpecDecode},
      {"aclnnBgmvShrink", Shrink(false)},
      {"aclnnSgmvShrink", Shrink(true)},
      {"aclnnBgmvExpand", Expand(false)},
      {"aclnnSgmvExpand", Expand(true)},
  };
}

}  // namespace acltape::opapi
