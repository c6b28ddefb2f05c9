#include "analyzer/lowering/lowering.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <tuple>

#include "acl/invoke/operator_table.h"
#include "analyzer/lowering/bind.h"
#include "analyzer/lowering/compiled_rules.h"
#include "analyzer/lowering/pattern.h"
#include "analyzer/lowering/promotion.h"
#include "tests/analyzer/lowered.h"
#include "tests/analyzer/trace_builder.h"

namespace acltape::analyzer {
namespace {

using storage::DType;
using storage::ValueKind;
using test::In;
using test::Int;
using test::Lowered;
using test::Ops;
using test::Out;
using test::TemporaryTrace;
using test::Tensor;
using test::TensorShapes;
using test::TraceBuilder;
using test::Value;
using test::Written;

void CheckFunctions(const lowering::Expression& expression, std::string_view aten) {
  if (expression.kind == lowering::Expression::Kind::kFunction) {
    EXPECT_TRUE(lowering::IsBindFunction(expression.name))
        << aten << ": no function " << expression.name;
  }
  for (const lowering::Expression& operand : expression.operands) CheckFunctions(operand, aten);
}

TEST(LoweringRules, EveryRowNamesOperatorsOfTheTableWithTheRightNumberOfArguments) {
  for (const lowering::CompiledRule& rule : lowering::CompiledRules()) {
    for (const lowering::CallPattern& call : rule.calls) {
      const acl::OperatorInfo* info = acl::FindOperator(call.op);
      ASSERT_NE(info, nullptr) << rule.aten << ": the table has no " << call.op;
      EXPECT_EQ(call.arguments.size(), info->arg_count) << rule.aten << ": " << call.op;
      for (const lowering::Expression& argument : call.arguments)
        CheckFunctions(argument, rule.aten);
    }
  }
}

// True when an argument of this kind takes such a literal.
bool LiteralFits(const lowering::Expression& expression, acl::ArgKind kind) {
  using K = acl::ArgKind;
  switch (expression.kind) {
    case lowering::Expression::Kind::kInt:
      return kind == K::kInt8 || kind == K::kInt32 || kind == K::kInt64 || kind == K::kUint64 ||
             kind == K::kScalar || kind == K::kUint32;
    case lowering::Expression::Kind::kReal:
      return kind == K::kScalar || kind == K::kDouble || kind == K::kFloat;
    case lowering::Expression::Kind::kBool:
      return kind == K::kBool;
    case lowering::Expression::Kind::kText:
      return kind == K::kString;
    case lowering::Expression::Kind::kFunction:
      if (expression.name == "dtype") return kind == K::kDtype;
      if (expression.name == "list" || expression.name == "alldims") return kind == K::kIntArray;
      if (expression.name == "indices") return kind == K::kTensorList;
      if (expression.name == "num" || expression.name == "flat") return kind == K::kTensor;
      return true;
    default:
      return true;
  }
}

TEST(LoweringRules, EveryLiteralFitsTheTypeOfItsArgument) {
  for (const lowering::CompiledRule& rule : lowering::CompiledRules()) {
    for (const lowering::CallPattern& call : rule.calls) {
      const acl::OperatorInfo* info = acl::FindOperator(call.op);
      ASSERT_NE(info, nullptr);
      for (size_t i = 0; i < call.arguments.size(); ++i) {
        EXPECT_TRUE(LiteralFits(call.arguments[i], info->args[i].kind))
            << rule.aten << ": " << call.op << " argument " << info->args[i].name;
      }
    }
  }
}

// Arguments that operators in place write.
bool WrittenInPlace(const std::string& name) {
  static const std::set<std::string> names = {
      "self",        "grads",           "exp_avgs",
      "exp_avg_sqs", "max_exp_avg_sqs", "momentum_buffer_list",
      "found_inf",   "growth_tracker"};
  return names.count(name) != 0;
}

// Each output of an operator must be a result or a written argument of the recorded call.
TEST(LoweringRules, EveryWrittenArgumentIsAResultOrTheWrittenTensor) {
  for (const lowering::CompiledRule& rule : lowering::CompiledRules()) {
    for (const lowering::CallPattern& call : rule.calls) {
      const acl::OperatorInfo* info = acl::FindOperator(call.op);
      ASSERT_NE(info, nullptr);
      for (uint32_t i = 0; i < info->arg_count; ++i) {
        if (info->args[i].direction == acl::Direction::kIn) continue;
        const lowering::Expression* target = &call.arguments[i];
        while (target->kind == lowering::Expression::Kind::kFunction && !target->operands.empty()) {
          target = &target->operands[0];
        }
        if (target->kind == lowering::Expression::Kind::kNone)
          continue;  // an output that is left out
        const std::string& name = target->name;
        const std::string plain(rule.aten.substr(0, rule.aten.find('.')));
        const bool result = name.rfind("out", 0) == 0;
        const bool in_place = plain.back() == '_' && WrittenInPlace(name);
        // Functions that give memory of the rule's own.
        const std::set<std::string_view> memory = {"scratch",  "dropbits", "found",
                                                   "distinct", "counts",   "positions"};
        const bool scratch = memory.contains(call.arguments[i].name);
        const bool statistics = name == "running_mean" || name == "running_var";
        EXPECT_TRUE(result || in_place || statistics || scratch)
            << rule.aten << ": " << call.op << " writes " << name;
      }
    }
  }
}

TEST(Lowering, AFormWithAnOutArgumentIsLoweredLikeTheOneThatReturns) {
  const TemporaryTrace file("lowering-out");
  Tensor out;
  {
    TraceBuilder trace(file.path());
    const Tensor x = trace.NewTensor({2, 3});
    const Tensor y = trace.NewTensor({3, 4});
    out = trace.NewTensor({2, 4});
    trace.Call("aten::mm.out", {In("self", x), In("mat2", y), Written("out", out)});
    trace.Finish();
  }
  const storage::Reader reader(file.path());
  const Program program = LoadProgram(reader);
  const auto lowering = lowering::Lower(program, program.leaves.at(0), nullptr);
  ASSERT_TRUE(lowering.has_value());
  EXPECT_EQ(lowering->invocations.at(0).op, "aclnnMm");
  EXPECT_EQ(lowering->invocations.at(0).arguments.at(2).tensors.at(0).memory.buffer(), out.buffer);
}

TEST(Lowering, AnOperatorOverAListIsACallForEachElement) {
  const TemporaryTrace file("lowering-lists");
  {
    TraceBuilder trace(file.path());
    const Tensor x = trace.NewTensor({2});
    const Tensor y = trace.NewTensor({3});
    Value self = test::List("self", {x, y});
    self.direction = storage::Direction::kInOut;
    Value scalars{"scalars", storage::Direction::kIn, ValueKind::kRealList};
    scalars.reals = {0.5, 2};
    trace.Call("aten::_foreach_mul_.ScalarList", {self, scalars});
    scalars.reals = {0.5};
    trace.Call("aten::_foreach_mul_.ScalarList", {self, scalars});
    trace.Finish();
  }
  const storage::Reader reader(file.path());
  const Program program = LoadProgram(reader);
  const auto lowering = lowering::Lower(program, program.leaves.at(0), nullptr);
  ASSERT_TRUE(lowering.has_value());
  ASSERT_EQ(lowering->invocations.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const lowering::Invocation& call = lowering->invocations[i];
    EXPECT_EQ(call.op, "aclnnInplaceMuls");
    EXPECT_EQ(call.arguments.at(0).tensors.at(0).memory.buffer(), static_cast<int64_t>(i) + 1);
    EXPECT_EQ(call.arguments.at(1).real, i == 0 ? 0.5 : 2.0);
  }
  std::string why;
  EXPECT_FALSE(lowering::Lower(program, program.leaves.at(1), &why).has_value());
  EXPECT_NE(why.find("scalars has too few elements"), std::string::npos) << why;
}

TEST(Pattern, SyntaxErrorsNameThePattern) {
  for (const char* text :
       {"aclnnAdd(self", "aclnnAdd", "aclnnAdd(self,)", "aclnnAdd(self) x", "aclnnAdd('open)"}) {
    try {
      lowering::ParsePattern(text);
      FAIL() << text;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }
}

TEST(Promotion, FollowsPyTorch) {
  EXPECT_EQ(lowering::PromoteTypes(DType::kUint8, DType::kInt8), DType::kInt16);
  EXPECT_EQ(lowering::PromoteTypes(DType::kInt64, DType::kFloat16), DType::kFloat16);
  EXPECT_EQ(lowering::PromoteTypes(DType::kFloat16, DType::kBfloat16), DType::kFloat32);
  EXPECT_EQ(lowering::PromoteTypes(DType::kBool, DType::kUint8), DType::kUint8);
  storage::Layout tensor;
  tensor.dtype = DType::kFloat32;
  tensor.shape = {2};
  storage::Layout number;
  number.dtype = DType::kFloat64;
  EXPECT_EQ(lowering::ResultType(tensor, number), DType::kFloat32);
  tensor.dtype = DType::kInt64;
  EXPECT_EQ(lowering::ResultType(tensor, number), DType::kFloat64);
}

// Lowers the only leaf of a trace.
TEST(Lowering, ErfGeluTakesTheFaithfulOperatorAndSaysWhatADeviceWouldDo) {
  for (const bool tanh : {false, true}) {
    Lowered lowered([&](TraceBuilder& trace) {
      const Tensor x = trace.NewTensor({4});
      trace.Call("aten::gelu", {In("self", x), test::Text("approximate", tanh ? "tanh" : "none")},
                 {Out("out", trace.NewTensor({4}))});
    });
    ASSERT_TRUE(lowered.lowering) << lowered.why;
    EXPECT_EQ(lowered.Ops(), Ops{"aclnnGeluV2"});
    EXPECT_EQ(lowered.lowering->invocations[0].arguments[1].integer, tanh ? 1 : 0);
    EXPECT_EQ(lowered.lowering->note.has_value(), !tanh);
    if (!tanh) {
      EXPECT_EQ(lowered.lowering->note->rule, "LOWER-GELU");
    }
  }
}

TEST(Lowering, FunctionalFormOfAnInPlaceOperatorCopiesFirst) {
  Lowered lowered([](TraceBuilder& trace) {
    const Tensor x = trace.NewTensor({4});
    const Tensor mask = trace.NewTensor({4}, DType::kBool);
    trace.Call("aten::masked_fill.Scalar",
               {In("self", x), In("mask", mask), test::Real("value", -1e4)},
               {Out("out", trace.NewTensor({4}))});
  });
  ASSERT_TRUE(lowered.lowering) << lowered.why;
  EXPECT_EQ(lowered.Ops(), (Ops{"aclnnInplaceCopy", "aclnnInplaceMaskedFillScalar"}));
}

TEST(Lowering, ANumberIsCastWherePlainPromotionWouldComputeInAnotherType) {
  struct Case {
    std::vector<int64_t> shape;
    DType self, other, out;
    bool cast;
  };
  const Case cases[] = {
      {{4}, DType::kFloat32, DType::kFloat64, DType::kFloat32, false},  // tensor wins
      {{}, DType::kFloat32, DType::kFloat64, DType::kFloat32, true},    // both without dimensions
      {{4}, DType::kInt64, DType::kFloat64, DType::kFloat32, true},     // default type
      {{4}, DType::kInt64, DType::kInt64, DType::kFloat32, false},      // true division
      {{4}, DType::kFloat16, DType::kFloat64, DType::kFloat16, false},
  };
  for (const Case& c : cases) {
    Lowered lowered([&](TraceBuilder& trace) {
      trace.Call(
          "aten::div.Tensor",
          {In("self", trace.NewTensor(c.shape, c.self)), In("other", trace.NewTensor({}, c.other))},
          {Out("out", trace.NewTensor(c.shape, c.out))});
    });
    ASSERT_TRUE(lowered.lowering) << lowered.why;
    EXPECT_EQ(lowered.Ops(), c.cast ? (Ops{"aclnnCast", "aclnnDiv"}) : Ops{"aclnnDiv"})
        << DTypeName(c.self) << " / " << DTypeName(c.other);
    EXPECT_EQ(lowered.lowering->temporaries.size(), c.cast ? 1u : 0u);
  }
}

// Attention of two queries over three keys, as libtorch 2.x records it.
void FusedAttention(TraceBuilder& trace, bool causal, bool masked) {
  const auto heads = [&](int64_t length) { return trace.NewTensor({2, 4, length, 8}); };
  trace.Call("aten::_scaled_dot_product_flash_attention_for_cpu",
             {In("query", heads(2)), In("key", heads(3)), In("value", heads(3)),
              test::Real("dropout_p", 0), test::Bool("is_causal", causal),
              masked ? In("attn_mask", trace.NewTensor({2, 1, 2, 3})) : test::None("attn_mask"),
              test::None("scale")},
             {Out("out0", heads(2)), Out("out1", trace.NewTensor({2, 4, 2}))});
}

TEST(Lowering, TheLogarithmOfFusedAttentionIsMadeFromTheOperatorsStatistics) {
  const std::vector<std::tuple<bool, bool, Ops>> cases = {
      {false, false, {"aclnnFlashAttentionScoreV2", "aclnnLog", "aclnnInplaceAdd"}},
      {false,
       true,
       {"aclnnInplaceCopy", "aclnnFlashAttentionScoreV2", "aclnnLog", "aclnnInplaceAdd"}},
      {true,
       false,
       {"aclnnInplaceOne", "aclnnInplaceTriu", "aclnnFlashAttentionScoreV2", "aclnnLog",
        "aclnnInplaceAdd"}},
  };
  for (const auto& [causal, masked, ops] : cases) {
    Lowered lowered([&](TraceBuilder& trace) { FusedAttention(trace, causal, masked); });
    ASSERT_TRUE(lowered.lowering) << lowered.why;
    EXPECT_EQ(lowered.Ops(), ops);
    const std::vector<lowering::Invocation>& calls = lowered.lowering->invocations;
    const std::vector<lowering::LoweredValue>& fused = calls[calls.size() - 3].arguments;
    // The mask is added to the scores of every head; a causal one leaves keys out.
    EXPECT_EQ(fused[3].kind, masked ? ValueKind::kTensor : ValueKind::kNone);
    if (masked) {
      EXPECT_EQ(fused[3].tensors[0].layout.shape, (std::vector<int64_t>{2, 4, 2, 3}));
    }
    EXPECT_EQ(fused[6].kind, causal ? ValueKind::kTensor : ValueKind::kNone);
    EXPECT_DOUBLE_EQ(fused[10].real, 1 / std::sqrt(8.0));
    const lowering::LoweredTensor& maximum = fused[19].tensors[0];
    const lowering::LoweredTensor& sum = fused[20].tensors[0];
    EXPECT_EQ(sum.layout.shape, (std::vector<int64_t>{2, 4, 2, 8}));
    EXPECT_NE(maximum.memory, sum.memory);
    EXPECT_EQ(calls[calls.size() - 2].arguments[0].tensors[0].memory, sum.memory);
    EXPECT_EQ(calls.back().arguments[1].tensors[0].memory, maximum.memory);
  }
}

TEST(Lowering, AGroupedProductGroupsRowsOrTheInnerDimension) {
  for (const bool rows : {true, false}) {
    Lowered lowered([&](TraceBuilder& trace) {
      const Tensor mat2 =
          trace.NewTensor(rows ? std::vector<int64_t>{3, 4, 5} : std::vector<int64_t>{4, 5});
      trace.Call("aten::_grouped_mm",
                 {In("self", trace.NewTensor({6, 4})), In("mat2", mat2),
                  In("offs", trace.NewTensor({3}, DType::kInt32)), test::None("bias"),
                  test::None("out_dtype")},
                 {Out("out", trace.NewTensor(rows ? std::vector<int64_t>{6, 5}
                                                  : std::vector<int64_t>{3, 6, 5}))});
    });
    ASSERT_TRUE(lowered.lowering) << lowered.why;
    EXPECT_EQ(lowered.Ops(), (Ops{"aclnnCast", "aclnnGroupedMatmulV4"}));
    EXPECT_EQ(lowered.lowering->invocations[1].arguments[13].integer, rows ? 0 : 2);
  }
}

TEST(Lowering, MembershipComparesAllPairs) {
  for (const bool invert : {false, true}) {
    Lowered lowered([&](TraceBuilder& trace) {
      trace.Call("aten::isin.Tensor_Tensor",
                 {In("elements", trace.NewTensor({2, 3}, DType::kInt64)),
                  In("test_elements", trace.NewTensor({}, DType::kInt64)),
                  test::Bool("assume_unique", false), test::Bool("invert", invert)},
                 {Out("out", trace.NewTensor({2, 3}, DType::kBool))});
    });
    ASSERT_TRUE(lowered.lowering) << lowered.why;
    Ops ops{"aclnnEqTensor", "aclnnAny"};
    if (invert) ops.push_back("aclnnInplaceLogicalNot");
    EXPECT_EQ(lowered.Ops(), ops);
    const std::vector<lowering::LoweredValue>& any = lowered.lowering->invocations[1].arguments;
    EXPECT_EQ(any[0].tensors[0].layout.shape, (std::vector<int64_t>{2, 3, 1}));
    EXPECT_EQ(any[1].integers, std::vector<int64_t>{2});
  }
}

TEST(Lowering, ASelectionByAMaskLandsInMemoryForAllElementsFirst) {
  Lowered lowered([](TraceBuilder& trace) {
    trace.Call(
        "aten::masked_select",
        {In("self", trace.NewTensor({2, 5})), In("mask", trace.NewTensor({5}, DType::kBool))},
        {Out("out", trace.NewTensor({4}))});
  });
  ASSERT_TRUE(lowered.lowering) << lowered.why;
  EXPECT_EQ(lowered.Ops(), (Ops{"aclnnMaskedSelect", "aclnnInplaceCopy"}));
  const std::vector<lowering::Invocation>& calls = lowered.lowering->invocations;
  EXPECT_EQ(calls[0].arguments[2].tensors[0].layout.shape, std::vector<int64_t>{10});
  EXPECT_EQ(calls[1].arguments[1].tensors[0].layout.shape, std::vector<int64_t>{4});
  EXPECT_EQ(lowered.lowering->temporaries.size(), 1u);
}

TEST(Lowering, AMissingClassWeightBecomesOnesAndAGivenOneStays) {
  for (const bool given : {false, true}) {
    Lowered lowered([&](TraceBuilder& trace) {
      const Tensor weight = trace.NewTensor({10});
      trace.Call(
          "aten::nll_loss_forward",
          {In("self", trace.NewTensor({8, 10})), In("target", trace.NewTensor({8}, DType::kInt64)),
           given ? In("weight", weight) : test::None("weight"), Int("reduction", 1),
           Int("ignore_index", -100)},
          {Out("out0", trace.NewTensor({})), Out("out1", trace.NewTensor({}))});
    });
    ASSERT_TRUE(lowered.lowering) << lowered.why;
    EXPECT_EQ(lowered.Ops(),
              given ? Ops{"aclnnNLLLoss"} : (Ops{"aclnnInplaceOne", "aclnnNLLLoss"}));
    const lowering::LoweredValue& weight = lowered.lowering->invocations.back().arguments[2];
    ASSERT_EQ(weight.kind, ValueKind::kTensor);
    EXPECT_EQ(weight.tensors[0].layout.shape, std::vector<int64_t>{10});
  }
}

TEST(Lowering, ArgmaxOverAllElementsFlattensAStridedTensorThroughACopy) {
  for (const bool strided : {false, true}) {
    Lowered lowered([&](TraceBuilder& trace) {
      const Tensor x = trace.NewTensor({3, 4});
      trace.Call("aten::argmax",
                 {In("self", strided ? trace.View(x, {4, 3}, {1, 4}) : x), test::None("dim"),
                  test::Bool("keepdim", false)},
                 {Out("out", trace.NewTensor({}, DType::kInt64))});
    });
    ASSERT_TRUE(lowered.lowering) << lowered.why;
    EXPECT_EQ(lowered.Ops(),
              strided ? (Ops{"aclnnInplaceCopy", "aclnnArgMax"}) : Ops{"aclnnArgMax"});
    EXPECT_EQ(lowered.lowering->invocations.back().arguments[0].tensors[0].layout.shape,
              std::vector<int64_t>{12});
  }
}

TEST(Lowering, ConversionAndPlainCopyAreToldApart) {
  for (const DType to : {DType::kFloat32, DType::kFloat16}) {
    Lowered lowered([&](TraceBuilder& trace) {
      trace.Call("aten::_to_copy", {In("self", trace.NewTensor({4}))},
                 {Out("out", trace.NewTensor({4}, to))});
    });
    ASSERT_TRUE(lowered.lowering) << lowered.why;
    EXPECT_EQ(lowered.Ops(), to == DType::kFloat32 ? Ops{"aclnnInplaceCopy"} : Ops{"aclnnCast"});
  }
}

using Shape = std::vector<int64_t>;

// Lowers the gradients of a matrix product of these shapes, as the adapter of a device records
// them.
Lowered ProductGradients(const Shape& grad, const Shape& self, const Shape& other,
                         bool of_self = true, bool of_other = true) {
  return Lowered([&](TraceBuilder& trace) {
    const auto result = [&](const char* name, const Shape& shape, bool wanted) {
      Value out = Out(name, trace.NewTensor(shape));
      if (!wanted) out.tensors = {std::nullopt};
      return out;
    };
    trace.Call("aten::matmul_backward",
               {In("grad", trace.NewTensor(grad)), In("self", trace.NewTensor(self)),
                In("other", trace.NewTensor(other))},
               {result("out0", self, of_self), result("out1", other, of_other)});
  });
}

TEST(Lowering, GradientsOfAMatrixProductAreTwoProducts) {
  struct Case {
    Shape grad, self, other;
    Ops ops;
    std::string of_other, of_self;  // factors and result
  };
  const Ops products{"aclnnMatmul", "aclnnMatmul"};
  const Case cases[] = {
      {{3, 5}, {3, 4}, {4, 5}, products, "[4,3] [3,5] [4,5]", "[3,5] [5,4] [3,4]"},
      {{2, 3, 5},
       {2, 3, 4},
       {2, 4, 5},
       products,
       "[2,4,3] [2,3,5] [2,4,5]",
       "[2,3,5] [2,5,4] [2,3,4]"},
      // One matrix for a batch: its gradient sums over the batch.
      {{2, 3, 5}, {2, 3, 4}, {4, 5}, products, "[4,6] [6,5] [4,5]", "[2,3,5] [5,4] [2,3,4]"},
      {{2, 3, 5},
       {3, 4},
       {2, 4, 5},
       {"aclnnMatmul", "aclnnInplaceCopy", "aclnnInplaceCopy", "aclnnMatmul"},
       "[4,3] [2,3,5] [2,4,5]",
       "[3,10] [10,4] [3,4]"},
      // Vectors are matrices with one row or column.
      {{5}, {4}, {4, 5}, products, "[4,1] [1,5] [4,5]", "[1,5] [5,4] [1,4]"},
      {{2, 3}, {2, 3, 4}, {4}, products, "[4,6] [6,1] [4,1]", "[2,3,1] [1,4] [2,3,4]"},
      {{}, {4}, {4}, products, "[4,1] [1,1] [4,1]", "[1,1] [1,4] [1,4]"},
  };
  for (const Case& c : cases) {
    const Lowered lowered = ProductGradients(c.grad, c.self, c.other);
    ASSERT_TRUE(lowered.lowering) << lowered.why;
    EXPECT_EQ(lowered.Ops(), c.ops) << c.of_self;
    EXPECT_EQ(TensorShapes(lowered.lowering->invocations.front()), c.of_other);
    EXPECT_EQ(TensorShapes(lowered.lowering->invocations.back()), c.of_self);
  }
}

TEST(Lowering, AGradientOfAMatrixProductThatNobodyWantsIsNotComputed) {
  for (const bool of_self : {true, false}) {
    const Lowered lowered = ProductGradients({3, 5}, {3, 4}, {4, 5}, of_self, !of_self);
    ASSERT_TRUE(lowered.lowering) << lowered.why;
    ASSERT_EQ(lowered.Ops(), Ops{"aclnnMatmul"});
    EXPECT_EQ(TensorShapes(lowered.lowering->invocations[0]),
              of_self ? "[3,5] [5,4] [3,4]" : "[4,3] [3,5] [4,5]");
  }
}

TEST(Lowering, RepeatedElementsAreToldHowManyTheyBecome) {
  for (const bool along_dim : {true, false}) {
    const Lowered lowered([&](TraceBuilder& trace) {
      trace.Call("aten::repeat_interleave.self_int",
                 {In("self", trace.NewTensor({3, 4})), Int("repeats", 2),
                  along_dim ? Int("dim", -1) : test::None("dim")},
                 {Out("out", trace.NewTensor(along_dim ? Shape{3, 8} : Shape{24}))});
    });
    ASSERT_TRUE(lowered.lowering) << lowered.why;
    EXPECT_EQ(lowered.Ops(),
              Ops{along_dim ? "aclnnRepeatInterleaveIntWithDim" : "aclnnRepeatInterleaveInt"});
    const std::vector<lowering::LoweredValue>& arguments =
        lowered.lowering->invocations[0].arguments;
    EXPECT_EQ(arguments[along_dim ? 3 : 2].integer, along_dim ? 8 : 24);
  }
}

TEST(Lowering, TheGradientOfRepeatedElementsIsTheSumOverTheRepetitions) {
  for (const bool along_dim : {true, false}) {
    const Lowered lowered([&](TraceBuilder& trace) {
      trace.Call("npu::repeat_interleave_backward_int",
                 {In("grad", trace.NewTensor(along_dim ? Shape{6, 4} : Shape{24})),
                  In("input", trace.NewTensor({3, 4})), Int("repeats", 2),
                  along_dim ? Int("dim", 0) : test::None("dim")},
                 {Out("out", trace.NewTensor({3, 4}))});
    });
    ASSERT_TRUE(lowered.lowering) << lowered.why;
    ASSERT_EQ(lowered.Ops(), Ops{"aclnnReduceSum"});
    EXPECT_EQ(TensorShapes(lowered.lowering->invocations[0]),
              along_dim ? "[3,2,4] [3,4]" : "[12,2] [12]");
    EXPECT_EQ(lowered.lowering->invocations[0].arguments[1].integers, Shape{1});
  }
}

TEST(Lowering, TheAdaptersGradientOfGatherAddsToZerosAtTheIndices) {
  const Lowered lowered([](TraceBuilder& trace) {
    trace.Call(
        "npu::npu_gather_backward",
        {In("grad", trace.NewTensor({3, 2})), test::Ints("self_size", {3, 4}), Int("dim", 1),
         In("index", trace.NewTensor({3, 2}, DType::kInt64)), test::Bool("sparse_grad", false)},
        {Out("out", trace.NewTensor({3, 4}))});
  });
  ASSERT_TRUE(lowered.lowering) << lowered.why;
  ASSERT_EQ(lowered.Ops(), (Ops{"aclnnInplaceZero", "aclnnScatterAdd"}));
  EXPECT_EQ(TensorShapes(lowered.lowering->invocations[1]), "[3,4] [3,2] [3,2] [3,4]");
  EXPECT_EQ(lowered.lowering->invocations[1].arguments[1].integer, 1);
}

// Attention as torch_npu records it, with the probability that a weight is kept.
void AdapterAttention(TraceBuilder& trace, double keep) {
  const auto heads = [&](int64_t length) { return trace.NewTensor({2, 4, length, 8}); };
  trace.Call("npu::npu_fusion_attention_v3",
             {In("query", heads(2)), In("key", heads(3)), In("value", heads(3)), Int("head_num", 4),
              test::Text("input_layout", "BNSD"), test::None("pse"), test::None("padding_mask"),
              In("atten_mask", trace.NewTensor({2, 3}, DType::kBool)), test::Real("scale", 0.25),
              test::Real("keep_prob", keep), Int("pre_tockens", 7), Int("next_tockens", 9),
              Int("inner_precise", 2), test::None("prefix"), test::None("actual_seq_qlen"),
              Int("sparse_mode", 1), test::None("sink")},
             {Out("out0", heads(2)), Out("out1", heads(2)), Out("out2", heads(2)),
              Out("out3", trace.NewTensor({0})), Out("out4", trace.NewTensor({1}, DType::kInt64)),
              Out("out5", trace.NewTensor({1}, DType::kInt64))});
}

TEST(Lowering, AttentionOfTheAdapterIsTheOperatorThatItCalls) {
  const Lowered lowered([](TraceBuilder& trace) { AdapterAttention(trace, 1); });
  ASSERT_TRUE(lowered.lowering) << lowered.why;
  ASSERT_EQ(lowered.Ops(), Ops{"aclnnFlashAttentionScore"});
  const std::vector<lowering::LoweredValue>& fused = lowered.lowering->invocations[0].arguments;
  EXPECT_EQ(fused[4].kind, ValueKind::kNone);  // the mask of what is dropped
  EXPECT_EQ(fused[6].tensors.at(0).layout.shape, (Shape{2, 3}));
  EXPECT_EQ(fused[8].real, 0.25);
  EXPECT_EQ(fused[10].integer, 7);
  EXPECT_EQ(fused[11].integer, 9);
  EXPECT_EQ(fused[13].text, "BNSD");
  EXPECT_EQ(fused[14].integer, 2);
  EXPECT_EQ(fused[15].integer, 1);
}

TEST(Lowering, TheGradientOfAttentionDrawsAgainWhatWasDropped) {
  for (const double keep : {1.0, 0.8}) {
    Tensor seed;
    const Lowered lowered([&](TraceBuilder& trace) {
      const auto heads = [&](int64_t length) { return trace.NewTensor({2, 4, length, 8}); };
      seed = trace.NewTensor({1}, DType::kInt64);
      trace.Call(
          "npu::npu_fusion_attention_grad_v3",
          {In("query", heads(2)), In("key", heads(3)), In("value", heads(3)), In("dy", heads(2)),
           Int("head_num", 4), test::Text("input_layout", "BNSD"), In("softmax_max", heads(2)),
           In("softmax_sum", heads(2)), In("attention_in", heads(2)),
           test::Real("scale_value", 0.25), test::Real("keep_prob", keep), Int("pre_tockens", 7),
           Int("next_tockens", 9), Int("inner_precise", 0), In("seed", seed),
           In("offset", trace.NewTensor({1}, DType::kInt64)), Int("sparse_mode", 0)},
          {Out("out0", heads(2)), Out("out1", heads(3)), Out("out2", heads(3))});
    });
    ASSERT_TRUE(lowered.lowering) << lowered.why;
    const std::vector<lowering::Invocation>& calls = lowered.lowering->invocations;
    EXPECT_EQ(calls.back().op, "aclnnFlashAttentionScoreGrad");
    const lowering::LoweredValue& dropped = calls.back().arguments[5];
    EXPECT_EQ(dropped.kind, keep == 1 ? ValueKind::kNone : ValueKind::kTensor);
    EXPECT_EQ(calls.size(), keep == 1 ? 1u : 2u);
    if (keep == 1) continue;
    // A bit for each of 2 * 4 * 2 * 3 scores, from the state that the forward operator gave.
    EXPECT_EQ(calls[0].op, "aclnnDropoutGenMaskV2Tensor");
    EXPECT_EQ(calls[0].arguments[0].integers, Shape{48});
    EXPECT_EQ(calls[0].arguments[1].real, 1.0f - 0.8f);
    EXPECT_EQ(calls[0].arguments[2].tensors.at(0).memory.buffer(), seed.buffer);
    EXPECT_EQ(dropped.tensors.at(0).memory, calls[0].arguments[6].tensors.at(0).memory);
    EXPECT_EQ(dropped.tensors.at(0).layout.shape, Shape{16});
  }
}

// A fused step over two parameters.
Lowered FusedStep(const std::string& op, double decay, DType dtype = DType::kFloat32) {
  return Lowered([&](TraceBuilder& trace) {
    const auto list = [&](const char* name, bool written, const Shape& shape) {
      Value value =
          test::List(name, {trace.NewTensor(shape, dtype), trace.NewTensor(shape, dtype)});
      if (written) value.direction = storage::Direction::kInOut;
      return value;
    };
    trace.Call(op, {list("self", true, {3}),
                    list("grads", true, {3}),
                    list("exp_avgs", true, {3}),
                    list("exp_avg_sqs", true, {3}),
                    test::List("max_exp_avg_sqs", {}),
                    list("state_steps", false, {}),
                    list("momentum_buffer_list", true, {3}),
                    test::Real("lr", 0.5),
                    test::Real("beta1", 0.9),
                    test::Real("beta2", 0.99),
                    test::Real("weight_decay", decay),
                    test::Real("eps", 1e-8),
                    test::Real("momentum", 0.9),
                    test::Real("dampening", 0),
                    test::Bool("amsgrad", false),
                    test::Bool("maximize", false),
                    test::Bool("nesterov", false),
                    test::Bool("is_first_step", false),
                    test::None("grad_scale"),
                    test::None("found_inf")});
  });
}

TEST(Lowering, AFusedStepOnTheCpuIsTheFusedOperator) {
  const Lowered adamw = FusedStep("aten::_fused_adamw_", 0.1);
  ASSERT_TRUE(adamw.lowering) << adamw.why;
  EXPECT_EQ(adamw.Ops(), Ops{"aclnnFusedAdamw"});
  EXPECT_EQ(adamw.lowering->invocations[0].arguments[0].tensors.size(), 2u);
  EXPECT_EQ(adamw.lowering->invocations[0].arguments[11].real, 0.1);
  const Lowered sgd = FusedStep("aten::_fused_sgd_", 0.1);
  ASSERT_TRUE(sgd.lowering) << sgd.why;
  EXPECT_EQ(sgd.Ops(), Ops{"aclnnFusedSgd"});
}

TEST(Lowering, TheFusedOperatorOfSgdTakesItsNumbersAsFloat32) {
  EXPECT_FALSE(FusedStep("aten::_fused_sgd_", 0.1, DType::kFloat64).lowering);
}

TEST(Lowering, PlainAdamAddsItsDecayToTheGradient) {
  const Lowered plain = FusedStep("aten::_fused_adam_", 0);
  ASSERT_TRUE(plain.lowering) << plain.why;
  EXPECT_EQ(plain.Ops(), Ops{"aclnnFusedAdamw"});
  const Lowered decayed = FusedStep("aten::_fused_adam_", 0.1);
  ASSERT_TRUE(decayed.lowering) << decayed.why;
  EXPECT_EQ(decayed.Ops(), (Ops{"aclnnAdd", "aclnnFusedAdamw", "aclnnAdd", "aclnnFusedAdamw"}));
  const std::vector<lowering::Invocation>& calls = decayed.lowering->invocations;
  for (const size_t step : {1, 3}) {
    EXPECT_EQ(calls[step].arguments[1].tensors.at(0).memory,
              calls[step - 1].arguments[3].tensors.at(0).memory);
    EXPECT_EQ(calls[step].arguments[11].real, 0);
  }
  EXPECT_EQ(decayed.lowering->temporaries.size(), 2u);
}

TEST(Lowering, AnOperatorWithoutARuleIsNamed) {
  Lowered lowered([](TraceBuilder& trace) {
    trace.Call("aten::fft_r2c", {In("self", trace.NewTensor({4}))},
               {Out("out", trace.NewTensor({4}))});
  });
  EXPECT_FALSE(lowered.lowering);
  EXPECT_NE(lowered.why.find("aten::fft_r2c"), std::string::npos) << lowered.why;
}

}  // namespace
}  // namespace acltape::analyzer
