// Layers of attention by name, beside the gradients that libtorch derives in doubles.
#include <cmath>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr int64_t kLayerHeads = 16, kHeadWidth = 16, kLayerColumns = kLayerHeads * kHeadWidth;
constexpr int64_t kLayerTargets = 16, kLayerSources = 32;

testing::AssertionResult LayerAgrees(const Tensor& actual, const Tensor& wanted) {
  if (actual.sizes() == wanted.sizes() &&
      at::allclose(actual.to(at::kDouble), wanted.to(at::kDouble), 1e-2, 4e-3)) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure()
         << "the greatest difference of " << actual.sizes() << " is "
         << (actual.to(at::kDouble) - wanted.to(at::kDouble)).abs().max();
}

Tensor LayerInput(at::IntArrayRef shape, double most = 1) {
  return Random(shape, at::kHalf, -most, most);
}

Tensor LayerResult(at::IntArrayRef shape, at::ScalarType type = at::kHalf) {
  return at::full(shape, 77, type);
}

// Eight elements in a byte, the first one in the lowest bit.
Tensor PackedBits(const Tensor& kept) {
  Tensor bytes = at::zeros({kept.numel() / 8}, at::kLong);
  const Tensor rows = kept.reshape({-1, 8}).to(at::kLong);
  for (int64_t bit = 0; bit < 8; ++bit) bytes += rows.select(1, bit) * (int64_t{1} << bit);
  return bytes.to(at::kByte);
}

struct LayerTensors {
  explicit LayerTensors(int64_t batch, bool softmax_in_float = true)
      : query(LayerInput({batch * kLayerTargets, kLayerColumns})),
        key(LayerInput({batch * kLayerSources, kLayerColumns})),
        value(LayerInput({batch * kLayerSources, kLayerColumns})),
        mask(LayerInput({batch, 1, kLayerTargets, kLayerSources})),
        kept(Random({batch, kLayerHeads, kLayerTargets, kLayerSources}, at::kBool)),
        y(LayerResult({batch * kLayerTargets, kLayerColumns})),
        used(LayerResult({batch * kLayerHeads * kLayerTargets * kLayerSources / 8}, at::kByte)),
        query_heads(LayerResult({batch, kLayerHeads, kLayerTargets, kHeadWidth})),
        key_heads(LayerResult({batch, kLayerHeads, kLayerSources, kHeadWidth})),
        value_heads(LayerResult({batch, kLayerHeads, kLayerSources, kHeadWidth})),
        softmax(LayerResult({batch, kLayerHeads, kLayerTargets, kLayerSources},
                            softmax_in_float ? at::kFloat : at::kHalf)),
        dropped(LayerResult({batch, kLayerHeads, kLayerTargets, kLayerSources})),
        context(LayerResult({batch * kLayerTargets, kLayerColumns})) {
    for (int i = 0; i < 4; ++i) {
      weights.push_back(LayerInput({kLayerColumns, kLayerColumns}, 0.125));
      biases.push_back(LayerInput({kLayerColumns}, 0.5));
    }
  }

  Tensor query, key, value, mask, kept, y, used, query_heads, key_heads, value_heads, softmax,
      dropped, context;
  std::vector<Tensor> weights, biases;  // query, key, value, result
};

void SetLayer(NamedCall& call, float keep, bool softmax_in_float) {
  call.Set("attn_head_num", kLayerHeads)
      .Set("attn_dim_per_head", kHeadWidth)
      .Set("src_len", kLayerSources);
  call.Set("tgt_len", kLayerTargets)
      .Set("keep_prob", keep)
      .Set("softmax_use_float", softmax_in_float);
}

void DescribeLayer(NamedCall& call, const LayerTensors& of, bool biased, float keep) {
  call.In(of.query).In(of.key).In(of.value).In(of.weights[0]).In(of.weights[1]).In(of.weights[2]);
  call.In(of.mask).In(of.weights[3]);
  for (int i = 0; biased && i < 4; ++i) call.In(of.biases[i]);
  call.Out(of.y).Out(of.used).Out(of.query_heads).Out(of.key_heads).Out(of.value_heads);
  call.Out(of.softmax).Out(of.dropped).Out(of.context);
  SetLayer(call, keep, of.softmax.scalar_type() == at::kFloat);
}

void ExpectLayerRefused(NamedCall& call, const char* part) {
  TakeMessage();
  EXPECT_NE(call.Run(), ACL_SUCCESS);
  const std::string message = TakeMessage();
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

// The layer in doubles, with leaves whose gradients are asked for.
struct WideLayer {
  WideLayer(const LayerTensors& of, bool biased, double keep) {
    const auto leaf = [](const Tensor& tensor) {
      return tensor.to(at::kDouble).detach().requires_grad_();
    };
    query = leaf(of.query), key = leaf(of.key), value = leaf(of.value);
    for (int i = 0; i < 4; ++i) {
      weights.push_back(leaf(of.weights[i]));
      biases.push_back(leaf(biased ? of.biases[i] : at::zeros({kLayerColumns})));
    }
    const auto heads = [&](const Tensor& rows, int i, int64_t length) {
      return at::linear(rows, weights[i], biases[i])
          .view({-1, length, kLayerHeads, kHeadWidth})
          .permute({0, 2, 1, 3});
    };
    query_heads = heads(query, 0, kLayerTargets) / std::sqrt(static_cast<double>(kHeadWidth));
    key_heads = heads(key, 1, kLayerSources);
    value_heads = heads(value, 2, kLayerSources);
    softmax = at::softmax(at::einsum("bnid,bnjd->bnij", {query_heads, key_heads}) + of.mask, -1);
    dropped = keep < 1 ? softmax * of.kept.to(at::kDouble) / keep : softmax;
    context = at::einsum("bnij,bnjd->bind", {dropped, value_heads}).reshape({-1, kLayerColumns});
    y = at::linear(context, weights[3], biases[3]);
  }

  Tensor query, key, value, query_heads, key_heads, value_heads, softmax, dropped, context, y;
  std::vector<Tensor> weights, biases;
};

TEST(AttentionLayersByName, ALayerAndItsGradientAreThoseOfTheFormula) {
  const struct {
    bool biased, softmax_in_float;
    double keep;
  } kForms[] = {{true, true, 1}, {true, false, 0.5}, {false, true, 0.5}, {false, false, 1}};
  for (const auto& form : kForms) {
    const LayerTensors of(2, form.softmax_in_float);
    const Tensor bits = PackedBits(of.kept);
    NamedCall call("MultiHeadAttention");
    DescribeLayer(call, of, form.biased, static_cast<float>(form.keep));
    if (form.keep < 1) call.In(bits);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(SameBits(of.used, form.keep < 1 ? bits : at::full_like(of.used, 255)));

    const at::AutoGradMode enabled(true);
    const WideLayer wanted(of, form.biased, form.keep);
    EXPECT_TRUE(LayerAgrees(of.query_heads, wanted.query_heads.detach()));
    EXPECT_TRUE(LayerAgrees(of.key_heads, wanted.key_heads.detach()));
    EXPECT_TRUE(LayerAgrees(of.value_heads, wanted.value_heads.detach()));
    EXPECT_TRUE(LayerAgrees(of.softmax, wanted.softmax.detach()));
    EXPECT_TRUE(LayerAgrees(of.dropped, wanted.dropped.detach()));
    EXPECT_TRUE(LayerAgrees(of.context, wanted.context.detach()));
    EXPECT_TRUE(LayerAgrees(of.y, wanted.y.detach()));

    const Tensor gradient = LayerInput({2 * kLayerTargets, kLayerColumns}, 0.25);
    wanted.y.backward(gradient.to(at::kDouble));
    std::vector<Tensor> of_weights, of_biases;
    for (int i = 0; i < 4; ++i) {
      of_weights.push_back(LayerResult({kLayerColumns, kLayerColumns}));
      of_biases.push_back(LayerResult({1, kLayerColumns}));
    }
    const Tensor of_query = LayerResult({2 * kLayerTargets, kLayerColumns});
    const Tensor of_key = LayerResult({2 * kLayerSources, kLayerColumns});
    const Tensor of_value = LayerResult({2 * kLayerSources, kLayerColumns});
    NamedCall back("MultiHeadAttentionGrad");
    back.In(of.query).In(of.key).In(of.value);
    for (const Tensor& weight : of.weights) back.In(weight);
    back.In(of.query_heads).In(of.key_heads).In(of.value_heads).In(of.softmax).In(of.dropped);
    back.In(of.context).In(gradient);
    if (form.keep < 1) back.In(of.used);
    for (const Tensor& weight : of_weights) back.Out(weight);
    back.Out(of_query).Out(of_key).Out(of_value);
    for (const Tensor& bias : of_biases) back.Out(bias);
    SetLayer(back, static_cast<float>(form.keep), form.softmax_in_float);
    back.Set("bias_grad_mask", std::vector<bool>(4, form.biased));
    ASSERT_EQ(back.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(LayerAgrees(of_query, wanted.query.grad()));
    EXPECT_TRUE(LayerAgrees(of_key, wanted.key.grad()));
    EXPECT_TRUE(LayerAgrees(of_value, wanted.value.grad()));
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(LayerAgrees(of_weights[i], wanted.weights[i].grad())) << i;
      const Tensor bias = wanted.biases[i].grad().view({1, kLayerColumns});
      EXPECT_TRUE(LayerAgrees(of_biases[i], form.biased ? bias : LayerResult({1, kLayerColumns})))
          << i;
    }
  }
}

TEST(AttentionLayersByName, ALayerDrawsAMaskThatIsNotGiven) {
  const LayerTensors of(1);
  NamedCall call("MultiHeadAttention");
  DescribeLayer(call, of, true, 0.75f);
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  int64_t kept = 0;
  for (int64_t bit = 0; bit < 8; ++bit) {
    kept += of.used.to(at::kLong).bitwise_and(int64_t{1} << bit).ne(0).sum().item<int64_t>();
  }
  const int64_t all = of.dropped.numel();
  EXPECT_GT(kept, all * 7 / 10);
  EXPECT_LT(kept, all * 8 / 10);
  EXPECT_EQ(of.dropped.ne(0).sum().item<int64_t>(), kept);
  const LayerTensors other(1);
  NamedCall again("MultiHeadAttention");
  DescribeLayer(again, other, true, 0.75f);
  ASSERT_EQ(again.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_FALSE(SameBits(other.used, of.used));
}

TEST(AttentionLayersByName, ALayerWithoutABatchGivesNothing) {
  const LayerTensors none(0);
  NamedCall call("MultiHeadAttention");
  DescribeLayer(call, none, true, 1);
  EXPECT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
}

TEST(AttentionLayersByName, OtherFormsOfALayerAreRefused) {
  const LayerTensors of(1);
  for (const char* size : {"attn_head_num", "attn_dim_per_head", "src_len", "tgt_len"}) {
    for (int64_t value : {int64_t{0}, int64_t{-16}, int64_t{24}, int64_t{1} << 40}) {
      NamedCall call("MultiHeadAttention");
      DescribeLayer(call, of, true, 1);
      ExpectLayerRefused(call.Set(size, value), "expected a positive multiple of 16");
    }
  }
  NamedCall keep("MultiHeadAttention");
  DescribeLayer(keep, of, true, -1);
  ExpectLayerRefused(keep, "keep_prob is -1, expected a number from 0 to 1");
  NamedCall one_bias("MultiHeadAttention");
  DescribeLayer(one_bias, of, false, 1);
  ExpectLayerRefused(one_bias.In(of.biases[0]), "takes all four biases or none");
  NamedCall three_biases("MultiHeadAttention");
  DescribeLayer(three_biases, of, false, 1);
  three_biases.In(of.biases[0]).None().In(of.biases[2]).In(of.biases[3]).None();
  ExpectLayerRefused(three_biases, "5 optional inputs are there, of which 3 are biases");
  NamedCall short_mask("MultiHeadAttention");
  DescribeLayer(short_mask, of, true, 0.5f);
  ExpectLayerRefused(short_mask.In(at::zeros({8}, at::kByte)), "expected uint8 bytes, 1024 at");
  const auto with = [&](Tensor LayerTensors::*changed, const Tensor& tensor, const char* said) {
    LayerTensors other = of;
    other.*changed = tensor;
    NamedCall call("MultiHeadAttention");
    DescribeLayer(call, other, true, 1);
    ExpectLayerRefused(call, said);
  };
  with(&LayerTensors::query, at::zeros({kLayerTargets, kLayerColumns}),
       "input 0 has the shape [16, 256] and");
  with(&LayerTensors::key, LayerInput({kLayerTargets, kLayerColumns}), "expected [32, 256] and 1");
  with(&LayerTensors::mask, LayerInput({kLayerTargets, kLayerSources}),
       "expected [1, 16, 16, 32] and 1");
  with(&LayerTensors::y, LayerInput({kLayerTargets, 1}), "output 0 has the shape [16, 1]");
  with(&LayerTensors::softmax,
       LayerInput({1, kLayerHeads, kLayerTargets, kLayerSources}).to(at::kDouble),
       "output 5 has the shape [1, 16, 16, 32] and the type 11");
  NamedCall back("MultiHeadAttentionGrad");
  for (int i = 0; i < 14; ++i) back.In(of.query);
  for (int i = 0; i < 11; ++i) back.Out(of.y);
  SetLayer(back, 1, true);
  ExpectLayerRefused(back, "bias_grad_mask has 0 values");
  ExpectLayerRefused(back.Set("bias_grad_mask", std::vector<bool>(4, true)),
                     "input 1 has the shape [16, 256] and the type 1, expected [32, 256] and 1");
}

}  // namespace
}  // namespace acltape::opapi
