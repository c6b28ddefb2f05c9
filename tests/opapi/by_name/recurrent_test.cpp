// Recurrent layers by their names: sequences of several lengths, sequences that are read from their
// end, and gradients, beside layers of libtorch that run over each sequence alone.
#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

constexpr int64_t kSteps = 5, kBatch = 4, kWidth = 3, kHidden = 6;

testing::AssertionResult NearTo(const Tensor& actual, const Tensor& wanted, double tolerance) {
  if (actual.numel() == wanted.numel() &&
      at::allclose(actual.to(at::kDouble).reshape(wanted.sizes()), wanted.to(at::kDouble),
                   tolerance, tolerance)) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << actual << " instead of " << wanted;
}

// An LSTM layer in double, and what it gives for sequences of these lengths.
struct LstmOfLengths {
  explicit LstmOfLengths(const std::vector<int64_t>& of_each, int64_t steps) : lengths(of_each) {
    const at::AutoGradMode enabled(true);
    const auto batch = static_cast<int64_t>(of_each.size());
    const auto leaf = [](at::IntArrayRef sizes) {
      return Random(sizes).to(at::kHalf).to(at::kDouble).requires_grad_();
    };
    x = leaf({steps, batch, kWidth});
    h = leaf({batch, kHidden});
    c = leaf({batch, kHidden});
    weight = leaf({kWidth + kHidden, 4 * kHidden});
    bias = leaf({4 * kHidden});
  }

  // (y, all h, all c), where each sequence runs alone.
  Tensors Run(bool reversed) const {
    const Tensor rows = weight.t();
    const Tensors parameters{rows.slice(1, 0, kWidth), rows.slice(1, kWidth), bias,
                             at::zeros_like(bias)};
    Tensors ys, hs, cs;
    for (int64_t b = 0; b < x.size(1); ++b) {
      Tensor one_h = h[b].view({1, 1, kHidden}), one_c = c[b].view({1, 1, kHidden});
      Tensors y(x.size(0), at::zeros({kHidden}, at::kDouble)), all_h(x.size(0)), all_c(x.size(0));
      for (int64_t k = 0; k < x.size(0); ++k) {
        const int64_t t = reversed ? x.size(0) - 1 - k : k;
        if (t < lengths[b]) {
          const auto result = at::lstm(x[t][b].view({1, 1, kWidth}), {one_h, one_c}, parameters,
                                       true, 1, 0.0, true, false, false);
          one_h = std::get<1>(result);
          one_c = std::get<2>(result);
          y[t] = std::get<0>(result).flatten();
        }
        all_h[t] = one_h.flatten();
        all_c[t] = one_c.flatten();
      }
      ys.push_back(at::stack(y));
      hs.push_back(at::stack(all_h));
      cs.push_back(at::stack(all_c));
    }
    return {at::stack(ys, 1), at::stack(hs, 1), at::stack(cs, 1)};
  }

  // Zeros and ones, [steps, batch, hidden].
  Tensor Mask(at::ScalarType type) const {
    const Tensor each = at::tensor(lengths).view({1, -1, 1});
    return at::arange(x.size(0))
        .view({-1, 1, 1})
        .lt(each)
        .expand({-1, -1, kHidden})
        .to(type)
        .contiguous();
  }
  Tensor Lengths() const { return at::tensor(lengths).to(at::kInt); }

  std::vector<int64_t> lengths;
  Tensor x, h, c, weight, bias;
};

// Runs a layer and its gradient by name, and compares all results.
void ExpectLstm(const LstmOfLengths& layer, const Tensor& of_lengths, bool reversed, bool biased,
                at::ScalarType type, double tolerance) {
  const int64_t steps = layer.x.size(0), batch = layer.x.size(1);
  Tensors wanted, wanted_gradients;
  const Tensor dy = Random({steps, batch, kHidden}).to(at::kHalf).to(at::kDouble);
  const Tensor dh = Random({batch, kHidden}).to(at::kHalf).to(at::kDouble);
  const Tensor dc = Random({batch, kHidden}).to(at::kHalf).to(at::kDouble);
  const int64_t last = reversed ? 0 : steps - 1;
  {
    const at::AutoGradMode enabled(true);
    if (!biased) layer.bias.data().zero_();
    wanted = layer.Run(reversed);
    const Tensor loss =
        (wanted[0] * dy).sum() + (wanted[1][last] * dh).sum() + (wanted[2][last] * dc).sum();
    loss.backward();
  }
  const auto given = [&](const Tensor& tensor) { return tensor.detach().to(type).contiguous(); };
  const Tensor x = given(layer.x), w = given(layer.weight), b = given(layer.bias);
  const Tensor h = given(layer.h), c = given(layer.c);
  Tensors all;  // y, h, c, i, j, f, o, tanh(c)
  for (int i = 0; i < 8; ++i) all.push_back(at::full({steps, batch, kHidden}, 77, type));
  const char* direction = reversed ? "REDIRECTIONAL" : "UNIDIRECTIONAL";
  NamedCall forward("DynamicRNN");
  forward.In(x).In(w);
  if (biased) {
    forward.In(b);
  } else {
    forward.None();
  }
  if (of_lengths.defined()) {
    forward.In(of_lengths);
  } else {
    forward.None();
  }
  forward.In(h).In(c).Set("direction", direction);
  for (const Tensor& each : all) forward.Out(each);
  ASSERT_EQ(forward.Run(), ACL_SUCCESS) << TakeMessage();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(NearTo(all[i], wanted[i].detach(), tolerance)) << i;
  EXPECT_TRUE(NearTo(all[7], at::tanh(wanted[2].detach()), tolerance));
  // The gates give the states again, where a sequence has the step.
  const Tensor mask = layer.Mask(at::kDouble), first = layer.c.detach().unsqueeze(0);
  const Tensor before = reversed ? at::cat({wanted[2].slice(0, 1), first})
                                 : at::cat({first, wanted[2].slice(0, 0, steps - 1)});
  const auto gate = [&](int i) { return all[i].to(at::kDouble); };
  EXPECT_TRUE(NearTo((gate(5) * before + gate(3) * gate(4)) * mask, wanted[2] * mask, tolerance));
  EXPECT_TRUE(NearTo(gate(6) * gate(7) * mask, wanted[0], tolerance));

  const Tensors results{at::full_like(w, 77), at::full_like(b, 77), at::full_like(x, 77),
                        at::full_like(h, 77), at::full_like(c, 77)};
  NamedCall gradient("DynamicRNNGrad");
  gradient.In(x).In(w).In(b).In(all[0]).In(h).In(c).In(all[1]).In(all[2]);
  gradient.In(given(dy)).In(given(dh)).In(given(dc));
  for (int i = 3; i < 8; ++i) gradient.In(all[i]);
  gradient.In(of_lengths.defined() ? of_lengths : at::zeros({}));
  for (const Tensor& each : results) gradient.Out(each);
  ASSERT_EQ(gradient.Set("direction", direction).Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(NearTo(results[0], layer.weight.grad(), tolerance));
  EXPECT_TRUE(NearTo(results[1], layer.bias.grad(), tolerance));
  EXPECT_TRUE(NearTo(results[2], layer.x.grad(), tolerance));
  EXPECT_TRUE(NearTo(results[3], layer.h.grad(), tolerance));
  EXPECT_TRUE(NearTo(results[4], layer.c.grad(), tolerance));
}

TEST(RecurrentByName, SequencesOfSeveralLengthsRunEachToItsEnd) {
  at::manual_seed(3);
  const std::vector<int64_t> sorted{5, 4, 4, 1}, any{2, 5, 0, 3};
  for (bool reversed : {false, true}) {
    for (const auto& lengths : {sorted, any}) {
      const LstmOfLengths half(lengths, kSteps), whole(lengths, kSteps), of_each(lengths, kSteps);
      ExpectLstm(half, half.Mask(at::kHalf), reversed, true, at::kFloat, 2e-5);
      ExpectLstm(whole, whole.Mask(at::kFloat), reversed, false, at::kFloat, 2e-5);
      ExpectLstm(of_each, of_each.Lengths(), reversed, true, at::kHalf, 2e-2);
    }
  }
}

TEST(RecurrentByName, ALayerWithoutLengthsRunsFromTheLastStepToTheFirst) {
  at::manual_seed(4);
  const LstmOfLengths layer({kSteps, kSteps, kSteps}, kSteps), one({1}, 1);
  ExpectLstm(layer, {}, true, true, at::kFloat, 2e-5);
  ExpectLstm(one, one.Lengths(), false, true, at::kFloat, 2e-5);
}

TEST(RecurrentByName, ACellLeavesTheStatesOfSequencesThatHaveEnded) {
  at::manual_seed(5);
  const LstmOfLengths layer({1, 0, 1}, 1);
  const Tensors wanted = layer.Run(false);
  const auto given = [](const Tensor& tensor) {
    return tensor.detach().to(at::kFloat).contiguous();
  };
  const Tensor weight = given(layer.weight);
  Tensors all;
  for (int i = 0; i < 8; ++i) all.push_back(at::full({3, kHidden}, 77.0f));
  NamedCall cell("DynamicRNNV2");
  cell.In(given(layer.x[0])).In(weight.slice(0, 0, kWidth).contiguous());
  cell.In(weight.slice(0, kWidth).contiguous()).In(given(layer.bias)).In(layer.Lengths());
  cell.In(given(layer.h)).In(given(layer.c)).Set("direction", "UNIDIRECTIONAL");
  for (const Tensor& each : all) cell.Out(each);
  ASSERT_EQ(cell.Run(), ACL_SUCCESS) << TakeMessage();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(NearTo(all[i], wanted[i].detach(), 2e-5)) << i;
}

TEST(RecurrentByName, LengthsAndDirectionsThatAreRefused) {
  const LstmOfLengths layer({2, 1}, 3);
  const auto said = [&](const Tensor& lengths, const char* direction, int64_t wide) {
    NamedCall call("DynamicRNN");
    call.In(at::zeros({3, 2, kWidth})).In(at::zeros({kWidth + kHidden, 4 * kHidden}));
    call.In(at::zeros({4 * kHidden}))
        .In(lengths)
        .In(at::zeros({2, wide}))
        .In(at::zeros({2, kHidden}));
    for (int i = 0; i < 8; ++i) call.Out(at::zeros({3, 2, kHidden}));
    TakeMessage();
    EXPECT_NE(call.Set("direction", direction).Run(), ACL_SUCCESS);
    return TakeMessage();
  };
  const char* const mask =
      "a mask of shape [3, 2, 6] in float16 or float32, or int32 lengths of "
      "shape [2]";
  for (const Tensor& lengths : {at::zeros({3, 2, 1}), at::zeros({3, 2, 6}, at::kInt),
                                at::zeros({2}, at::kLong), at::zeros({3}, at::kInt)}) {
    EXPECT_NE(said(lengths, "UNIDIRECTIONAL", kHidden).find(mask), std::string::npos);
  }
  EXPECT_NE(said(layer.Lengths(), "BIDIRECTIONAL", kHidden).find("direction is BIDIRECTIONAL"),
            std::string::npos);
  EXPECT_NE(said(layer.Lengths(), "", 5).find("input 4 has the shape [2, 5]"), std::string::npos);
}

TEST(RecurrentByName, ALayerOfGatedUnitsTrains) {
  at::manual_seed(6);
  for (at::ScalarType type : {at::kFloat, at::kHalf}) {
    const double tolerance = type == at::kHalf ? 2e-2 : 2e-5;
    const auto leaf = [](at::IntArrayRef sizes) {
      return Random(sizes).to(at::kHalf).to(at::kDouble).requires_grad_();
    };
    Tensors leaves, wanted;
    const Tensor dy = Random({kSteps, kBatch, kHidden}).to(at::kHalf).to(at::kDouble);
    const Tensor dh = Random({kBatch, kHidden}).to(at::kHalf).to(at::kDouble);
    {
      const at::AutoGradMode enabled(true);
      leaves = {leaf({kSteps, kBatch, kWidth}),
                leaf({kWidth, 3 * kHidden}),
                leaf({kHidden, 3 * kHidden}),
                leaf({3 * kHidden}),
                leaf({3 * kHidden}),
                leaf({kBatch, kHidden})};
      const auto [y, last] = at::gru(leaves[0], leaves[5].unsqueeze(0),
                                     Tensors{leaves[1].t(), leaves[2].t(), leaves[3], leaves[4]},
                                     true, 1, 0.0, true, false, false);
      ((y * dy).sum() + (last[0] * dh).sum()).backward();
    }
    const auto given = [&](const Tensor& tensor) { return tensor.detach().to(type).contiguous(); };
    Tensors all;  // y, h, update, reset, new, the state's part of new
    for (int i = 0; i < 6; ++i) all.push_back(at::full({kSteps, kBatch, kHidden}, 77, type));
    NamedCall forward("DynamicGRUV2");
    for (int i = 0; i < 5; ++i) forward.In(given(leaves[i]));
    forward.None().In(given(leaves[5])).Set("gate_order", "rzh").Set("reset_after", true);
    for (const Tensor& each : all) forward.Out(each);
    ASSERT_EQ(forward.Run(), ACL_SUCCESS) << TakeMessage();
    const Tensors results{at::full({kWidth, 3 * kHidden}, 77, type),
                          at::full({kHidden, 3 * kHidden}, 77, type),
                          at::full({3 * kHidden}, 77, type),
                          at::full({3 * kHidden}, 77, type),
                          at::full({kSteps, kBatch, kWidth}, 77, type),
                          at::full({kBatch, kHidden}, 77, type)};
    const auto run = [&](const char* order, const Tensor& lengths, const Tensor& first) {
      NamedCall gradient("DynamicGRUV2Grad");
      for (int i = 0; i < 3; ++i) gradient.In(given(leaves[i]));
      gradient.In(all[0]).In(first).In(all[1]).In(given(dy)).In(given(dh));
      for (int i = 2; i < 6; ++i) gradient.In(all[i]);
      gradient.In(lengths).In(at::zeros({}, at::kByte));
      for (const Tensor& each : results) gradient.Out(each);
      gradient.Set("direction", "UNIDIRECTIONAL").Set("gate_order", order);
      return gradient.Set("time_major", true).Set("reset_after", true).Run();
    };
    ASSERT_EQ(run("rzh", at::zeros({}), given(leaves[5])), ACL_SUCCESS) << TakeMessage();
    const int order[] = {1, 2, 3, 4, 0, 5};
    for (int i = 0; i < 6; ++i) {
      EXPECT_TRUE(NearTo(results[i], leaves[order[i]].grad(), tolerance)) << i;
    }
    TakeMessage();
    EXPECT_NE(run("zrh", at::zeros({}), given(leaves[5])), ACL_SUCCESS);
    EXPECT_NE(TakeMessage().find("DynamicGRUV2Grad: the soft device has"), std::string::npos);
    EXPECT_NE(run("rzh", at::zeros({4}, at::kInt), given(leaves[5])), ACL_SUCCESS);
    EXPECT_NE(TakeMessage().find("sequences of one length only"), std::string::npos);
    EXPECT_NE(run("rzh", at::zeros({}), given(leaves[5].slice(0, 1))), ACL_SUCCESS);
    EXPECT_NE(TakeMessage().find("input 4 has the shape [3, 6], expected [1, 4, 6]"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace acltape::opapi
