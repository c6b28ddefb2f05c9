// Precision standards: what each built-in one accepts and refuses, and what is said of a bad file.
#include "analyzer/metrics/standard.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "storage/error.h"

namespace acltape::analyzer {
namespace {

using storage::DType;
using Verdict = metrics::Judgement::Verdict;

metrics::Judgement JudgeFloats(const std::string& standard, const std::string& op,
                               const std::vector<float>& a, const std::vector<float>& b) {
  return metrics::Standard::Load(standard).Compare(
      op, DType::kFloat32, reinterpret_cast<const uint8_t*>(a.data()), DType::kFloat32,
      reinterpret_cast<const uint8_t*>(b.data()), static_cast<int64_t>(a.size()), nullptr);
}

// A metric changed in metrics of 1,000 elements that are equal but for bits.
metrics::TensorMetrics Nearly(void (*change)(metrics::TensorMetrics&)) {
  metrics::TensorMetrics metrics;
  metrics.elements = 1000;
  metrics.differing = 1;
  metrics.ulp_buckets[0] = 1000;
  metrics.a.max = metrics.b.max = 1;
  change(metrics);
  return metrics;
}

struct Threshold {
  const char* standard;
  const char* op;
  DType dtype;
  void (*accepted)(metrics::TensorMetrics&);
  void (*refused)(metrics::TensorMetrics&);
};

// Each threshold of the specification from both sides.
const Threshold kThresholds[] = {
    {"msprobe-compare", "aten::mm", DType::kFloat32,
     [](metrics::TensorMetrics& m) { m.cosine = 0.98, m.max_abs = 0.0009; },
     [](metrics::TensorMetrics& m) { m.cosine = 0.98, m.max_abs = 0.0011; }},
    {"msprobe-compare", "aten::mm", DType::kFloat32,
     [](metrics::TensorMetrics& m) { m.cosine = 0.991, m.max_abs = 0.9; },
     [](metrics::TensorMetrics& m) { m.cosine = 0.991, m.max_abs = 1.1; }},
    {"msprobe-compare", "aten::mm", DType::kFloat32,
     [](metrics::TensorMetrics& m) { m.cosine = 0.91; },
     [](metrics::TensorMetrics& m) { m.cosine = 0.89; }},
    {"msprobe-red", "aten::mm", DType::kFloat32, [](metrics::TensorMetrics& m) { m.max_rel = 0.5; },
     [](metrics::TensorMetrics& m) { m.max_rel = 0.51; }},
    {"msprobe-first-difference", "aten::mm", DType::kFloat32,
     [](metrics::TensorMetrics& m) { m.b.max = 1.4; },
     [](metrics::TensorMetrics& m) { m.b.max = 1.6; }},
    {"msprobe-single-op", "aten::add", DType::kFloat16,
     [](metrics::TensorMetrics& m) { m.within_hundredth = 0.9995, m.within_thousandth = 0; },
     [](metrics::TensorMetrics& m) { m.within_hundredth = 0.998; }},
    {"msprobe-single-op", "aten::add", DType::kFloat32,
     [](metrics::TensorMetrics& m) { m.within_thousandth = 0.9995; },
     [](metrics::TensorMetrics& m) { m.within_thousandth = 0.998; }},
    {"msprobe-single-op-warning", "aten::add", DType::kBfloat16,
     [](metrics::TensorMetrics& m) { m.within_thousandth = 0.9995; },
     [](metrics::TensorMetrics& m) { m.within_thousandth = 0.998; }},
    {"absolute-threshold", "aten::add_.Tensor", DType::kFloat32,
     [](metrics::TensorMetrics& m) { m.max_rel_large = std::ldexp(1.0, -20); },
     [](metrics::TensorMetrics& m) { m.max_rel_large = std::ldexp(1.1, -20); }},
    {"absolute-threshold", "aclnnInplaceMuls", DType::kFloat16,
     [](metrics::TensorMetrics& m) { m.max_rel_large = 9e-4, m.max_abs_small = 1e-5; },
     [](metrics::TensorMetrics& m) { m.max_rel_large = 1.1e-3; }},
    {"absolute-threshold", "aten::rsqrt", DType::kBfloat16,
     [](metrics::TensorMetrics& m) { m.max_rel_large = std::ldexp(1.0, -8); },
     [](metrics::TensorMetrics& m) { m.max_abs_small = std::ldexp(1.1, -16); }},
    {"binary-equal", "aten::clone", DType::kFloat32,
     [](metrics::TensorMetrics& m) { m.differing = 0; }, [](metrics::TensorMetrics&) {}},
    {"ulp-matmul", "aten::addmm", DType::kFloat16,
     [](metrics::TensorMetrics& m) { m.ulp_buckets[1] = 9; },
     [](metrics::TensorMetrics& m) { m.ulp_buckets[2] = 2; }},
    {"ulp-matmul", "aclnnMm", DType::kFloat32,
     [](metrics::TensorMetrics& m) { m.mean_ulp = 100, m.ulp_buckets[7] = 40; },
     [](metrics::TensorMetrics& m) { m.mean_ulp = 100, m.ulp_buckets[7] = 60; }},
    {"ulp-matmul", "aclnnMm", DType::kFloat32,
     [](metrics::TensorMetrics& m) { m.mean_ulp = 63, m.ulp_buckets[7] = 60; },
     [](metrics::TensorMetrics& m) { m.mean_ulp = 65, m.ulp_buckets[7] = 60; }},
    {"thousandth-convolution", "aten::convolution", DType::kFloat32,
     [](metrics::TensorMetrics& m) { m.within_thousandth = 0.9991; },
     [](metrics::TensorMetrics& m) { m.within_thousandth = 0.9989; }},
    {"accumulation", "aten::_softmax", DType::kFloat16,
     [](metrics::TensorMetrics& m) { m.max_abs_or_rel = std::ldexp(1.0, -8); },
     [](metrics::TensorMetrics& m) { m.max_abs_or_rel = std::ldexp(1.1, -8); }},
    {"accumulation", "aten::sum.dim_IntList", DType::kFloat32,
     [](metrics::TensorMetrics& m) { m.max_abs_or_rel = std::ldexp(1.0, -11); },
     [](metrics::TensorMetrics& m) { m.max_abs_or_rel = std::ldexp(1.1, -11); }},
    {"perturbation", "aten::anything", DType::kFloat32,
     [](metrics::TensorMetrics& m) { m.max_rel_large = 0.0002; },
     [](metrics::TensorMetrics& m) { m.max_rel_large = 0.00021; }},
    {"polygraphy", "aten::anything", DType::kFloat32,
     [](metrics::TensorMetrics& m) { m.max_abs_or_rel = 1e-5; },
     [](metrics::TensorMetrics& m) { m.max_abs_or_rel = 1.1e-5; }},
    {"polygraphy-psnr", "aten::anything", DType::kFloat32,
     [](metrics::TensorMetrics& m) { m.rmse = 0.03; },
     [](metrics::TensorMetrics& m) { m.rmse = 0.033; }},
    {"polygraphy-snr", "aten::anything", DType::kFloat32,
     [](metrics::TensorMetrics& m) { m.nmse = 0.009; },
     [](metrics::TensorMetrics& m) { m.nmse = 0.011; }},
    {"ggml", "aten::mm", DType::kFloat32, [](metrics::TensorMetrics& m) { m.nmse = 0.9e-7; },
     [](metrics::TensorMetrics& m) { m.nmse = 1.1e-7; }},
    {"ggml", "aten::_scaled_dot_product_flash_attention", DType::kFloat32,
     [](metrics::TensorMetrics& m) { m.nmse = 4e-4; },
     [](metrics::TensorMetrics& m) { m.nmse = 6e-4; }},
    {"ascend", "aten::relu", DType::kFloat16,
     [](metrics::TensorMetrics& m) { m.max_rel_large = 9e-4; },
     [](metrics::TensorMetrics& m) { m.max_rel_large = 1.1e-3; }},
    {"ascend", "aten::mm", DType::kBfloat16,
     [](metrics::TensorMetrics& m) { m.max_rel_large = 0.5; },
     [](metrics::TensorMetrics& m) { m.ulp_buckets[5] = 2; }},
    {"ascend", "aten::never_heard_of", DType::kFloat32,
     [](metrics::TensorMetrics& m) { m.max_abs_or_rel = 4e-4; },
     [](metrics::TensorMetrics& m) { m.max_abs_or_rel = 6e-4; }},
};

TEST(Standards, KeepTheThresholdsOfTheirSources) {
  for (const Threshold& row : kThresholds) {
    SCOPED_TRACE(std::string(row.standard) + ", " + row.op + ", row " +
                 std::to_string(&row - kThresholds));
    const metrics::Standard standard = metrics::Standard::Load(row.standard);
    const metrics::Judgement accepted = standard.Judge(row.op, row.dtype, Nearly(row.accepted));
    EXPECT_NE(accepted.verdict, Verdict::kDifferent) << accepted.reason;
    const metrics::Judgement refused = standard.Judge(row.op, row.dtype, Nearly(row.refused));
    EXPECT_EQ(refused.verdict, Verdict::kDifferent) << refused.reason;
    EXPECT_NE(refused.reason, "");
  }
}

TEST(Standards, BitwiseRefusesTheLastBit) {
  EXPECT_EQ(JudgeFloats("bitwise", "aten::add", {1}, {1}).verdict, Verdict::kEqual);
  const metrics::Judgement judgement =
      JudgeFloats("bitwise", "aten::add", {1, 2}, {1, std::nextafterf(2, 3)});
  EXPECT_EQ(judgement.verdict, Verdict::kDifferent);
  EXPECT_EQ(judgement.reason, "1 of 2 elements have other bits");
}

TEST(Standards, SayWhatCameNearest) {
  const metrics::Judgement judgement =
      JudgeFloats("ascend", "aten::add", {1}, {1 + std::ldexp(1.0f, -21)});
  EXPECT_EQ(judgement.verdict, Verdict::kWithin);
  EXPECT_EQ(judgement.reason, "max_rel_large 4.768e-07 <= 9.537e-07 (float32, elementwise)");
  const metrics::Judgement worse = JudgeFloats("ascend", "aten::add", {1}, {1.5});
  EXPECT_EQ(worse.reason, "max_rel_large 0.5 > 9.537e-07 (float32, elementwise)");
}

TEST(Standards, BelowTheSmallValueTheAbsoluteErrorCounts) {
  const float small = std::ldexp(1.0f, -30);
  EXPECT_EQ(JudgeFloats("absolute-threshold", "aten::add", {small, 1}, {1.5f * small, 1}).verdict,
            Verdict::kWithin);
  EXPECT_EQ(JudgeFloats("absolute-threshold", "aten::add", {small, 1}, {3 * small, 1}).verdict,
            Verdict::kDifferent);
}

TEST(Standards, ANanOnOneSideIsDifferentByEveryStandard) {
  for (const auto& [name, about] : metrics::Standard::BuiltIn()) {
    const metrics::Judgement judgement = JudgeFloats(name, "aten::mm", {1, 2}, {1, NAN});
    EXPECT_EQ(judgement.verdict, Verdict::kDifferent) << name;
  }
}

TEST(Standards, WhatHasNoRuleMustBeEqual) {
  const metrics::Judgement judgement =
      JudgeFloats("ulp-matmul", "aten::relu", {1}, {std::nextafterf(1, 2)});
  EXPECT_EQ(judgement.verdict, Verdict::kDifferent);
  EXPECT_EQ(judgement.reason,
            "1 of 1 elements have other bits, and ulp-matmul has no rule for them (float32, copy)");
}

TEST(Standards, IntegersMustBeEqualUnderTheAscendStandard) {
  const int32_t a = 1000000;
  const int32_t b = 1000001;
  EXPECT_EQ(metrics::Standard::Load("ascend")
                .Compare("aten::add", DType::kInt32, reinterpret_cast<const uint8_t*>(&a),
                         DType::kInt32, reinterpret_cast<const uint8_t*>(&b), 1, nullptr)
                .verdict,
            Verdict::kDifferent);
}

TEST(Standards, OperatorsOfBothDialectsHaveOneClass) {
  const metrics::Standard standard = metrics::Standard::Load("ascend");
  const std::pair<const char*, const char*> kClasses[] = {
      {"aten::add.Tensor", "elementwise"},
      {"aclnnAdds", "elementwise"},
      {"aclnnInplaceAdd", "elementwise"},
      {"aten::gelu", "elementwise"},
      {"aclnnGeluBackward", "elementwise"},
      {"aten::leaky_relu", "elementwise"},
      {"aten::lerp.Scalar", "elementwise"},
      {"aten::addmm", "matmul"},
      {"aclnnAddmm", "matmul"},
      {"aclnnBatchMatMul", "matmul"},
      {"aten::convolution_backward", "convolution"},
      {"aclnnConvolution", "convolution"},
      {"aten::native_layer_norm", "accumulation"},
      {"aclnnLayerNorm", "accumulation"},
      {"aten::_log_softmax", "accumulation"},
      {"aten::avg_pool2d", "accumulation"},
      {"aten::nll_loss_forward", "accumulation"},
      {"aclnnFlashAttentionScore", "attention"},
      {"aten::copy_", "copy"},
      {"aclnnInplaceCopy", "copy"},
      {"aten::_to_copy", "copy"},
      {"aten::cat", "copy"},
      {"aten::max_pool2d_with_indices", "copy"},
      {"aclnnGeScalar", "copy"},
      {"aten::uniform_", "other"},
  };
  for (const auto& [op, expected] : kClasses) EXPECT_EQ(standard.OpClass(op), expected) << op;
}

TEST(Standards, SmallValuesOfTheFileAreThoseThatAreMeasuredByDefault) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    EXPECT_EQ(metrics::Standard::Load("ascend").SmallValue(dtype),
              metrics::DefaultSmallValue(dtype));
  }
}

TEST(Standards, EveryRuleHasASourceAndEveryStandardASentence) {
  for (const auto& [name, about] : metrics::Standard::BuiltIn()) {
    EXPECT_GT(about.size(), 20u) << name;
    const metrics::Standard standard = metrics::Standard::Load(name);
    for (const metrics::Standard::Rule& rule : standard.rules()) EXPECT_NE(rule.source, "");
  }
}

class StandardFiles : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  std::string Write(const std::string& text) {
    std::ofstream(path_) << text;
    return path_;
  }
  std::string Rule(const std::string& rule) {
    return R"({"version": 1, "standards": [{"name": "mine", "rules": [)" + rule + "]}]}";
  }
  // The sentence by which a file of standards is refused.
  std::string Complaint(const std::string& text) {
    try {
      metrics::Standard::Load(Write(text));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return std::string(error.what()).substr(path_.size());
    }
    return "none";
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() /
       ("standard_" + std::to_string(getpid()) + "_" +
        testing::UnitTest::GetInstance()->current_test_info()->name() + ".json"))
          .string();
};

TEST_F(StandardFiles, HaveTheirOwnRulesAndClasses) {
  const std::string path = Write(R"({"version": 1, "small_values": {"float32": 0.5},
    "op_classes": [{"class": "mine", "ops": ["relu*"]}],
    "standards": [
      {"name": "first", "rules": [
        {"op_class": "mine", "dtype": "*", "metric": "max_abs", "at_most": 2, "source": "me"}]},
      {"name": "second", "rules": [
        {"op_class": "*", "dtype": "*", "metric": "max_abs_small", "at_most": 1, "source": "me"},
        {"op_class": "*", "dtype": "*", "metric": "max_rel_large", "at_most": 1e-9,
         "source": "me"}]}]})");
  EXPECT_EQ(JudgeFloats(path + ":first", "aten::relu6", {1}, {3}).verdict, Verdict::kWithin);
  EXPECT_EQ(JudgeFloats(path + ":first", "aten::add", {1}, {3}).verdict, Verdict::kDifferent);
  EXPECT_EQ(JudgeFloats(path + ":second", "aten::add", {0.25}, {1}).verdict, Verdict::kWithin);
  EXPECT_EQ(JudgeFloats(path + ":second", "aten::add", {0.75}, {1}).verdict, Verdict::kDifferent);
  EXPECT_EQ(Complaint(""),
            " is no JSON: parse error at line 1, column 1: syntax error while "
            "parsing value - unexpected end of input; expected '[', '{', or a "
            "literal");
}

TEST_F(StandardFiles, SeveralStandardsNeedAName) {
  const std::string rules =
      R"("rules": [{"op_class": "*", "dtype": "*", "metric": "max_abs", "at_most": 2, "source": "me"}])";
  const std::string text = R"({"version": 1, "standards": [{"name": "a", )" + rules +
                           R"(}, {"name": "b", )" + rules + "}]}";
  EXPECT_EQ(Complaint(text), " holds several standards (a, b); pick one with " + path_ + ":NAME");
  EXPECT_EQ(metrics::Standard::Load(path_ + ":b").name(), "b");
  try {
    metrics::Standard::Load(path_ + ":c");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), path_ + " has no standard \"c\"; it holds a, b");
  }
}

TEST_F(StandardFiles, AMistakeIsNamedWithItsPlace) {
  const std::pair<std::string, std::string> kMistakes[] = {
      {"{}", " lacks \"version\""},
      {"[]", " is no object with \"version\" and \"standards\""},
      {R"({"version": 2, "standards": []})", ": version is 2, but this program reads version 1"},
      {R"({"version": 1})", " lacks \"standards\""},
      {R"({"version": 1, "standards": []})", ": standards is no array of standards"},
      {R"({"version": 1, "standard": []})",
       " has \"standard\"; known are op_classes, small_values, standards, version"},
      {R"({"version": 1, "standards": [{"rules": []}]})", ": standards[0] lacks \"name\""},
      {R"({"version": 1, "standards": [{"name": "mine", "rules": []}]})",
       ": standards[0] (mine) has no rules"},
      {Rule("3"), ": rule 1 of \"mine\" is no object"},
      {Rule(R"({"dtype": "*", "metric": "max_abs", "at_most": 1, "source": "me"})"),
       ": rule 1 of \"mine\" lacks \"op_class\""},
      {Rule(
           R"({"op_class": "*", "dtype": "float8", "metric": "max_abs", "at_most": 1, "source": "me"})"),
       ": rule 1 of \"mine\" has the dtype \"float8\"; known are float16, bfloat16, float32, "
       "float64, integer, *"},
      {Rule(R"({"op_class": "*", "dtype": "*", "metric": "max_abs", "source": "me"})"),
       ": rule 1 of \"mine\" needs either \"at_most\" or \"at_least\""},
      {Rule(
           R"({"op_class": "*", "dtype": "*", "metric": "max_abs", "at_most": "1", "source": "me"})"),
       ": rule 1 of \"mine\" has the threshold \"1\", which is no number"},
      {Rule(R"({"op_class": "*", "dtype": "*", "metric": "max_abs", "at_most": 1})"),
       ": rule 1 of \"mine\" lacks \"source\""},
      {Rule(
           R"({"op_class": "matmuls", "dtype": "*", "metric": "max_abs", "at_most": 1, "source": "me"})"),
       ": a rule of \"mine\" is for the op_class \"matmuls\"; known are *, other, attention, "
       "matmul, convolution, accumulation, copy, elementwise"},
  };
  for (const auto& [text, complaint] : kMistakes) EXPECT_EQ(Complaint(text), complaint) << text;
  EXPECT_EQ(Complaint(Rule(R"({"op_class": "*", "dtype": "*", "metric": "mox", "at_most": 1,
                               "source": "me"})"))
                .substr(0, 52),
            ": rule 1 of \"mine\" has the metric \"mox\"; known are d");
}

TEST(Standards, AnUnknownNameIsAnsweredWithThoseThereAre) {
  try {
    metrics::Standard::Load("/nowhere/at_all");
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what())
                    .starts_with("/nowhere/at_all is neither a precision standard (bitwise, "
                                 "ascend, binary-equal, "))
        << error.what();
  }
}

}  // namespace
}  // namespace acltape::analyzer
