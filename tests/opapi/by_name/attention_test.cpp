// Attention by name, beside the gradients that libtorch derives in doubles.
#include <cmath>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// Tensors of float16 agree with results in doubles.
testing::AssertionResult AgreesInHalf(const Tensor& actual, const Tensor& wanted) {
  if (actual.sizes() == wanted.sizes() &&
      at::allclose(actual.to(at::kDouble), wanted.to(at::kDouble), 4e-3, 4e-3)) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << actual << " instead of " << wanted;
}

Tensor HalfOf(at::IntArrayRef shape, double most = 1) {
  return Random(shape, at::kHalf, -most, most);
}

// Memory of a result that nobody has written yet.
Tensor HalfResult(at::IntArrayRef shape) { return at::full(shape, 77, at::kHalf); }

// A leaf in doubles whose gradient is asked for.
Tensor LeafOf(const Tensor& tensor) { return tensor.to(at::kDouble).detach().requires_grad_(); }

// [batch, heads, length, width] with the heads side by side.
Tensor SideBySide(const Tensor& heads) {
  return heads.transpose(1, 2).reshape(
      {heads.size(0) * heads.size(2), heads.size(1) * heads.size(3)});
}

// Blocks of 16 rows and 16 columns, padded with zeros: float16 in FRACTAL_NZ.
Tensor HalfBlocks(const Tensor& plain) {
  const int64_t rows = (plain.size(-2) + 15) / 16 * 16, columns = (plain.size(-1) + 15) / 16 * 16;
  const Tensor padded =
      at::constant_pad_nd(plain, {0, columns - plain.size(-1), 0, rows - plain.size(-2)});
  std::vector<int64_t> shape = plain.sizes().vec();
  shape.resize(shape.size() - 2);
  shape.insert(shape.end(), {rows / 16, 16, columns / 16, 16});
  return padded.view(shape).transpose(-4, -2).transpose(-3, -2).contiguous();
}

// A mask of bytes that keeps about half of the elements.
Tensor KeptBytes(at::IntArrayRef shape) { return Random(shape, at::kBool).to(at::kByte); }

void ExpectAttentionRefused(NamedCall& call, const char* part) {
  TakeMessage();
  EXPECT_NE(call.Run(), ACL_SUCCESS);
  const std::string message = TakeMessage();
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

struct ScoreTensors {
  ScoreTensors(int64_t batch, int64_t heads, int64_t queries, int64_t keys, int64_t width,
               int64_t value_width)
      : query(HalfOf({batch, heads, queries, width})),
        key(HalfOf({batch, heads, keys, width})),
        value(HalfOf({batch, heads, keys, value_width})),
        padding(HalfOf({batch, 1, queries, keys})),
        kept(KeptBytes({batch, heads, queries, keys})),
        result(HalfResult({batch * queries, heads * value_width})),
        softmax(HalfResult({batch, heads, queries, keys})) {}

  Tensor query, key, value, padding, kept, result, softmax;
};

constexpr double kScoreScale = 0.375;

void DescribeScore(NamedCall& call, const ScoreTensors& of, bool dropped) {
  call.In(of.query).In(of.key).In(of.value).In(of.padding);
  call.Host(at::scalar_tensor(kScoreScale, at::kHalf));
  if (dropped) {
    call.In(of.kept.view(-1)).Set("keep_prob", 0.5f);
  } else {
    call.None().Set("keep_prob", 1.0f);
  }
  call.Out(of.result).Out(of.softmax);
}

TEST(AttentionByName, ScoresAndTheirGradientsAreThoseOfTheFormula) {
  for (bool dropped : {false, true}) {
    const ScoreTensors of(2, 3, 4, 5, 6, 7);
    NamedCall call("AttentionScore");
    DescribeScore(call, of, dropped);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();

    const at::AutoGradMode enabled(true);
    const Tensor query = LeafOf(of.query), key = LeafOf(of.key), value = LeafOf(of.value);
    const Tensor softmax =
        at::softmax(at::einsum("bnid,bnjd->bnij", {query, key}) * kScoreScale + of.padding, -1);
    const Tensor probabilities = dropped ? softmax * of.kept.to(at::kDouble) * 2 : softmax;
    const Tensor heads = at::einsum("bnij,bnjd->bnid", {probabilities, value});
    EXPECT_TRUE(AgreesInHalf(of.softmax, softmax.detach()));
    EXPECT_TRUE(AgreesInHalf(of.result, SideBySide(heads.detach())));

    const Tensor gradient = HalfOf({2, 3, 4, 7});
    heads.backward(gradient.to(at::kDouble));
    const Tensor of_value = HalfResult({2 * 5, 3 * 7}), of_query = HalfResult({2 * 4, 3 * 6});
    const Tensor of_key = HalfResult({2 * 5, 3 * 6});
    NamedCall back("AttentionScoreGrad");
    back.In(of.softmax).In(gradient).In(of.value).In(of.key).In(of.query);
    back.Host(at::scalar_tensor(kScoreScale, at::kHalf));
    if (dropped) {
      back.In(of.kept).Set("keep_prob", 0.5f);
    } else {
      back.None();
    }
    back.Out(of_value).Out(of_query).Out(of_key).Set("softmax_axes", int64_t{-1});
    ASSERT_EQ(back.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(AgreesInHalf(of_value, SideBySide(value.grad())));
    EXPECT_TRUE(AgreesInHalf(of_query, SideBySide(query.grad())));
    EXPECT_TRUE(AgreesInHalf(of_key, SideBySide(key.grad())));
  }
}

TEST(AttentionByName, ScoresOfTensorsInBlocks) {
  const ScoreTensors of(2, 2, 4, 5, 6, 6);
  NamedCall plain("AttentionScore");
  DescribeScore(plain, of, false);
  ASSERT_EQ(plain.Run(), ACL_SUCCESS) << TakeMessage();
  const Tensor blocks = HalfResult({1, 1, 16, 16}), softmax = HalfResult({2, 2, 4, 5});
  NamedCall call("AttentionScore");
  call.InBlocks(HalfBlocks(of.query), {2, 2, 4, 6}).InBlocks(HalfBlocks(of.key), {2, 2, 5, 6});
  call.InBlocks(HalfBlocks(of.value), {2, 2, 5, 6});
  call.InBlocks(HalfBlocks(of.padding), {2, 1, 4, 5});
  call.Host(at::scalar_tensor(kScoreScale, at::kHalf)).OutInBlocks(blocks, {8, 12}).Out(softmax);
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(softmax, of.softmax));
  EXPECT_TRUE(SameBits(blocks, HalfBlocks(of.result)));
}

TEST(AttentionByName, ScoresWithoutABatchAndOfOneElement) {
  const ScoreTensors none(0, 3, 4, 5, 6, 7), one(1, 1, 1, 1, 1, 1);
  NamedCall empty("AttentionScore"), single("AttentionScore");
  DescribeScore(empty, none, true);
  EXPECT_EQ(empty.Run(), ACL_SUCCESS) << TakeMessage();
  DescribeScore(single, one, false);
  ASSERT_EQ(single.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_EQ(one.softmax.item<float>(), 1);
  EXPECT_TRUE(SameBits(one.result.view(-1), one.value.view(-1)));
  const Tensor no_rows = HalfResult({0, 18}), no_values = HalfResult({0, 21});
  NamedCall back("AttentionScoreGrad");
  back.In(none.softmax).In(HalfOf({0, 3, 4, 7})).In(none.value).In(none.key).In(none.query);
  back.Host(at::scalar_tensor(1, at::kHalf)).Out(no_values).Out(no_rows).Out(no_rows);
  EXPECT_EQ(back.Run(), ACL_SUCCESS) << TakeMessage();
}

TEST(AttentionByName, OtherFormsOfScoresAreRefused) {
  const ScoreTensors of(2, 3, 4, 5, 6, 7);
  for (const char* flag : {"query_transpose", "key_transpose", "value_transpose", "dx_transpose",
                           "bmm_score_transpose_a", "bmm_score_transpose_b"}) {
    NamedCall call("AttentionScore");
    DescribeScore(call, of, false);
    ExpectAttentionRefused(call.Set(flag, true),
                           "is true; the soft device takes tensors that are not");
  }
  NamedCall axes("AttentionScore");
  DescribeScore(axes, of, false);
  ExpectAttentionRefused(axes.Set("softmax_axes", std::vector<int64_t>{1}), "softmax_axes is [1]");
  NamedCall unmasked("AttentionScore");
  DescribeScore(unmasked, of, false);
  ExpectAttentionRefused(unmasked.Set("keep_prob", 0.5f),
                         "keep_prob is 0.5, and a mask of the dropout is");
  NamedCall more("AttentionScore");
  DescribeScore(more, of, true);
  ExpectAttentionRefused(more.Set("keep_prob", 1.5f), "expected a number from 0 to 1");
  const auto with = [&](Tensor ScoreTensors::*changed, const Tensor& tensor, const char* said) {
    ScoreTensors other = of;
    other.*changed = tensor;
    NamedCall call("AttentionScore");
    DescribeScore(call, other, true);
    ExpectAttentionRefused(call, said);
  };
  with(&ScoreTensors::kept, at::zeros({8}, at::kByte), "the soft device takes a byte for each");
  with(&ScoreTensors::query, at::zeros({2, 3, 4, 6}), "has the shape [2, 3, 4, 6] and the type 0");
  with(&ScoreTensors::query, HalfOf({3, 4, 6}), "input 0 has the shape [3, 4, 6], expected 4 dims");
  with(&ScoreTensors::key, HalfOf({2, 3, 5, 7}), "input 1 has the shape [2, 3, 5, 7] and the type");
  with(&ScoreTensors::padding, HalfOf({2, 2, 4, 5}), "expected [2, 3, 4, 5] and 1");
  with(&ScoreTensors::padding, HalfOf({4, 5}), "expected [2, 3, 4, 5] and 1");
  with(&ScoreTensors::result, HalfOf({8, 20}), "output 0 has the shape [8, 20]");
  with(&ScoreTensors::softmax, HalfOf({2, 3, 4, 4}), "output 1 has the shape [2, 3, 4, 4]");
  NamedCall back("AttentionScoreGrad");
  back.In(of.softmax).In(HalfOf({2, 3, 4, 6})).In(of.value).In(of.key).In(of.query);
  back.Host(at::scalar_tensor(1, at::kHalf)).Out(HalfOf({10, 21})).Out(HalfOf({8, 18}));
  ExpectAttentionRefused(back.Out(HalfOf({10, 18})), "input 1 has the shape [2, 3, 4, 6]");
}

TEST(AttentionByName, CapturedScoresRunAgainOverNewTensors) {
  const ScoreTensors of(1, 2, 3, 3, 4, 4);
  aclrtStream stream = nullptr;
  TestStream();
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  NamedCall call("AttentionScore");
  DescribeScore(call, of, true);
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
  ASSERT_EQ(call.Launch(stream), ACL_SUCCESS) << TakeMessage();
  ASSERT_EQ(aclmdlRICaptureEnd(stream, &model), ACL_SUCCESS);
  for (int run = 0; run < 2; ++run) {
    of.query.copy_(HalfOf(of.query.sizes()));
    ASSERT_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    ScoreTensors eager = of;
    eager.result = HalfResult(of.result.sizes());
    eager.softmax = HalfResult(of.softmax.sizes());
    NamedCall again("AttentionScore");
    DescribeScore(again, eager, true);
    ASSERT_EQ(again.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(SameBits(of.result, eager.result));
  }
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

TEST(AttentionByName, RowsAreNormalisedAndProjected) {
  constexpr int64_t kRows = 6, kWidth = 10, kColumns = 12;
  for (bool transposed : {false, true}) {
    for (bool biased : {false, true}) {
      const Tensor x = HalfOf({kRows, kWidth}, 3), gamma = HalfOf({kWidth}),
                   beta = HalfOf({kWidth});
      std::vector<Tensor> kernels, biases, projected;
      for (int i = 0; i < 3; ++i) {
        kernels.push_back(HalfOf(transposed ? at::IntArrayRef{kColumns, kWidth}
                                            : at::IntArrayRef{kWidth, kColumns}));
        biases.push_back(HalfOf({kColumns}));
        projected.push_back(HalfResult({2, 4, 3, 3}));
      }
      const Tensor norm = HalfResult({kRows, kWidth});
      const Tensor mean = HalfResult({kRows}), variance = HalfResult({kRows});
      NamedCall call("AttentionLnQKV");
      call.In(x).In(kernels[0]).In(kernels[1]).In(kernels[2]).In(gamma).In(beta);
      for (const Tensor& bias : biases) biased ? call.In(bias) : call.None();
      call.Out(norm).Out(projected[0]).Out(projected[1]).Out(projected[2]).Out(mean).Out(variance);
      call.Set("epsilon", 0.25f).Set("trans_b", transposed);
      ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
      const Tensor wide = x.to(at::kDouble), rows = at::empty({kRows, kWidth}, at::kDouble);
      for (int64_t row = 0; row < kRows; ++row) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < kWidth; ++i) sum += wide[row][i].item<double>() / kWidth;
        for (int64_t i = 0; i < kWidth; ++i) {
          squares += std::pow(wide[row][i].item<double>() - sum, 2) / kWidth;
        }
        EXPECT_NEAR(mean[row].item<double>(), sum, 2e-3);
        EXPECT_NEAR(variance[row].item<double>(), squares, 4e-3 * (1 + squares));
        rows[row].copy_((wide[row] - sum) / std::sqrt(squares + 0.25) * gamma + beta);
      }
      EXPECT_TRUE(AgreesInHalf(norm, rows));
      for (int i = 0; i < 3; ++i) {
        Tensor wanted = rows.matmul((transposed ? kernels[i].t() : kernels[i]).to(at::kDouble));
        if (biased) wanted = wanted + biases[i];
        // Two sequences of three rows, and four heads of three columns.
        for (int64_t row = 0; row < kRows; ++row) {
          for (int64_t column = 0; column < kColumns; ++column) {
            EXPECT_NEAR(projected[i][row / 3][column / 3][row % 3][column % 3].item<double>(),
                        wanted[row][column].item<double>(), 2e-2);
          }
        }
      }
    }
  }
}

TEST(AttentionByName, GradientsOfProjectionsAreThoseOfTheFormula) {
  const Tensor x = HalfOf({5, 4}), of_norm = HalfOf({5, 4});
  std::vector<Tensor> gradients, kernels, of_kernels, of_biases;
  for (int i = 0; i < 3; ++i) {
    gradients.push_back(HalfOf({5, 6}));
    kernels.push_back(HalfOf({4, 6}));
    of_kernels.push_back(HalfResult({4, 6}));
    of_biases.push_back(HalfResult({6}));
  }
  const Tensor of_x = HalfResult({5, 4});
  NamedCall call("AttentionQKVGradX");
  call.In(of_norm).In(gradients[0]).In(gradients[1]).In(gradients[2]);
  call.In(kernels[0]).In(kernels[1]).In(kernels[2]).Out(of_x);
  call.Set("trans_a", false).Set("trans_b", true);
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  NamedCall weights("AttentionQKVGradW");
  weights.In(x).In(gradients[0]).In(gradients[1]).In(gradients[2]);
  weights.Out(of_kernels[0]).Out(of_kernels[1]).Out(of_kernels[2]);
  weights.Out(of_biases[0]).Out(of_biases[1]).Out(of_biases[2]);
  weights.Set("trans_a", true).Set("trans_b", false);
  ASSERT_EQ(weights.Run(), ACL_SUCCESS) << TakeMessage();

  const at::AutoGradMode enabled(true);
  const Tensor rows = LeafOf(x);
  for (int i = 0; i < 3; ++i) {
    const Tensor kernel = LeafOf(kernels[i]), bias = LeafOf(at::zeros({6}));
    at::linear(rows, kernel.t(), bias).backward(gradients[i].to(at::kDouble));
    EXPECT_TRUE(AgreesInHalf(of_kernels[i], kernel.grad()));
    EXPECT_TRUE(AgreesInHalf(of_biases[i], bias.grad()));
  }
  EXPECT_TRUE(AgreesInHalf(of_x, rows.grad() + of_norm));
}

TEST(AttentionByName, OtherFormsOfProjectionsAreRefused) {
  const auto project = [](const Tensor& x, const Tensor& kernel, const Tensor& result, int biases,
                          const char* flag, const char* said) {
    NamedCall call("AttentionLnQKV");
    call.In(x).In(kernel).In(kernel).In(kernel).In(HalfOf({4})).In(HalfOf({4}));
    for (int i = 0; i < 3; ++i) i < biases ? call.In(HalfOf({4})) : call.None();
    call.Out(HalfOf({6, 4})).Out(result).Out(result).Out(result).Out(HalfOf({6})).Out(HalfOf({6}));
    ExpectAttentionRefused(call.Set(flag, true), said);
  };
  const Tensor x = HalfOf({6, 4}), kernel = HalfOf({4, 4}), result = HalfOf({2, 2, 3, 2});
  project(x, kernel, result, 0, "trans_a", "trans_a is true; the soft device takes false alone");
  project(HalfOf({6, 4, 1}), kernel, result, 0, "unused", "expected a matrix");
  project(x.to(at::kFloat), kernel, result, 0, "unused",
          "input 0 has the shape [6, 4] and the type 0");
  project(x, HalfOf({4, 6}), result, 0, "unused",
          "expected [batch, heads, length, width] of 6 rows");
  project(x, kernel, HalfOf({2, 2, 2, 2}), 0, "unused",
          "the projections have the shape [2, 2, 2, 2]");
  project(x, kernel, result, 2, "unused", "with 2 biases; expected");
  NamedCall of_x("AttentionQKVGradX");
  of_x.In(x).In(x).In(x).In(x).In(kernel).In(kernel).In(kernel).Out(HalfOf({6, 4}));
  ExpectAttentionRefused(of_x.Set("trans_b", false),
                         "trans_b is false; the soft device takes true alone");
  NamedCall of_weights("AttentionQKVGradW");
  of_weights.In(x).In(x).In(x).In(x);
  for (int i = 0; i < 3; ++i) of_weights.Out(HalfOf({4, 4}));
  for (int i = 0; i < 3; ++i) of_weights.Out(HalfOf({6}));
  ExpectAttentionRefused(of_weights,
                         "output 3 has the shape [6] and the type 1, expected [4] and 1");
  NamedCall empty("AttentionQKVGradW");
  for (int i = 0; i < 4; ++i) empty.In(at::empty({0, 4}, at::kHalf));
  const Tensor zeros = HalfResult({4, 4}), sums = HalfResult({4});
  empty.Out(zeros).Out(zeros).Out(zeros).Out(sums).Out(sums).Out(sums);
  ASSERT_EQ(empty.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(zeros, at::zeros({4, 4}, at::kHalf)));
  EXPECT_TRUE(SameBits(sums, at::zeros({4}, at::kHalf)));
}

}  // namespace
}  // namespace acltape::opapi
