// Queries, keys and values of one product: queries and keys are turned by their positions, and keys
// and values are quantised into caches of int8.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/whole.h"
#include "runtime/opapi/kernels/within.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The factors of a cache: [heads, width]; an offset is optional.
struct CacheFactors {
  Tensor scale, offset;

  // Whole numbers of int8 for rows [rows, heads, width].
  Tensor Quantized(const Tensor& rows) const {
    Tensor scaled = rows * scale;
    if (offset.defined()) scaled = scaled + offset;
    return scaled.round().clamp(-128, 127).to(at::kChar);
  }
};

CacheFactors ReadCacheFactors(const Call& call, int scale, int offset, at::IntArrayRef sizes) {
  CacheFactors factors;
  factors.scale = call.View(scale);
  if (!call.IsAbsent(offset)) factors.offset = call.View(offset);
  for (const auto& [i, tensor] : {std::pair(scale, factors.scale), {offset, factors.offset}}) {
    if (!tensor.defined()) continue;
    ExpectDtypes(call, i, tensor, {at::kFloat});
    call.ExpectSizes(i, tensor, sizes);
  }
  return factors;
}

// A product of int8 that is still an int32, [.., width], and what makes floats of it.
struct RawProduct {
  Tensor x, of_columns, of_rows, bias;

  int64_t tokens() const { return x.numel() / x.size(-1); }
  // [tokens, width]
  Tensor InFloat() const {
    const Tensor rows = x.reshape({tokens(), x.size(-1)});
    if (!of_columns.defined()) return rows.to(at::kFloat);
    const bool whole = bias.defined() && bias.scalar_type() == at::kInt;
    Tensor result = (whole ? rows + bias : rows).to(at::kFloat) * of_columns;
    if (of_rows.defined()) result = result * of_rows.unsqueeze(1);
    return bias.defined() && !whole ? result + bias.to(at::kFloat) : result;
  }
};

RawProduct ReadRawProduct(const Call& call, const Tensor& x, at::ScalarType float_dtype) {
  const int64_t width = x.size(-1);
  RawProduct product;
  product.x = x;
  if (x.scalar_type() != at::kInt) {
    if (x.scalar_type() != float_dtype) call.RejectArg(0, "has another dtype than cos");
    return product;  // the factors have no effect then
  }
  if (call.IsAbsent(10)) call.RejectArg(10, "is absent, and x is of dtype int32");
  product.of_columns = call.View(10);
  ExpectDtypes(call, 10, product.of_columns, {at::kFloat});
  call.ExpectSizes(10, product.of_columns, {width});
  if (!call.IsAbsent(11)) {
    product.of_rows = call.View(11);
    ExpectDtypes(call, 11, product.of_rows, {at::kFloat});
    call.ExpectSizes(11, product.of_rows, {product.tokens()});
  }
  if (!call.IsAbsent(12)) {
    product.bias = call.View(12);
    ExpectDtypes(call, 12, product.bias, {at::kFloat, at::kHalf, at::kInt, at::kBFloat16});
    call.ExpectSizes(12, product.bias, {width});
  }
  return product;
}

// The second half of each row stands for imaginary parts.
Tensor TurnedHalves(const Tensor& x, const Tensor& cosine, const Tensor& sine) {
  const int64_t half = x.size(-1) / 2;
  const Tensor a = x.narrow(-1, 0, half), b = x.narrow(-1, half, half);
  return x * cosine + at::cat({-b, a}, -1) * sine;
}

// The slot of each token in a cache of `slots` for a batch or a block: tokens of a batch follow
// each other from the place that is given for it, or each token has its own slot.
std::vector<int64_t> SlotsOf(const Tensor& places, bool in_blocks, int64_t tokens, int64_t blocks,
                             int64_t slots) {
  const int64_t each = in_blocks ? 1 : tokens / std::max<int64_t>(places.numel(), 1);
  const int64_t starts = in_blocks ? blocks * slots : slots - each + 1;
  const Tensor known = Within(places, starts, "aclnnDequantRopeQuantKvcache");
  std::vector<int64_t> result;
  for (int64_t i = 0; i < known.numel(); ++i) {
    const int64_t first = known.data_ptr<int64_t>()[i] + (in_blocks ? 0 : i * slots);
    for (int64_t j = 0; j < each; ++j) result.push_back(first + j);
  }
  return result;
}

// (x, cos, sin, kCacheRef, vCacheRef, indices, scaleK, scaleV, offsetK?, offsetV?, weightScale?,
// activationScale?, bias?, sizeSplits, quantMode, layout, kvOutput, cacheMode, qOut, kOut, vOut): x
// [.., width] holds queries, keys and values of each token. kOut and vOut are written with
// kvOutput.
std::unique_ptr<Kernel> BindDequantRopeQuantKvcache(const Call& call) {
  const Tensor x = call.View(0), cosine = call.View(1), sine = call.View(2);
  ExpectDtypes(call, 0, x, {at::kHalf, at::kInt, at::kBFloat16});
  ExpectDtypes(call, 1, cosine, {at::kHalf, at::kBFloat16});
  if (x.dim() != 2 && x.dim() != 3) call.RejectArg(0, "has neither 2 nor 3 dims");
  if (x.numel() == 0) call.RejectArg(0, "is empty");
  if (x.size(-1) > 4096 || x.size(-1) % 64 != 0) {
    call.RejectArg(0, "has a last dim that is no multiple of 64 up to 4096");
  }
  const RawProduct product = ReadRawProduct(call, x, cosine.scalar_type());
  std::vector<Tensor> caches;
  for (int i : {3, 4}) {
    caches.push_back(call.Out(i));
    ExpectDtypes(call, i, caches.back(), {at::kChar});
    call.ExpectRank(i, caches.back(), 4);
    call.ExpectSizes(i, caches.back(), caches[0].sizes());
    if (!caches.back().is_contiguous()) call.RejectArg(i, "is not dense");
  }
  const int64_t blocks = caches[0].size(0), slots = caches[0].size(1);
  const int64_t heads = caches[0].size(2), width = caches[0].size(3);
  const std::vector<int64_t> parts = call.Ints(13);
  if (parts.size() != 3) call.RejectArg(13, "has not 3 entries");
  if (parts[1] != heads * width || parts[2] != heads * width) {
    call.RejectArg(13, "gives keys or values another size than the caches have");
  }
  if (parts[0] < 0 || width < 1 || parts[0] % width != 0 ||
      parts[0] + parts[1] + parts[2] != x.size(-1)) {
    call.RejectArg(13, "does not split the last dim of x into heads");
  }
  if (width % 2 != 0) call.RejectArg(3, "has heads of odd width");
  std::vector<int64_t> angles = {x.size(0), width};
  if (x.dim() == 3) angles = {x.size(0), x.size(1), 1, width};
  for (const auto& [i, tensor] : {std::pair(1, cosine), {2, sine}}) {
    if (tensor.scalar_type() != cosine.scalar_type()) {
      call.RejectArg(i, "has another dtype than cos");
    }
    call.ExpectSizes(i, tensor, angles);
  }
  const std::string quantised = call.Text(14), layout = call.Text(15), mode = call.Text(17);
  if (!quantised.empty() && quantised != "static") call.RejectArg(14, "must be \"static\"");
  if (!layout.empty() && layout != "BSND") call.RejectArg(15, "must be \"BSND\"");
  if (!mode.empty() && mode != "contiguous" && mode != "page") {
    call.RejectArg(17, "must be \"contiguous\" or \"page\"");
  }
  const bool in_blocks = mode == "page";
  const int64_t tokens = product.tokens();
  const Tensor places = call.View(5);
  ExpectDtypes(call, 5, places, {at::kInt});
  call.ExpectSizes(5, places, {in_blocks ? tokens : x.size(0)});
  if (!in_blocks && (blocks < x.size(0) || slots < tokens / x.size(0))) {
    call.RejectArg(3, "has no room for the rows of x");
  }
  const CacheFactors key = ReadCacheFactors(call, 6, 8, {heads, width});
  const CacheFactors value = ReadCacheFactors(call, 7, 9, {heads, width});
  const auto read_out = [&](int i, int64_t of_heads) {
    std::vector<int64_t> sizes = x.sizes().slice(0, x.dim() - 1).vec();
    sizes.insert(sizes.end(), {of_heads, width});
    const Tensor out = call.Out(i);
    ExpectDtypes(call, i, out, {cosine.scalar_type()});
    call.ExpectSizes(i, out, sizes);
    return out;
  };
  const Tensor query_out = read_out(18, parts[0] / width);
  const Tensor key_out = call.Bool(16) ? read_out(19, heads) : Tensor();
  const Tensor value_out = call.Bool(16) ? read_out(20, heads) : Tensor();
  return MakeKernel([=] {
    const std::vector<int64_t> slot = SlotsOf(places, in_blocks, tokens, blocks, slots);
    const std::vector<Tensor> each = product.InFloat().split_with_sizes(parts, 1);
    const auto heads_of = [&](int i) { return each[i].unflatten(1, {parts[i] / width, width}); };
    const Tensor cosines = cosine.to(at::kFloat).reshape({tokens, 1, width});
    const Tensor sines = sine.to(at::kFloat).reshape({tokens, 1, width});
    const Tensor turned = TurnedHalves(heads_of(1), cosines, sines), values = heads_of(2);
    query_out.copy_(TurnedHalves(heads_of(0), cosines, sines).view(query_out.sizes()));
    if (key_out.defined()) key_out.copy_(turned.view(key_out.sizes()));
    if (value_out.defined()) value_out.copy_(values.reshape(value_out.sizes()));
    const Tensor to = at::tensor(slot, at::kLong);
    caches[0].flatten(0, 1).index_copy_(0, to, key.Quantized(turned));
    caches[1].flatten(0, 1).index_copy_(0, to, value.Quantized(values));
  });
}

}  // namespace

KernelRows QuantizedRopeCacheRows() {
  return {
      {"aclnnDequantRopeQuantKvcache",
       BindDequantRopeQuantKvcache,
       Widen::kNever,
       {14, 15, 17, 19, 20}},
  };
}

}  // namespace acltape::opapi
