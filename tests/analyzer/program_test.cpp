#include "analyzer/program/program.h"

#include <gtest/gtest.h>

#include "tests/analyzer/trace_builder.h"

namespace acltape::analyzer {
namespace {

using test::In;
using test::Int;
using test::Ints;
using test::Out;
using test::Real;
using test::TemporaryTrace;
using test::Tensor;
using test::TraceBuilder;
using test::Written;

TEST(Program, EachLeafHasTheKindThatItsArgumentsShow) {
  TemporaryTrace file("kinds");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({2, 3});
  const Tensor y = trace.NewTensor({3, 2});
  const Tensor s = trace.NewTensor({});
  trace.Call("aten::empty.memory_format", {Ints("size", {2, 3})}, {Out("out", x)});
  trace.Call("aten::normal_", {Written("self", x), Real("mean", 0), Real("std", 1)});
  trace.Call("aten::t", {In("self", x)}, {Out("out", trace.View(x, {3, 2}, {1, 3}))});
  trace.Call("aten::clone", {In("self", trace.View(x, {3, 2}, {1, 3}))}, {Out("out", y)});
  trace.Call("aten::max", {In("self", y)}, {Out("out", s)});
  trace.Call("aten::_local_scalar_dense", {In("self", s)},
             {Real("out", 1.5, storage::Direction::kOut)});
  trace.Call("aten::relu_", {Written("self", y)});
  trace.Finish();

  const storage::Reader reader(file.path());
  const Program program = LoadProgram(reader);
  std::vector<std::string> kinds;
  for (const Leaf& leaf : program.leaves) kinds.emplace_back(LeafKindName(leaf.kind));
  EXPECT_EQ(kinds, (std::vector<std::string>{"allocation", "source", "view", "kernel", "kernel",
                                             "host read", "kernel"}));
}

TEST(Program, ViewsTouchNoBytesAndInPlaceOperatorsReadAndWrite) {
  TemporaryTrace file("uses");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({4});
  const Tensor half = trace.View(x, {2}, {1}, 2);
  trace.Call("aten::slice.Tensor", {In("self", x)}, {Out("out", half)});
  trace.Call("aten::add_.Scalar", {Written("self", half), Real("other", 1), Int("alpha", 1)});
  trace.Finish();

  const storage::Reader reader(file.path());
  const Program program = LoadProgram(reader);
  const BufferUse& use = program.buffers.at(x.buffer);
  ASSERT_EQ(use.accesses.size(), 2u);
  EXPECT_FALSE(use.accesses[0].write);
  EXPECT_TRUE(use.accesses[1].write);
  EXPECT_EQ(use.accesses[1].leaf, 1);
  EXPECT_EQ(use.accesses[1].first_byte, 8);
  EXPECT_EQ(use.accesses[1].end_byte, 16);
  EXPECT_EQ(use.first_leaf, 0);
}

TEST(Program, AnOutArgumentThatIsAnInputTooIsWrittenAndAReturnThatIsOneIsAView) {
  storage::Op op;
  op.dialect = "aten";
  op.name = "aten::add";
  std::vector<storage::Argument> arguments(2);
  arguments[0].name = "self";
  arguments[1].name = "out";
  arguments[1].direction = storage::Direction::kOut;
  for (storage::Argument& argument : arguments) {
    argument.kind = storage::ValueKind::kTensor;
    argument.tensors = {{1, 1}};  // one buffer for both: torch.add(x, 1, out=x)
  }
  op.schema = "aten::add.out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)";
  EXPECT_EQ(KindOfLeaf(op, 0, arguments), LeafKind::kKernel);
  EXPECT_EQ(UsesOfLeaf(op, LeafKind::kKernel, arguments).size(), 2u);

  op.schema = "aten::detach(Tensor(a) self) -> Tensor(a)";
  EXPECT_EQ(KindOfLeaf(op, 0, arguments), LeafKind::kView);
}

// A tensor on a device that is made like one on the host is no copy of it.
TEST(Program, WhatIsMadeLikeATensorDoesNotReadIt) {
  storage::Op op;
  op.dialect = "aten";
  std::vector<storage::Argument> arguments(2);
  arguments[0].name = "self";
  arguments[1].direction = storage::Direction::kOut;
  arguments[0].kind = arguments[1].kind = storage::ValueKind::kTensor;
  arguments[0].tensors = {{1, 1}};
  arguments[1].tensors = {{2, 1}};
  for (const char* name : {"aten::zeros_like", "aten::full_like", "aten::new_ones"}) {
    op.name = name;
    const std::vector<ArgumentUse> uses = UsesOfLeaf(op, LeafKind::kKernel, arguments);
    ASSERT_EQ(uses.size(), 1u) << name;
    EXPECT_TRUE(uses[0].write && uses[0].argument == 1) << name;
  }
  op.name = "aten::relu";
  EXPECT_EQ(UsesOfLeaf(op, LeafKind::kKernel, arguments).size(), 2u);
}

storage::Op OperatorOf(const std::string& name, const std::string& schema) {
  storage::Op op;
  op.dialect = "aten";
  op.name = name;
  op.schema = schema;
  return op;
}

TEST(Program, ACollectiveReadsAndWritesAllThatItIsGivenThoughItsSchemaDoesNotSaySo) {
  std::vector<storage::Argument> arguments(2);
  arguments[0].kind = storage::ValueKind::kTensorList;
  arguments[0].tensors = {{1, 1}, {2, 1}};
  arguments[1].kind = storage::ValueKind::kTensorList;
  arguments[1].direction = storage::Direction::kOut;
  arguments[1].tensors = {{1, 1}, {2, 1}};
  const storage::Op op =
      OperatorOf("c10d::allreduce_", "c10d::allreduce_(Tensor[] tensors) -> Tensor[]");
  ASSERT_EQ(KindOfLeaf(op, 0, arguments), LeafKind::kExchange);
  int reads = 0, writes = 0;
  for (const ArgumentUse& use : UsesOfLeaf(op, LeafKind::kExchange, arguments)) {
    (use.write ? writes : reads) += 1;
  }
  EXPECT_EQ(reads, 2);
  EXPECT_EQ(writes, 4);
}

TEST(Program, AnOperatorOfAnExtensionIsBelievedOnlyWhereItsSchemaSaysWhatItDoes) {
  std::vector<storage::Argument> arguments(1);
  arguments[0].kind = storage::ValueKind::kTensor;
  arguments[0].tensors = {{1, 1}};
  EXPECT_EQ(KindOfLeaf(OperatorOf("wild::note", "wild::note(Tensor x) -> ()"), 0, arguments),
            LeafKind::kExchange);
  arguments.push_back(arguments[0]);
  arguments[1].direction = storage::Direction::kOut;
  const auto kind = [&](const char* schema) {
    return KindOfLeaf(OperatorOf("wild::op", schema), 0, arguments);
  };
  EXPECT_EQ(kind("wild::op(Tensor x) -> Tensor"), LeafKind::kExchange);
  EXPECT_EQ(kind("wild::op(Tensor(a) x) -> Tensor(a)"), LeafKind::kView);
  arguments[1].tensors = {{2, 1}};  // memory of its own
  EXPECT_EQ(kind("wild::op(Tensor x) -> Tensor"), LeafKind::kKernel);
}

TEST(Program, TrainingBatchNormWritesItsRunningStatisticsThoughItsSchemaDoesNotSaySo) {
  TemporaryTrace file("batchnorm");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({2, 3, 4, 4});
  const Tensor mean = trace.NewTensor({3});
  const Tensor out = trace.NewTensor({2, 3, 4, 4});
  constexpr const char* kNorms[] = {"aten::native_batch_norm", "aten::cudnn_batch_norm",
                                    "aten::miopen_batch_norm"};
  for (const char* norm : kNorms) {
    for (const bool training : {false, true}) {
      trace.Call(norm, {In("input", x), In("running_mean", mean), test::Bool("training", training)},
                 {Out("out0", out)});
    }
  }
  trace.Finish();
  const storage::Reader reader(file.path());
  const Program program = LoadProgram(reader);
  for (size_t norm = 0; norm < std::size(kNorms); ++norm) {
    EXPECT_EQ(program.uses[2 * norm].writes.size(), 1u) << kNorms[norm];
    EXPECT_EQ(program.uses[2 * norm + 1].writes.size(), 2u) << kNorms[norm];
  }
}

TEST(Program, AttentionUnderItsOlderNameIsASourceWhereItDropsSome) {
  TemporaryTrace file("older_attention");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({2, 4, 3, 8});
  for (const double keep : {1.0, 0.9}) {
    trace.Call("npu::npu_fusion_attention", {In("query", x), test::Real("keep_prob", keep)},
               {Out("out0", trace.NewTensor({2, 4, 3, 8}))});
  }
  trace.Finish();
  const storage::Reader reader(file.path());
  const Program program = LoadProgram(reader);
  EXPECT_EQ(program.leaves[0].kind, LeafKind::kKernel);
  EXPECT_EQ(program.leaves[1].kind, LeafKind::kSource);
}

TEST(Program, AttentionUsesTheStateOfRandomNumbersOnlyWhereItDropsSome) {
  TemporaryTrace file("attention");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({2, 4, 3, 8});
  const Tensor seed = trace.NewTensor({1}, storage::DType::kInt64);
  for (const double keep : {1.0, 0.9}) {
    trace.Call("npu::npu_fusion_attention_v3", {In("query", x), test::Real("keep_prob", keep)},
               {Out("out0", trace.NewTensor({2, 4, 3, 8})), Out("out4", seed)});
    trace.Call("npu::npu_fusion_attention_grad_v3",
               {In("query", x), test::Real("keep_prob", keep), In("seed", seed)},
               {Out("out0", trace.NewTensor({2, 4, 3, 8}))});
  }
  trace.Finish();
  const storage::Reader reader(file.path());
  const Program program = LoadProgram(reader);
  EXPECT_EQ(program.leaves[0].kind, LeafKind::kKernel);
  EXPECT_EQ(program.uses[0].writes.size(), 1u);
  EXPECT_EQ(program.uses[1].reads.size(), 1u);
  EXPECT_EQ(program.leaves[2].kind, LeafKind::kSource);
  EXPECT_EQ(program.uses[2].writes.size(), 2u);
  EXPECT_EQ(program.uses[3].reads.size(), 2u);
}

TEST(Program, ResultsThatTheAdapterWasNotAskedForAreNotWritten) {
  TemporaryTrace file("not_asked");
  TraceBuilder trace(file.path());
  const Tensor kv = trace.NewTensor({2, 1, 3, 8});
  for (const bool asked : {false, true}) {
    trace.Call("npu::npu_kv_rmsnorm_rope_cache_v2",
               {In("kv", kv), test::Bool("is_output_kv", asked)},
               {Out("out0", trace.NewTensor({2, 1, 3, 4})), Out("out1", trace.NewTensor({2}))});
  }
  trace.Finish();
  const storage::Reader reader(file.path());
  const Program program = LoadProgram(reader);
  EXPECT_EQ(program.uses[0].writes.size(), 0u);
  EXPECT_EQ(program.uses[1].writes.size(), 2u);
}

TEST(Program, AnOperatorThatMarksAllItsTensorsWritesTheOneOfTheTable) {
  TemporaryTrace file("marks_all");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({4}), y = trace.NewTensor({4});
  trace.Call("_C_ascend::sgmv_expand", {Written("x", x), Written("y", y)}, {});
  trace.Finish();
  const storage::Reader reader(file.path());
  const Program program = LoadProgram(reader);
  ASSERT_EQ(program.uses[0].writes.size(), 1u);
  EXPECT_EQ(program.uses[0].writes[0].tensor.buffer_id, y.buffer);
}

TEST(Program, RecordedResultsAreFoundByPositionAndTensor) {
  TemporaryTrace file("results");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({2});
  const Tensor y = trace.NewTensor({2});
  trace.Call("aten::relu", {In("self", x)}, {Out("out", y)})
      .Before(x, std::vector<float>{-1, 2})
      .After("out", std::vector<float>{0, 2});
  trace.Finish();
  const storage::Reader reader(file.path());
  const Program program = LoadProgram(reader);
  const Leaf& leaf = program.leaves[0];
  ASSERT_EQ(leaf.before.size(), 1u);
  EXPECT_EQ(leaf.before[0].tensor.buffer_id, x.buffer);
  const storage::Snapshot* result = RecordedResult(leaf, program.uses[0].writes[0]);
  ASSERT_NE(result, nullptr);
  EXPECT_TRUE(result->has_payload);
  EXPECT_EQ(result->bytes, 8);
}

TEST(Program, ATraceWithoutOperatorCallsIsRefused) {
  TemporaryTrace file("empty");
  TraceBuilder trace(file.path());
  trace.Finish();
  const storage::Reader reader(file.path());
  try {
    LoadProgram(reader);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kTrace);
    EXPECT_NE(std::string(error.what()).find(file.path()), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace acltape::analyzer
