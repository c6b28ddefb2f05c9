// The steps around an attention over compressed keys (multi-head latent attention, DeepSeek-V2,
// arXiv 2405.04434): products, norms and rotary positions of queries and keys, the rows of the
// two caches, and results of parts of the keys as one. They compute in float32 and round once.
// Matrices are floats: quantised ones are refused.
#include <ATen/ATen.h>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// Positions of the arguments; those before 9 are the same in every version.
struct MlaArguments {
  int kv_cache, kr_cache, slots;
  int scales;          // the first of seven scales of quantised matrices
  int epsilon;         // the queries' epsilon; that of the keys follows
  int mode;            // says how the caches lie
  int query;           // its rotary part follows
  int query_scale;     // the scale of a quantised query; -1: none
  int norm_flag = -1;  // the arguments after it serve quantised forms only
  int factor = -1;     // the queries' factor; that of the keys follows
  int sequences = -1;  // lengths, for batches whose sequences differ in length
};
constexpr MlaArguments kMla1 = {10, 11, 9, 12, 19, 21, 22, -1};
constexpr MlaArguments kMla2 = {10, 11, 9, 12, 19, 21, 22, 24};
constexpr MlaArguments kMla3 = {9, 10, 11, 12, 20, 22, 33, 35, 23, 31, 19};

Tensor RmsNorm(const Tensor& x, const Tensor& gamma, double epsilon) {
  return x * x.pow(2).mean({-1}, /*keepdim=*/true).add(epsilon).rsqrt() * gamma;
}

// Turns pairs of neighbours, [..., width], by the angles; the result has all first ones of the
// pairs before all second ones.
Tensor Turned(const Tensor& x, const Tensor& cosines, const Tensor& sines) {
  const int64_t half = x.size(-1) / 2;
  const Tensor pairs = x.unflatten(-1, {half, 2}), a = pairs.select(-1, 0), b = pairs.select(-1, 1);
  return at::cat({a, b}, -1) * cosines + at::cat({-b, a}, -1) * sines;
}

void ExpectMatrix(const Call& call, int i, const Tensor& matrix, at::IntArrayRef sizes) {
  ExpectFloats(call, i, matrix);
  call.ExpectSizes(i, matrix, sizes);
}

// The form of a cache: [blocks, slots of a block, heads, width].
void ExpectCache(const Call& call, int i, const Tensor& cache, int64_t width) {
  ExpectFloats(call, i, cache);
  call.ExpectRank(i, cache, 4);
  if (cache.size(3) != width) {
    call.RejectArg(i, "has shape " + SizesText(cache.sizes()) + ", which holds no rows of " +
                          std::to_string(width));
  }
}

// Writes each row to its slot; rows without one have a negative number.
void WriteRows(Tensor cache, const Tensor& slots, const Tensor& rows) {
  const Tensor kept = slots.ge(0).nonzero().flatten();
  if (cache.numel() == 0 || kept.numel() == 0) return;
  const int64_t block = cache.size(1);
  const Tensor to = slots.index_select(0, kept), written = rows.index_select(0, kept);
  // A row goes to each head, or to the pieces of columns in which the cache holds it.
  const bool pieces = cache.size(3) != rows.size(1);
  const std::vector<int64_t> sizes = {kept.numel(), cache.size(2), cache.size(3)};
  const Tensor spread = pieces ? written.reshape(sizes) : written.unsqueeze(1).expand(sizes);
  cache.index_put_({at::floor_divide(to, block), to.remainder(block)},
                   spread.to(cache.scalar_type()));
}

void ExpectPlain(const Call& call, const MlaArguments& at) {
  for (int i = at.scales; i < at.scales + 7; ++i) {
    if (!call.IsAbsent(i)) call.RejectArg(i, "is given; the soft device takes no quantised form");
  }
  if (at.sequences >= 0 && !call.IsAbsent(at.sequences)) {
    call.RejectArg(at.sequences, "is given, which the soft device lacks");
  }
  const std::string mode = call.Text(at.mode);
  if (!mode.empty() && mode != "PA_BSND") {
    call.RejectArg(at.mode, "must be \"PA_BSND\" on the soft device");
  }
  // Modes of weights, keys, queries and their stores.
  for (int i = at.norm_flag + 1; at.norm_flag >= 0 && i < at.norm_flag + 6; ++i) {
    if (call.Int(i) != 0) call.RejectArg(i, "must be 0: the soft device takes no quantised form");
  }
}

// (tokenX, weightDq, weightUqQr, weightUk, weightDkvKr, rmsnormGammaCq, rmsnormGammaCkv, ropeSin,
// ropeCos, ...): caches are written at their slots.
std::unique_ptr<Kernel> BindMlaProlog(const Call& call, const MlaArguments& at) {
  ExpectPlain(call, at);
  const Operand x = call.In(0), down_q = call.In(1), up_q = call.In(2), up_k = call.In(3);
  const Operand down_kv = call.In(4), gamma_q = call.In(5), gamma_kv = call.In(6);
  const Operand sines = call.In(7), cosines = call.In(8);
  const Tensor slots = call.View(at.slots);
  ExpectFloats(call, 0, x.view());
  if (x.dim() != 2 && x.dim() != 3) call.RejectArg(0, "has neither 2 nor 3 dims");
  call.ExpectRank(1, down_q.view(), 2);
  call.ExpectRank(3, up_k.view(), 3);
  if (sines.dim() == 0) call.RejectArg(7, "has no dims");
  const int64_t hidden = x.sizes().back(), rank = down_q.sizes()[1];
  const int64_t heads = up_k.sizes()[0], width = up_k.sizes()[1], keys = up_k.sizes()[2];
  const int64_t turned = sines.sizes().back();
  if (turned % 2 != 0) call.RejectArg(7, "has an odd last dim");
  ExpectMatrix(call, 1, down_q.view(), {hidden, rank});
  ExpectMatrix(call, 2, up_q.view(), {rank, heads * (width + turned)});
  ExpectFloats(call, 3, up_k.view());
  ExpectMatrix(call, 4, down_kv.view(), {hidden, keys + turned});
  ExpectMatrix(call, 5, gamma_q.view(), {rank});
  ExpectMatrix(call, 6, gamma_kv.view(), {keys});
  const std::vector<int64_t> tokens = x.sizes().slice(0, x.dim() - 1).vec();
  const auto of_tokens = [&](std::initializer_list<int64_t> more) {
    std::vector<int64_t> sizes = tokens;
    sizes.insert(sizes.end(), more);
    return sizes;
  };
  ExpectMatrix(call, 7, sines.view(), of_tokens({turned}));
  ExpectMatrix(call, 8, cosines.view(), of_tokens({turned}));
  call.ExpectIndex(at.slots, slots);
  call.ExpectSizes(at.slots, slots, tokens);
  const Tensor kv_cache = call.Out(at.kv_cache), kr_cache = call.Out(at.kr_cache);
  ExpectCache(call, at.kv_cache, kv_cache, keys);
  ExpectCache(call, at.kr_cache, kr_cache, turned);
  const Tensor query = call.Out(at.query), query_rope = call.Out(at.query + 1);
  ExpectMatrix(call, at.query, query, of_tokens({heads, keys}));
  ExpectMatrix(call, at.query + 1, query_rope, of_tokens({heads, turned}));
  const bool later = at.norm_flag >= 0;
  const bool gives_norm = later && call.Bool(at.norm_flag);
  const Tensor norm = gives_norm ? call.Out(at.query + 3) : Tensor();
  if (gives_norm) ExpectMatrix(call, at.query + 3, norm, of_tokens({rank}));
  const Tensor scale = at.query_scale < 0 ? Tensor() : call.OptionalOut(at.query_scale);
  const double factor_q = later ? call.Real(at.factor) : 1;
  const double factor_kv = later ? call.Real(at.factor + 1) : 1;
  const double epsilon_q = call.Real(at.epsilon), epsilon_kv = call.Real(at.epsilon + 1);
  return MakeKernel([=] {
    const auto wide = [](const Operand& from) { return from().to(at::kFloat); };
    const Tensor rows = wide(x).reshape({-1, hidden});
    const Tensor cosine = wide(cosines).reshape({-1, turned});
    const Tensor sine = wide(sines).reshape({-1, turned});
    const Tensor low = RmsNorm(rows.mm(wide(down_q)), wide(gamma_q), epsilon_q) * factor_q;
    const Tensor both = low.mm(wide(up_q)).reshape({-1, heads, width + turned});
    const Tensor plain = both.narrow(2, 0, width).transpose(0, 1).bmm(wide(up_k)).transpose(0, 1);
    Tensor(query).copy_(plain.reshape(query.sizes()));
    Tensor(query_rope)
        .copy_(Turned(both.narrow(2, width, turned), cosine.unsqueeze(1), sine.unsqueeze(1))
                   .reshape(query_rope.sizes()));
    const Tensor compressed = rows.mm(wide(down_kv));
    const Tensor index = slots.to(at::kLong).reshape({-1});
    WriteRows(kv_cache, index,
              RmsNorm(compressed.narrow(1, 0, keys), wide(gamma_kv), epsilon_kv) * factor_kv);
    WriteRows(kr_cache, index, Turned(compressed.narrow(1, keys, turned), cosine, sine));
    if (norm.defined()) Tensor(norm).copy_(low.reshape(norm.sizes()));
    if (scale.defined()) Tensor(scale).zero_();  // nothing is quantised
  });
}

// A cache [blocks, slots of a block, 1, width] whose blocks lie in fractals of 16 columns.
Tensor InFractals(const Call& call, int i, const Tensor& cache) {
  constexpr int64_t kColumns = 16;
  const int64_t blocks = cache.size(0), rows = cache.size(1), width = cache.size(3);
  if (cache.size(2) != 1 || width % kColumns != 0 || !cache.is_contiguous()) {
    call.RejectArg(i, "cannot be read in fractals of 16 columns");
  }
  return cache.view({blocks, width / kColumns, rows, kColumns}).permute({0, 2, 1, 3});
}

// (kv, gamma, cos, sin, index, kCache, ckvCache, four scales and offsets?, epsilon, cacheMode,
// isOutputKv, kRope, cKv): kv holds for each token the part that is normed, then the part that is
// turned. Without isOutputKv the last two stay unwritten.
std::unique_ptr<Kernel> BindKvRmsNormRopeCache(const Call& call) {
  const Operand kv = call.In(0), gamma = call.In(1), cosines = call.In(2), sines = call.In(3);
  const Tensor slots = call.View(4), kr_cache = call.Out(5), kv_cache = call.Out(6);
  for (int i = 7; i <= 10; ++i) {
    if (!call.IsAbsent(i)) call.RejectArg(i, "is given; the soft device takes no quantised form");
  }
  const double epsilon = call.Real(11);
  const std::string mode = call.Text(12);
  if (mode != "PA" && mode != "PA_NZ") {
    call.RejectArg(12, "must be \"PA\" or \"PA_NZ\" on the soft device");
  }
  ExpectFloats(call, 0, kv.view());
  call.ExpectRank(0, kv.view(), 4);
  call.ExpectRank(1, gamma.view(), 1);
  const int64_t batch = kv.sizes()[0], count = kv.sizes()[2];
  const int64_t keys = gamma.sizes()[0], turned = kv.sizes()[3] - keys;
  if (kv.sizes()[1] != 1) call.RejectArg(0, "has more than one head");
  if (turned < 0 || turned % 2 != 0) call.RejectArg(0, "has a part to be turned of odd width");
  for (int i : {2, 3}) ExpectMatrix(call, i, call.View(i), {batch, 1, count, turned});
  call.ExpectIndex(4, slots);
  call.ExpectSizes(4, slots, {batch * count});
  ExpectCache(call, 5, kr_cache, turned);
  ExpectCache(call, 6, kv_cache, keys);
  const bool fractal = mode == "PA_NZ";
  const Tensor kr_place = fractal ? InFractals(call, 5, kr_cache) : kr_cache;
  const Tensor kv_place = fractal ? InFractals(call, 6, kv_cache) : kv_cache;
  Tensor kr_out, kv_out;
  if (call.Bool(13)) {
    kr_out = call.Out(14);
    kv_out = call.Out(15);
    ExpectMatrix(call, 14, kr_out, {batch, 1, count, turned});
    ExpectMatrix(call, 15, kv_out, {batch, 1, count, keys});
  }
  return MakeKernel([=] {
    const auto rows = [](const Operand& from) { return from().to(at::kFloat).flatten(0, 2); };
    const Tensor both = rows(kv), index = slots.to(at::kLong);
    const Tensor normed = RmsNorm(both.narrow(1, 0, keys), gamma().to(at::kFloat), epsilon);
    const Tensor rope = Turned(both.narrow(1, keys, turned), rows(cosines), rows(sines));
    WriteRows(kv_place, index, normed);
    WriteRows(kr_place, index, rope);
    if (kr_out.defined()) Tensor(kr_out).copy_(rope.reshape(kr_out.sizes()));
    if (kv_out.defined()) Tensor(kv_out).copy_(normed.reshape(kv_out.sizes()));
  });
}

// (lse, localOut, updateType, out, lseOut?): attention over all keys, from results over parts of
// them and the logarithms of their sums of exponentials.
std::unique_ptr<Kernel> BindAttentionUpdate(const Call& call) {
  const std::vector<Tensor> sums = call.Views(0), parts = call.Views(1);
  const int64_t type = call.Int(2);
  if (type != 0 && type != 1) call.RejectArg(2, "must be 0, or 1 to give lseOut, too");
  if (sums.empty() || sums.size() != parts.size()) call.RejectArg(0, "has not one for each part");
  for (size_t i = 0; i < parts.size(); ++i) {
    call.ExpectRank(1, parts[i], 2);
    call.ExpectSizes(1, parts[i], parts[0].sizes());
    call.ExpectSizes(0, sums[i], {parts[0].size(0)});
    ExpectFloats(call, 0, sums[i]);
    ExpectFloats(call, 1, parts[i]);
  }
  const Tensor out = call.Out(3), sum_out = type == 1 ? call.Out(4) : Tensor();
  call.ExpectSizes(3, out, parts[0].sizes());
  if (sum_out.defined()) call.ExpectSizes(4, sum_out, sums[0].sizes());
  return MakeKernel([=] {
    const Tensor each = at::stack(sums).to(at::kFloat), whole = at::logsumexp(each, {0});
    // A row without any key has no weights: its parts are zeros.
    const Tensor weights = (each - whole).exp().nan_to_num(0).unsqueeze(-1);
    Tensor(out).copy_((at::stack(parts).to(at::kFloat) * weights).sum(0));
    if (sum_out.defined()) Tensor(sum_out).copy_(whole);
  });
}

}  // namespace

KernelRows MlaPrologRows() {
  const auto mla = [](const MlaArguments& at) {
    return [&at](const Call& call) { return BindMlaProlog(call, at); };
  };
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnMlaProlog", mla(kMla1), kBoth},
      {"aclnnMlaPrologV2", mla(kMla2), kBoth},
      {"aclnnMlaPrologV2WeightNz", mla(kMla2), kBoth},
      {"aclnnMlaPrologV3", mla(kMla3), kBoth},
      {"aclnnMlaPrologV3WeightNz", mla(kMla3), kBoth},
      {"aclnnKvRmsNormRopeCache", BindKvRmsNormRopeCache, kBoth, {14, 15}},
      {"aclnnAttentionUpdate", BindAttentionUpdate},
  };
}

}  // namespace acltape::opapi
