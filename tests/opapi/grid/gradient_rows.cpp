// Gradients, against the library's automatic differentiation of the forward formula; recurrent
// layers; the parts of a batch normalisation over several devices.
#include <cmath>

#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

const Tolerance kDerived = {256, 2e-5, false,
                            "the library differentiates step by step, in another order"};

// A leaf of a computation that is differentiated.
Tensor Leaf(const Tensor& tensor, at::ScalarType dtype = at::kFloat) {
  return tensor.detach().to(dtype).clone().requires_grad_();
}

Tensor GradientOf(const Tensor& leaf) {
  return leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf);
}

// --- Losses: (gradOutput, self, target, ..., reduction).

Inputs LossGradients(Args between = {}, Args last = {}) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (int64_t reduction : {0, 1, 2}) {
      const Tensor gradient =
          reduction == 0 ? source.Random({4, 5}, dtype) : source.Random({}, dtype);
      Args args = {gradient, source.Random({4, 5}, dtype), source.Random({4, 5}, dtype, 0, 1)};
      args.insert(args.end(), between.begin(), between.end());
      args.push_back(reduction);
      args.insert(args.end(), last.begin(), last.end());
      inputs.push_back(args);
    }
    return inputs;
  };
}

template <typename Loss>
Reference LossGradient(Loss loss) {
  return [loss](const In& in) {
    const at::AutoGradMode enabled(true);
    const Tensor self = Leaf(in[1]);
    loss(self, in[2].to(at::kFloat), in).backward(in[0].to(at::kFloat));
    return GradientOf(self).to(in[1].scalar_type());
  };
}

// By the gradient of the target, not of self.
Reference KlDivTargetGradient() {
  return [](const In& in) {
    const at::AutoGradMode enabled(true);
    const Tensor target = Leaf(in[2]);
    at::kl_div(in[1].to(at::kFloat), target, in.integer(3), in.flag(4))
        .backward(in[0].to(at::kFloat));
    return GradientOf(target).to(in[2].scalar_type());
  };
}

Rows Activations() {
  const Dtypes dtypes = {at::kFloat, at::kHalf, at::kBFloat16};
  return {
      // The buffer is not read.
      {"aclnnLogSigmoidBackward",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({3, 4}, dtype), source.Random({3, 4}, dtype),
              source.Random({3, 4}, dtype)},
             {source.Random({}, dtype), source.Random({}, dtype), source.Random({1}, dtype)}};
       },
       dtypes,
       [](const In& in) {
         const at::AutoGradMode enabled(true);
         const Tensor self = Leaf(in[1]);
         at::log_sigmoid(self).backward(in[0].to(at::kFloat));
         return GradientOf(self).to(in[1].scalar_type());
       },
       kDerived},
      {"aclnnPreluBackward",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (int64_t channels : {1, 3}) {
           inputs.push_back({source.Random({2, 3, 5}, dtype), source.Random({2, 3, 5}, dtype),
                             source.Random({channels}, dtype)});
         }
         inputs.push_back({source.Random({4, 6}, dtype), source.Random({6, 4}, dtype).t(),
                           source.Random({6}, dtype)});
         return inputs;
       },
       dtypes,
       [](const In& in) {
         const at::AutoGradMode enabled(true);
         const Tensor self = Leaf(in[1]), weight = Leaf(in[2]);
         at::prelu(self, weight).backward(in[0].to(at::kFloat));
         const at::ScalarType dtype = in[1].scalar_type();
         return std::make_tuple(GradientOf(self).to(dtype), GradientOf(weight).to(dtype));
       },
       kDerived},
  };
}

// (gradOutput, input, weight, bias?, pad, cubeMathType): each tap of the weight on its own.
Rows Sequences() {
  return {
      {"aclnnConvTbcBackward",
       [](Source& source, at::ScalarType dtype) {
         const auto of = [&](Ints sizes) { return source.Random(sizes, dtype); };
         return std::vector<Args>{
             {of({6, 2, 4}), of({6, 2, 3}), of({3, 3, 4}), of({4}), int64_t{1}, int64_t{0}},
             {of({2, 5, 5}).transpose(0, 1), of({2, 6, 3}).transpose(0, 1), of({2, 3, 5}), Null{},
              int64_t{0}, int64_t{0}},
             {of({3, 1, 1}), of({1, 1, 1}), of({3, 1, 1}), of({1}), int64_t{2}, int64_t{0}}};
       },
       {at::kFloat, at::kHalf, at::kBFloat16},
       [](const In& in) {
         const at::AutoGradMode enabled(true);
         const Tensor x = Leaf(in[1]), weight = Leaf(in[2]);
         const int64_t pad = in.integer(4), channels = weight.size(2);
         const Tensor bias = Leaf(at::zeros({channels}));
         const Tensor padded = at::constant_pad_nd(x, {0, 0, 0, 0, pad, pad}, 0);
         const int64_t steps = padded.size(0) - weight.size(0) + 1;
         Tensor sum = bias.expand({steps, x.size(1), channels});
         for (int64_t k = 0; k < weight.size(0); ++k) {
           sum = sum + at::matmul(padded.slice(0, k, k + steps), weight[k]);
         }
         sum.backward(in[0].to(at::kFloat));
         const at::ScalarType dtype = in[1].scalar_type();
         return std::make_tuple(GradientOf(x).to(dtype), GradientOf(weight).to(dtype),
                                GradientOf(bias).to(dtype));
       },
       kDerived},
  };
}

Rows Losses() {
  const Dtypes dtypes = {at::kFloat, at::kHalf, at::kBFloat16};
  return {
      {"aclnnL1LossBackward", LossGradients(), dtypes,
       LossGradient([](const Tensor& self, const Tensor& target, const In& in) {
         return at::l1_loss(self, target, in.integer(3));
       }),
       kDerived},
      {"aclnnBinaryCrossEntropyWithLogitsBackward", LossGradients({Null{}, Null{}}), dtypes,
       LossGradient([](const Tensor& self, const Tensor& target, const In& in) {
         return at::binary_cross_entropy_with_logits(self, target, {}, {}, in.integer(5));
       }),
       kDerived},
      {"aclnnKlDivBackward", LossGradients({}, {true}), dtypes,
       LossGradient([](const Tensor& self, const Tensor& target, const In& in) {
         return at::kl_div(self, target, in.integer(3), in.flag(4));
       }),
       kDerived},
      {"aclnnKlDivTargetBackward",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs = LossGradients({}, {true})(source, dtype);
         for (const Args& args : LossGradients({}, {false})(source, dtype)) inputs.push_back(args);
         return inputs;
       },
       dtypes, KlDivTargetGradient(), kDerived},
      {"aclnnSoftMarginLossBackward", LossGradients(), dtypes,
       LossGradient([](const Tensor& self, const Tensor& target, const In& in) {
         return at::soft_margin_loss(self, target, in.integer(3));
       }),
       kDerived},
  };
}

// --- Fused attention: (query, key, value, dy, pse?, drop?, padding?, mask?, max, sum, in?, out?,
// prefix?, [starts], scale, keep, pre, next, heads, layout, innerPrecise, sparseMode, [pseType]).

Tensor HeadsFirst(const Tensor& tensor, const std::string& layout, int64_t heads) {
  if (layout == "BNSD") return tensor;
  if (layout == "BSND") return tensor.transpose(1, 2);
  const Tensor apart = tensor.unflatten(-1, {heads, tensor.size(-1) / heads});
  return layout == "BSH" ? apart.transpose(1, 2) : apart.permute({1, 2, 0, 3});
}

struct Shape {
  const char* layout;
  Ints query, key;
  int64_t heads;
};

const std::vector<Shape> kShapes = {
    {"BNSD", {2, 4, 5, 8}, {2, 2, 6, 8}, 4},
    {"BSND", {2, 5, 4, 8}, {2, 6, 4, 8}, 4},
    {"BSH", {2, 5, 16}, {2, 6, 8}, 4},
    {"SBH", {5, 2, 16}, {6, 2, 16}, 2},
};

struct Terms {
  Tensor scores, weights, out;
};

// Attention of [batch, heads, positions, width], so that it can be differentiated.
Terms Forward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias,
              const Tensor& mask, double scale, bool bias_first) {
  const int64_t sharing = q.size(1) / k.size(1);
  const Tensor keys = k.repeat_interleave(sharing, 1), values = v.repeat_interleave(sharing, 1);
  Terms terms;
  terms.scores = at::matmul(q, keys.transpose(-1, -2));
  if (bias.defined() && bias_first) terms.scores = terms.scores + bias;
  terms.scores = terms.scores * scale;
  if (bias.defined() && !bias_first) terms.scores = terms.scores + bias;
  if (mask.defined()) terms.scores = terms.scores.masked_fill(mask, -INFINITY);
  terms.weights = at::softmax(terms.scores, -1);
  terms.out = at::matmul(terms.weights, values);
  return terms;
}

Inputs FlashGradients(int version) {
  return [version](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Shape& shape : kShapes) {
      for (bool masked : {false, true}) {
        const Tensor query = source.Random(shape.query, dtype);
        const Tensor key = source.Random(shape.key, dtype), value = source.Random(shape.key, dtype);
        const Tensor q = HeadsFirst(query, shape.layout, shape.heads).to(at::kFloat);
        const int64_t key_heads = shape.key.size() == 3 ? shape.key[2] / q.size(3) : 0;
        const auto split = [&](const Tensor& t) {
          return HeadsFirst(t, shape.layout, key_heads).to(at::kFloat);
        };
        Tensor bias, mask;
        if (masked) {
          bias = source.Random({q.size(0), shape.heads, 5, 6}, dtype);
          mask = source.Random({5, 6}, at::kDouble, 0, 1).gt(0.6);
          mask.select(-1, 0).fill_(false);
        }
        const Terms terms =
            Forward(q, split(key), split(value), masked ? bias.to(at::kFloat) : Tensor(), mask, 0.3,
                    version == 1);
        const Tensor maximum = terms.scores.amax(-1, true);
        const Tensor sum = (terms.scores - maximum).exp().sum(-1, true);
        const Ints eight = {q.size(0), shape.heads, 5, 8};
        Args args = {query,
                     key,
                     value,
                     source.Random(shape.query, dtype),
                     masked ? Arg(bias) : Arg(Null{}),
                     Null{},
                     Null{},
                     masked ? Arg(mask) : Arg(Null{}),
                     maximum.expand(eight).contiguous(),
                     sum.expand(eight).contiguous(),
                     Null{},
                     Null{}};
        if (version == 3) args.push_back(Null{});
        args.push_back(Ints{});  // an array without entries is an absent one
        if (version > 1) args.insert(args.end(), {Null{}, Null{}});
        args.insert(args.end(), {0.3, 1.0, int64_t{65536}, int64_t{65536}, shape.heads,
                                 shape.layout, int64_t{0}, int64_t{masked ? 1 : 0}});
        if (version > 1) args.push_back(int64_t{0});
        inputs.push_back(args);
      }
    }
    return inputs;
  };
}

Reference FlashGradient(int version) {
  return [version](const In& in) {
    const at::AutoGradMode enabled(true);
    const int scale = version == 1 ? 13 : version == 2 ? 15 : 16;
    const std::string layout = in.text(scale + 5);
    const int64_t heads = in.integer(scale + 4);
    const at::ScalarType dtype = in[0].scalar_type();
    const Tensor query = Leaf(in[0]), key = Leaf(in[1]), value = Leaf(in[2]);
    const Tensor bias = in.maybe(4) ? Leaf(*in.maybe(4)) : Tensor();
    const Tensor q = HeadsFirst(query, layout, heads);
    const int64_t key_heads = in[1].dim() == 3 ? in[1].size(2) / q.size(3) : 0;
    const Terms terms =
        Forward(q, HeadsFirst(key, layout, key_heads), HeadsFirst(value, layout, key_heads), bias,
                in.maybe(7) ? *in.maybe(7) : Tensor(), in.real(scale), version == 1);
    terms.out.backward(HeadsFirst(in[3].to(at::kFloat), layout, heads));
    return std::make_tuple(GradientOf(query).to(dtype), GradientOf(key).to(dtype),
                           GradientOf(value).to(dtype),
                           bias.defined() ? GradientOf(bias).to(dtype) : Tensor());
  };
}

Rows Attention() {
  const Dtypes dtypes = {at::kFloat, at::kHalf, at::kBFloat16};
  return {
      {"aclnnFlashAttentionScoreGrad", FlashGradients(1), dtypes, FlashGradient(1), kDerived},
      {"aclnnFlashAttentionScoreGradV2", FlashGradients(2), dtypes, FlashGradient(2), kDerived},
      {"aclnnFlashAttentionScoreGradV3", FlashGradients(3), dtypes, FlashGradient(3), kDerived},
  };
}

// --- Rotations, norms and softmax of transformers.

Tensor Turned(const Tensor& x, int64_t mode) {
  const int64_t width = x.size(-1);
  const auto halves = [](const Tensor& t) {
    const Tensors parts = t.chunk(2, -1);
    return at::cat({-parts[1], parts[0]}, -1);
  };
  if (mode == 0) return halves(x);
  if (mode == 2) return halves(x.unflatten(-1, {2, width / 2})).flatten(-2);
  const Tensor even = x.slice(-1, 0, width, 2), odd = x.slice(-1, 1, width, 2);
  return mode == 1 ? at::stack({-odd, even}, -1).flatten(-2) : at::cat({-odd, even}, -1);
}

Tensor Straight(const Tensor& x, int64_t mode) {
  if (mode != 3) return x;
  return at::cat({x.slice(-1, 0, x.size(-1), 2), x.slice(-1, 1, x.size(-1), 2)}, -1);
}

Rows Rotations() {
  const Dtypes dtypes = {at::kFloat, at::kBFloat16};
  return {
      {"aclnnRotaryPositionEmbeddingV2",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (int64_t mode : {0, 1, 2, 3}) {
           inputs.push_back({source.Random({2, 3, 4, 8}, dtype), source.Random({1, 3, 1, 8}, dtype),
                             source.Random({1, 3, 1, 8}, dtype), mode, Null{}});
         }
         return inputs;
       },
       dtypes,
       [](const In& in) {
         const Tensor x = in[0].to(at::kFloat);
         return (Straight(x, in.integer(3)) * in[1].to(at::kFloat) +
                 Turned(x, in.integer(3)) * in[2].to(at::kFloat))
             .to(in[0].scalar_type());
       }},
      {"aclnnRotaryPositionEmbeddingGrad",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (int64_t mode : {0, 1, 2, 3}) {
           inputs.push_back({source.Random({2, 3, 4, 8}, dtype), source.Random({1, 3, 1, 8}, dtype),
                             source.Random({1, 3, 1, 8}, dtype), source.Random({2, 3, 4, 8}, dtype),
                             mode});
         }
         return inputs;
       },
       dtypes,
       [](const In& in) {
         const at::AutoGradMode enabled(true);
         const Tensor x = Leaf(in[3]), cosine = Leaf(in[1]), sine = Leaf(in[2]);
         const int64_t mode = in.integer(4);
         (Straight(x, mode) * cosine + Turned(x, mode) * sine).backward(in[0].to(at::kFloat));
         const at::ScalarType dtype = in[0].scalar_type();
         return std::make_tuple(GradientOf(x).to(dtype), GradientOf(cosine).to(dtype),
                                GradientOf(sine).to(dtype));
       },
       kDerived},
      {"aclnnDeepNormGrad",
       [](Source& source, at::ScalarType dtype) {
         const Tensor x = source.Random({4, 6}, dtype), gx = source.Random({4, 6}, dtype);
         const auto norm = at::native_layer_norm(x * 0.7 + gx, {6}, {}, {}, 1e-5);
         return std::vector<Args>{{source.Random({4, 6}, dtype), x, gx, source.Random({6}, dtype),
                                   std::get<1>(norm), std::get<2>(norm), 0.7}};
       },
       {at::kFloat},
       [](const In& in) {
         const at::AutoGradMode enabled(true);
         const Tensor x = Leaf(in[1]), gx = Leaf(in[2]), gamma = Leaf(in[3]);
         const Tensor beta = at::zeros({6}).requires_grad_();
         at::layer_norm(x * in.real(6) + gx, {6}, gamma, beta, 1e-5).backward(in[0]);
         return std::make_tuple(GradientOf(x), GradientOf(gx), GradientOf(beta), GradientOf(gamma));
       },
       kDerived},
      {"aclnnScaledMaskedSoftmaxBackward",
       [](Source& source, at::ScalarType dtype) {
         const Tensor mask = source.Random({2, 1, 4, 6}, at::kDouble, 0, 1).gt(0.7);
         const Tensor x = source.Random({2, 3, 4, 6}, dtype);
         const Tensor y = at::softmax((x * 0.5).masked_fill(mask, -10000), -1);
         return std::vector<Args>{{source.Random({2, 3, 4, 6}, dtype), y, mask, 0.5, false}};
       },
       {at::kFloat},
       [](const In& in) {
         const Tensor y = in[1], sum = (in[0] * y).sum(-1, true);
         return ((in[0] - sum) * y).masked_fill(in[2], 0) * in.real(3);
       },
       kDerived},
      {"aclnnScaledMaskedSoftmax",
       [](Source& source, at::ScalarType dtype) {
         const Tensor mask = source.Random({2, 1, 4, 6}, at::kDouble, 0, 1).gt(0.7);
         return std::vector<Args>{{source.Random({2, 3, 4, 6}, dtype), mask, 0.5, false},
                                  {source.Random({2, 3, 4, 4}, dtype), mask, 0.5, true}};
       },
       {at::kFloat},
       [](const In& in) {
         const Tensor mask = in.flag(3) ? at::ones({4, 4}, at::kBool).triu(1) : in[1];
         return at::softmax((in[0] * in.real(2)).masked_fill(mask, -10000), -1);
       }},
  };
}

// --- Recurrent layers.

Tensors Parameters(Source& source, at::ScalarType dtype, int64_t layers, int64_t directions,
                   bool bias, int64_t gates = 4) {
  constexpr int64_t kWidth = 5, kHidden = 4;
  Tensors params;
  for (int64_t layer = 0; layer < layers; ++layer) {
    for (int64_t direction = 0; direction < directions; ++direction) {
      const int64_t width = layer == 0 ? kWidth : kHidden * directions;
      params.push_back(source.Random({gates * kHidden, width}, dtype, -0.5, 0.5));
      params.push_back(source.Random({gates * kHidden, kHidden}, dtype, -0.5, 0.5));
      for (int i = 0; bias && i < 2; ++i) {
        params.push_back(source.Random({gates * kHidden}, dtype, -0.5, 0.5));
      }
    }
  }
  return params;
}

// (input, params, hx, batchSizes?, hasBias, layers, dropout, train, bidirectional, batchFirst)
std::vector<Args> Lstms(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (int64_t layers : {1, 2}) {
    for (int64_t directions : {1, 2}) {
      const bool bias = layers == 1 || directions == 1, batch_first = directions == 2;
      const Ints sizes = batch_first ? Ints{3, 6, 5} : Ints{6, 3, 5};
      const Ints state = {layers * directions, 3, 4};
      inputs.push_back({source.Random(sizes, dtype),
                        Parameters(source, dtype, layers, directions, bias),
                        Tensors{source.Random(state, dtype), source.Random(state, dtype)}, Null{},
                        bias, layers, 0.0, false, directions == 2, batch_first});
    }
  }
  return inputs;
}

// Like Lstms, but with one state or none.
std::vector<Args> Grus(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (int64_t layers : {1, 2}) {
    for (int64_t directions : {1, 2}) {
      const bool bias = layers == 1 || directions == 1, batch_first = directions == 2;
      const Ints sizes = batch_first ? Ints{3, 6, 5} : Ints{6, 3, 5};
      const Tensor state = source.Random({layers * directions, 3, 4}, dtype);
      for (const Arg& first : {Arg(state), Arg(Null{})}) {
        inputs.push_back({source.Random(sizes, dtype),
                          Parameters(source, dtype, layers, directions, bias, 3), first, Null{},
                          bias, layers, 0.0, false, directions == 2, batch_first});
      }
    }
  }
  return inputs;
}

Rows Recurrent() {
  return {
      {"aclnnGRU",
       Grus,
       {at::kFloat},
       [](const In& in) {
         const int64_t cells = in.integer(5) * (in.flag(8) ? 2 : 1);
         const Tensor state = in.maybe(2) ? *in.maybe(2) : at::zeros({cells, 3, 4});
         const auto result = at::gru(in[0], state, in.list(1), in.flag(4), in.integer(5),
                                     in.real(6), in.flag(7), in.flag(8), in.flag(9));
         return std::make_tuple(std::get<0>(result), std::get<1>(result));
       },
       kDerived},
      {"aclnnLSTM",
       Lstms,
       {at::kFloat},
       [](const In& in) {
         const auto result = at::lstm(in[0], in.list(2), in.list(1), in.flag(4), in.integer(5),
                                      in.real(6), in.flag(7), in.flag(8), in.flag(9));
         return std::make_tuple(std::get<0>(result), std::get<1>(result), std::get<2>(result));
       },
       kDerived},
      {"aclnnThnnFusedLstmCell",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({3, 16}, dtype), source.Random({3, 16}, dtype),
                                   source.Random({3, 4}, dtype), source.Random({16}, dtype),
                                   source.Random({16}, dtype)}};
       },
       {at::kFloat},
       [](const In& in) {
         const Tensors gates = (in[0] + in[1] + in[3] + in[4]).chunk(4, 1);
         const Tensor i = gates[0].sigmoid(), f = gates[1].sigmoid(), g = gates[2].tanh(),
                      o = gates[3].sigmoid();
         const Tensor c = f * in[2] + i * g;
         return std::make_tuple(o * c.tanh(), c, at::cat({i, f, g, o}, 1));
       },
       kDerived},
  };
}

// --- Statistics of a batch normalisation.

Rows Statistics() {
  const auto image = [](Source& source, at::ScalarType dtype) {
    return source.Random({4, 3, 5, 6}, dtype);
  };
  return {
      {"aclnnBatchNormReduce",
       [=](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{image(source, dtype)}};
       },
       {at::kFloat},
       [](const In& in) {
         return std::make_tuple(in[0].sum(at::IntArrayRef({0, 2, 3})),
                                (in[0] * in[0]).sum(at::IntArrayRef({0, 2, 3})));
       },
       kDerived},
      {"aclnnBatchNormStats",
       [=](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{image(source, dtype), 1e-5}};
       },
       {at::kFloat},
       [](const In& in) {
         const auto norm = at::native_batch_norm(in[0], {}, {}, {}, {}, true, 0.1, in.real(1));
         return std::make_tuple(std::get<1>(norm), std::get<2>(norm));
       },
       kDerived},
      {"aclnnBatchNormElemt",
       [=](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{image(source, dtype), source.Random({3}, dtype),
                                   source.Random({3}, dtype), source.Random({3}, dtype),
                                   source.Random({3}, dtype, 0.5, 2), 1e-5}};
       },
       {at::kFloat},
       [](const In& in) {
         const auto wide = [&](int i) { return in[i].reshape({1, 3, 1, 1}); };
         return (in[0] - wide(3)) * wide(4) * wide(1) + wide(2);
       },
       kDerived},
  };
}

}  // namespace

Rows GradientRows() {
  Rows rows = Losses();
  for (const Rows& more :
       {Activations(), Sequences(), Attention(), Rotations(), Recurrent(), Statistics()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
