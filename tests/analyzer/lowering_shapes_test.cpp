// Lowering of operators that rearrange elements, and of those whose results have as many as they
// find.
#include <gtest/gtest.h>

#include "tests/analyzer/lowered.h"

namespace acltape::analyzer {
namespace {

using storage::DType;
using test::In;
using test::Int;
using test::Lowered;
using test::None;
using test::Ops;
using test::Out;
using test::Tensor;
using test::TraceBuilder;
using Numbers = std::vector<int64_t>;

const storage::Layout& LayoutOf(const Lowered& lowered, size_t call, size_t argument) {
  return lowered.lowering->invocations.at(call).arguments.at(argument).tensors.at(0).layout;
}

TEST(LoweringShapes, PixelsAreShuffledByACopyBetweenTwoViews) {
  for (const bool back : {false, true}) {
    const Lowered lowered([&](TraceBuilder& trace) {
      const Tensor deep = trace.NewTensor({2, 12, 3, 5}), wide = trace.NewTensor({2, 3, 6, 10});
      trace.Call(
          back ? "aten::pixel_unshuffle" : "aten::pixel_shuffle",
          {In("self", back ? wide : deep), Int(back ? "downscale_factor" : "upscale_factor", 2)},
          {Out("out", back ? deep : wide)});
    });
    ASSERT_TRUE(lowered.lowering) << lowered.why;
    ASSERT_EQ(lowered.Ops(), Ops{"aclnnInplaceCopy"});
    const storage::Layout& deep = LayoutOf(lowered, 0, back ? 0 : 1);
    const storage::Layout& wide = LayoutOf(lowered, 0, back ? 1 : 0);
    EXPECT_EQ(deep.shape, (Numbers{2, 3, 2, 2, 3, 5}));
    EXPECT_EQ(deep.strides, (Numbers{180, 60, 30, 15, 5, 1}));
    EXPECT_EQ(wide.shape, (Numbers{2, 3, 2, 2, 3, 5}));
    EXPECT_EQ(wide.strides, (Numbers{180, 60, 10, 1, 20, 2}));
  }
}

TEST(LoweringShapes, PixelsOfPartsThatAreNotEqualAreRefused) {
  const Lowered lowered([](TraceBuilder& trace) {
    trace.Call("aten::pixel_shuffle",
               {In("self", trace.NewTensor({1, 6, 2, 2})), Int("upscale_factor", 2)},
               {Out("out", trace.NewTensor({1, 1, 4, 4}))});
  });
  EXPECT_FALSE(lowered.lowering);
  EXPECT_NE(lowered.why.find("unequal parts"), std::string::npos) << lowered.why;
}

TEST(LoweringShapes, ADiagonalIsAViewWhateverItsOffset) {
  struct Case {
    int64_t offset, first, second;
    Numbers shape, strides;
    int64_t byte_offset;
  };
  // The cases are of a tensor [2, 3, 4], whose strides are [12, 4, 1].
  for (const Case& c : {Case{0, 1, 2, {2, 3}, {12, 5}, 0}, Case{1, -2, -1, {2, 3}, {12, 5}, 4},
                        Case{-2, 1, 2, {2, 1}, {12, 5}, 32}, Case{0, 2, 0, {3, 2}, {4, 13}, 0},
                        Case{9, 1, 2, {2, 0}, {12, 5}, 0}}) {
    const Lowered lowered([&](TraceBuilder& trace) {
      trace.Call("aten::diagonal_copy",
                 {In("self", trace.NewTensor({2, 3, 4})), Int("offset", c.offset),
                  Int("dim1", c.first), Int("dim2", c.second)},
                 {Out("out", trace.NewTensor(c.shape))});
    });
    ASSERT_TRUE(lowered.lowering) << lowered.why;
    const storage::Layout& view = LayoutOf(lowered, 0, 1);
    EXPECT_EQ(view.shape, c.shape) << c.offset;
    EXPECT_EQ(view.strides, c.strides) << c.offset;
    EXPECT_EQ(view.byte_offset, c.byte_offset) << c.offset;
  }
}

TEST(LoweringShapes, WhatIsNotZeroIsFoundInRoomForAllElements) {
  const Lowered lowered([](TraceBuilder& trace) {
    trace.Call("aten::nonzero", {In("self", trace.NewTensor({2, 3}))},
               {Out("out", trace.NewTensor({4, 2}, DType::kInt64))});
  });
  ASSERT_TRUE(lowered.lowering) << lowered.why;
  ASSERT_EQ(lowered.Ops(), (Ops{"aclnnNonzero", "aclnnInplaceCopy"}));
  EXPECT_EQ(test::TensorShapes(lowered.lowering->invocations[0]), "[2,3] [6,2]");
  EXPECT_EQ(test::TensorShapes(lowered.lowering->invocations[1]), "[4,2] [4,2]");
  EXPECT_EQ(LayoutOf(lowered, 0, 1).dtype, DType::kInt64);
}

TEST(LoweringShapes, DistinctValuesAreCopiedWithWhatWasAskedFor) {
  struct Case {
    bool inverse, counts;
    Ops ops;
  };
  const Ops one{"aclnnUnique2", "aclnnInplaceCopy"};
  const Ops two{"aclnnUnique2", "aclnnInplaceCopy", "aclnnInplaceCopy"};
  for (const Case& c : {Case{false, false, one}, Case{true, false, one}, Case{false, true, two},
                        Case{true, true, two}}) {
    const Lowered lowered([&](TraceBuilder& trace) {
      const Tensor none = trace.NewTensor({0}, DType::kInt64);
      trace.Call("aten::_unique2",
                 {In("self", trace.NewTensor({2, 3})), test::Bool("sorted", true),
                  test::Bool("return_inverse", c.inverse), test::Bool("return_counts", c.counts)},
                 {Out("out0", trace.NewTensor({4})),
                  Out("out1", c.inverse ? trace.NewTensor({2, 3}, DType::kInt64) : none),
                  Out("out2", c.counts ? trace.NewTensor({4}, DType::kInt64) : none)});
    });
    ASSERT_TRUE(lowered.lowering) << lowered.why;
    EXPECT_EQ(lowered.Ops(), c.ops);
    EXPECT_EQ(test::TensorShapes(lowered.lowering->invocations[0]), "[2,3] [6] [2,3] [6]");
    for (size_t i = 1; i < c.ops.size(); ++i) {
      EXPECT_EQ(test::TensorShapes(lowered.lowering->invocations[i]), "[4] [4]");
    }
  }
}

TEST(LoweringShapes, InfinitiesBecomeTheGreatestNumbersOfTheType) {
  for (const auto& [dtype, greatest] :
       {std::pair{DType::kFloat16, 65504.0}, std::pair{DType::kFloat32, 3.4028234663852886e38}}) {
    const Lowered lowered([&, dtype = dtype](TraceBuilder& trace) {
      trace.Call("aten::nan_to_num",
                 {In("self", trace.NewTensor({2}, dtype)), None("nan"), None("posinf"),
                  test::Real("neginf", -7)},
                 {Out("out", trace.NewTensor({2}, dtype))});
    });
    ASSERT_TRUE(lowered.lowering) << lowered.why;
    EXPECT_EQ(lowered.lowering->invocations[0].arguments[2].real, greatest);
    EXPECT_EQ(lowered.lowering->invocations[0].arguments[3].real, -7);
  }
  const Lowered lowered([](TraceBuilder& trace) {
    trace.Call("aten::nan_to_num",
               {In("self", trace.NewTensor({2}, DType::kFloat64)), None("nan"), None("posinf"),
                None("neginf")},
               {Out("out", trace.NewTensor({2}, DType::kFloat64))});
  });
  EXPECT_FALSE(lowered.lowering);
  EXPECT_NE(lowered.why.find("does not fit"), std::string::npos) << lowered.why;
}

TEST(LoweringShapes, AnOlderNameOfAnOperatorHasTheRulesOfTheNewOne) {
  for (const char* name : {"npu::npu_fusion_attention", "npu::npu_fusion_attention_v3"}) {
    const Lowered lowered([&](TraceBuilder& trace) {
      const auto heads = [&](int64_t length) { return trace.NewTensor({2, 4, length, 8}); };
      trace.Call(
          name,
          {In("query", heads(2)), In("key", heads(3)), In("value", heads(3)), Int("head_num", 4),
           test::Text("input_layout", "BNSD"), None("pse"), None("padding_mask"),
           None("atten_mask"), test::Real("scale", 0.25), test::Real("keep_prob", 1),
           Int("pre_tockens", 7), Int("next_tockens", 9), Int("inner_precise", 0), None("prefix"),
           None("actual_seq_qlen"), Int("sparse_mode", 0)},
          {Out("out0", heads(2)), Out("out1", heads(2)), Out("out2", heads(2)),
           Out("out3", trace.NewTensor({0}))});
    });
    ASSERT_TRUE(lowered.lowering) << lowered.why;
    EXPECT_EQ(lowered.Ops(), Ops{"aclnnFlashAttentionScore"});
  }
}

}  // namespace
}  // namespace acltape::analyzer
