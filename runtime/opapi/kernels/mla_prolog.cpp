// The steps before an attention over compressed keys (multi-head latent attention, DeepSeek-V2,
// arXiv 2405.04434): products, norms and rotary positions of queries and keys, and the rows of the
// two caches. They compute in float32 and round once. Matrices are floats: quantised ones are
// refused.
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

void WriteRows(Tensor cache, const Tensor& slots, const Tensor& rows) {
  if (cache.numel() == 0 || rows.size(0) == 0) return;
  const int64_t block = cache.size(1);
  const Tensor spread = rows.unsqueeze(1).expand({rows.size(0), cache.size(2), rows.size(1)});
  cache.index_put_({at::floor_divide(slots, block), slots.remainder(block)},
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

}  // namespace

KernelRows MlaPrologRows() {
  const auto mla = [](const MlaArguments& at) {
    return [&at](const Call& call) { return BindMlaProlog(call, at); };
  };
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnMlaProlog", mla(kMla1), kBoth},           {"aclnnMlaPrologV2", mla(kMla2), kBoth},
      {"aclnnMlaPrologV2WeightNz", mla(kMla2), kBoth}, {"aclnnMlaPrologV3", mla(kMla3), kBoth},
      {"aclnnMlaPrologV3WeightNz", mla(kMla3), kBoth},
  };
}

}  // namespace acltape::opapi
