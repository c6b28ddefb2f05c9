// Rows of keys and values that are normed and turned by their positions on the way into two caches,
// which may be of int8.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/whole.h"
#include "runtime/opapi/kernels/within.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr const char* kNormRopeCache = "aclnnKvRmsNormRopeCacheV2";

// The mode of the caches. Tokens have slots of their own, or the first one of each block does.
struct CacheMode {
  bool by_batch = false;  // [batch, heads, slots, width] instead of [blocks, slots, heads, width]
  bool fractal = false, by_block = false;
};

CacheMode ReadCacheMode(const Call& call, int i) {
  const std::string mode = call.Text(i);
  if (mode == "Norm") return {true};
  if (mode == "PA" || mode == "PA_BNSD") return {};
  if (mode == "PA_NZ") return {false, true};
  if (mode == "PA_BLK_BNSD") return {false, false, true};
  if (mode == "PA_BLK_NZ") return {false, true, true};
  call.RejectArg(i,
                 "must be \"Norm\", \"PA\", \"PA_BNSD\", \"PA_NZ\", \"PA_BLK_BNSD\" or "
                 "\"PA_BLK_NZ\"");
}

// One of the two caches as [blocks, slots, parts, columns], and what quantises its rows.
struct NormedCache {
  Tensor place, scale, offset;

  // Rows [tokens, heads, width] go to their slots.
  void Write(const Tensor& slots, const Tensor& rows) const {
    Tensor values = rows;
    if (scale.defined()) {
      values = values * scale;
      if (offset.defined()) values = values + offset;
      values = values.round().clamp(-128, 127);
    }
    const int64_t block = place.size(1);
    const Tensor to = Within(slots, place.size(0) * block, kNormRopeCache);
    place.index_put_(
        {at::floor_divide(to, block), to.remainder(block)},
        values.reshape({to.numel(), place.size(2), place.size(3)}).to(place.scalar_type()));
  }
};

// A factor for all numbers, for each column, or for each column of each head.
Tensor ReadRowFactor(const Call& call, int i, int64_t heads, int64_t width) {
  if (call.IsAbsent(i)) return {};
  const Tensor factor = call.View(i);
  ExpectDtypes(call, i, factor, {at::kFloat});
  const bool of_columns = factor.dim() == 1 && (factor.size(0) == 1 || factor.size(0) == width);
  if (!of_columns) call.ExpectSizes(i, factor, {heads, width});
  return factor;
}

// The arguments that a cache and its factors have, and the form of its rows.
struct CachePlaces {
  int cache, scale, offset;
};

NormedCache ReadNormedCache(const Call& call, const CachePlaces& at, const CacheMode& mode,
                            int64_t heads, int64_t width) {
  NormedCache cache;
  const Tensor whole = call.Out(at.cache);
  call.ExpectRank(at.cache, whole, 4);
  cache.scale = ReadRowFactor(call, at.scale, heads, width);
  cache.offset = ReadRowFactor(call, at.offset, heads, width);
  if (cache.offset.defined() && !cache.scale.defined()) {
    call.RejectArg(at.offset, "is given without a scale");
  }
  const at::ScalarType given = call.View(0).scalar_type();
  ExpectDtypes(call, at.cache, whole, {cache.scale.defined() ? at::kChar : given});
  const int64_t columns = cache.scale.defined() ? 32 : 16;  // numbers in 32 bytes
  if (mode.by_batch) {
    call.ExpectSizes(at.cache, whole, {call.View(0).size(0), heads, whole.size(2), width});
    cache.place = whole.transpose(1, 2);
    return cache;
  }
  call.ExpectSizes(at.cache, whole, {whole.size(0), whole.size(1), heads, width});
  if (whole.size(1) < 1 || whole.size(1) % columns != 0) {
    call.RejectArg(at.cache, "has blocks of a number of slots that does not fill 32 bytes");
  }
  cache.place = whole;
  if (!mode.fractal) return cache;
  if (heads != 1) call.RejectArg(0, "has several heads, which no cache in fractals holds");
  if (width % columns != 0 || !whole.is_contiguous()) {
    call.RejectArg(at.cache, "cannot be read in fractals of 32 bytes");
  }
  cache.place =
      whole.view({whole.size(0), width / columns, whole.size(1), columns}).permute({0, 2, 1, 3});
  return cache;
}

// The slot of each token [batch, count], -1 where it has none.
Tensor SlotsOfTokens(const Tensor& index, const CacheMode& mode, int64_t batch, int64_t count,
                     int64_t slots) {
  const Tensor given = index.to(at::kLong).reshape({batch, -1});
  if (mode.by_block) {
    const Tensor token = at::arange(count);
    const Tensor first = given.index_select(1, at::floor_divide(token, slots));
    return at::where(first < 0, first, first + token.remainder(slots));
  }
  if (!mode.by_batch) return given;
  TORCH_CHECK(!given.ge(slots).any().item<bool>(), kNormRopeCache, ": an index is beyond the ",
              slots, " slots of a batch");
  const Tensor of_batch = at::arange(batch).unsqueeze(1) * slots;
  return at::where(given < 0, given, given + of_batch);
}

// Neighbours are turned together; the first ones of the pairs come before the second ones.
Tensor TurnedNeighbours(const Tensor& x, const Tensor& cosine, const Tensor& sine) {
  const Tensor pairs = x.unflatten(-1, {x.size(-1) / 2, 2});
  const Tensor a = pairs.select(-1, 0), b = pairs.select(-1, 1);
  return at::cat({a, b}, -1) * cosine + at::cat({-b, a}, -1) * sine;
}

// Rows [batch, tokens, heads, width] with the heads after the tokens, in float32.
Tensor TokensFirst(const Tensor& x) { return x.to(at::kFloat).transpose(1, 2); }

// (kv [batch, heads, tokens, width], gamma, cos, sin, index, kCache, ckvCache, kRopeScale?,
// cKvScale?, kRopeOffset?, cKvOffset?, v?, epsilon, cacheMode, isOutputKv, kRope, cKv): without v a
// row of kv has the part that is normed for ckvCache, then the part that is turned for kCache. With
// v, which goes to ckvCache as it is, the whole row is normed and its first part turned.
std::unique_ptr<Kernel> BindKvRmsNormRopeCacheV2(const Call& call) {
  const Tensor kv = call.View(0), gamma = call.View(1), index = call.View(4);
  ExpectDtypes(call, 0, kv, {at::kHalf, at::kBFloat16});
  call.ExpectRank(0, kv, 4);
  if (kv.numel() == 0) call.RejectArg(0, "is empty");
  const int64_t batch = kv.size(0), heads = kv.size(1), count = kv.size(2), whole = kv.size(3);
  const bool apart = !call.IsAbsent(11);
  const Tensor v = apart ? call.View(11) : Tensor();
  if (apart) call.ExpectRank(11, v, 4);
  if (!apart && heads != 1) call.RejectArg(0, "has more than one head, and vOptional is absent");
  if (heads != 1 && heads != 2 && heads != 4 && heads != 8) {
    call.RejectArg(0, "must have 1, 2, 4 or 8 heads");
  }
  call.ExpectRank(1, gamma, 1);
  const int64_t values = apart ? v.size(3) : gamma.size(0);
  const int64_t keys = apart ? whole : whole - values;
  if (apart) {
    call.ExpectSizes(1, gamma, {whole});
    call.ExpectSizes(11, v, {batch, heads, count, values});
  }
  const Tensor cosine = call.View(2);
  if (call.IsAbsent(3)) call.RejectArg(3, "is absent, which the soft device lacks");
  const Tensor sine = call.View(3);
  call.ExpectRank(2, cosine, 4);
  const int64_t turned = cosine.size(3);
  if (turned < 1 || turned % 2 != 0 || (apart ? turned > keys : turned != keys)) {
    call.RejectArg(2, "has a last dim that is no part of kv to be turned");
  }
  if (cosine.size(2) != 1) call.ExpectSizes(2, cosine, {batch, 1, count, turned});
  call.ExpectSizes(2, cosine, {batch, 1, cosine.size(2), turned});
  call.ExpectSizes(3, sine, cosine.sizes());
  for (int i : {1, 2, 3}) ExpectDtypes(call, i, call.View(i), {kv.scalar_type()});
  if (apart) ExpectDtypes(call, 11, v, {kv.scalar_type()});
  for (int i : {9, 10}) {
    if (!apart && !call.IsAbsent(i)) call.RejectArg(i, "is given, and vOptional is absent");
  }
  const CacheMode mode = ReadCacheMode(call, 13);
  const NormedCache key_cache = ReadNormedCache(call, {5, 7, 9}, mode, heads, keys);
  const NormedCache value_cache = ReadNormedCache(call, {6, 8, 10}, mode, heads, values);
  const int64_t slots = key_cache.place.size(1);
  if (value_cache.place.size(0) != key_cache.place.size(0) || value_cache.place.size(1) != slots) {
    call.RejectArg(6, "has other slots than kCacheRef");
  }
  ExpectDtypes(call, 4, index, {at::kLong});
  if (mode.by_batch) {
    call.ExpectSizes(4, index, {batch, count});
  } else {
    call.ExpectSizes(4, index, {batch * (mode.by_block ? (count + slots - 1) / slots : count)});
  }
  const double epsilon = call.Real(12);
  // Without blocks of slots the outputs exist only where v's rows are quantised, too.
  const bool quantised = key_cache.scale.defined() || value_cache.scale.defined();
  const bool writes = call.Bool(14) && (!mode.by_batch || (apart && quantised));
  Tensor key_out, value_out;
  if (writes) {
    key_out = call.Out(15);
    value_out = call.Out(16);
    call.ExpectSizes(15, key_out, {batch, heads, count, keys});
    call.ExpectSizes(16, value_out, {batch, heads, count, values});
    for (int i : {15, 16}) ExpectDtypes(call, i, call.View(i), {kv.scalar_type()});
  }
  return MakeKernel([=] {
    const Tensor rows = TokensFirst(kv), normed_part = apart ? rows : rows.narrow(3, 0, values);
    const Tensor normed = normed_part *
                          normed_part.pow(2).mean({-1}, /*keepdim=*/true).add(epsilon).rsqrt() *
                          gamma.to(at::kFloat);
    const Tensor plain = apart ? normed : rows.narrow(3, values, keys);
    const Tensor first =
        TurnedNeighbours(plain.narrow(3, 0, turned), TokensFirst(cosine), TokensFirst(sine));
    const Tensor key = at::cat({first, plain.narrow(3, turned, keys - turned)}, 3);
    const Tensor value = apart ? TokensFirst(v) : normed;
    const Tensor slot = SlotsOfTokens(index, mode, batch, count, slots).reshape({-1});
    const Tensor kept = slot.ge(0).nonzero().flatten();
    const Tensor to = slot.index_select(0, kept);
    key_cache.Write(to, key.flatten(0, 1).index_select(0, kept));
    value_cache.Write(to, value.flatten(0, 1).index_select(0, kept));
    if (key_out.defined()) key_out.copy_(key.transpose(1, 2));
    if (value_out.defined()) value_out.copy_(value.transpose(1, 2));
  });
}

}  // namespace

KernelRows NormRopeCacheRows() {
  return {
      {"aclnnKvRmsNormRopeCacheV2", BindKvRmsNormRopeCacheV2, Widen::kNever, {15, 16}},
  };
}

}  // namespace acltape::opapi
