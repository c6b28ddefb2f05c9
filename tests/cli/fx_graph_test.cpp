#include "cli/fx_graph.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "cli/selection.h"
#include "meaning/recorded_values.h"
#include "storage/writer.h"

namespace acltape::cli {
namespace {

using storage::Direction;
using storage::SignatureArgument;
using storage::TensorRef;
using storage::ValueKind;

storage::Writer::Options Overwriting() {
  storage::Writer::Options options;
  options.overwrite = true;
  return options;
}

// Writes a small trace call by call, as the collector would.
class TraceScript {
 public:
  TraceScript()
      : path_(std::filesystem::temp_directory_path() /
              ("acltape_fx_" + std::to_string(getpid()) + ".db")),
        writer_(std::make_unique<storage::Writer>(path_, Overwriting())) {}
  ~TraceScript() {
    writer_.reset();
    std::filesystem::remove(path_);
  }

  int64_t LayoutOf(std::vector<int64_t> shape, uint32_t flags = 0) {
    storage::Layout layout;
    layout.dtype = storage::DType::kFloat32;
    layout.shape = std::move(shape);
    int64_t stride = 1;
    layout.strides.assign(layout.shape.size(), 1);
    for (size_t i = layout.shape.size(); i-- > 0; stride *= layout.shape[i]) {
      layout.strides[i] = stride;
    }
    layout.flags = flags;
    return writer_->InternLayout(layout);
  }

  // `buffers` are those of the tensor arguments in their order of appearance.
  void Call(const char* name, const char* overload, const char* schema,
            std::vector<SignatureArgument> arguments, std::vector<int64_t> buffers) {
    const int64_t op = writer_->InternOp({0, "aten", name, overload, schema});
    for (size_t i = 0; i < arguments.size(); ++i) arguments[i].position = static_cast<int>(i);
    storage::Call call;
    call.call_id = ++calls_;
    call.op_id = op;
    call.signature_id = writer_->AddSignature(op, arguments);
    call.leaf = true;
    call.buffers = std::move(buffers);
    writer_->AddCall(call, 0);
  }

  void AddStep(int64_t number, int64_t first, int64_t last) {
    writer_->AddStep({number, first, last, "range:step"});
  }

  const std::filesystem::path& Close() {
    writer_->Finish("complete");
    return path_;
  }

 private:
  std::filesystem::path path_;
  std::unique_ptr<storage::Writer> writer_;
  int64_t calls_ = 0;
};

SignatureArgument Tensor(const char* name, int32_t slot, int64_t layout,
                         Direction direction = Direction::kIn) {
  SignatureArgument argument;
  argument.name = name;
  argument.kind = ValueKind::kTensor;
  argument.direction = direction;
  argument.tensors = {SlotRef{slot, layout}};
  return argument;
}

SignatureArgument Integer(const char* name, int64_t value) {
  SignatureArgument argument;
  argument.name = name;
  argument.kind = ValueKind::kInt;
  argument.integer = value;
  return argument;
}

constexpr char kAddSchema[] =
    "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
constexpr char kMmSchema[] = "aten::mm(Tensor self, Tensor mat2) -> Tensor";
constexpr char kAddInPlaceSchema[] =
    "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)";

std::vector<FxNode> GraphOf(const std::filesystem::path& path, const std::string& selection) {
  const storage::Reader reader(path);
  return BuildFxGraph(reader, SelectLeaves(reader, Selection::Parse(selection)));
}

std::string Line(const FxNode& node) {
  return node.opcode + " " + node.name + " " + node.target + " (" + node.args + ") {" +
         node.kwargs + "}";
}

class FxGraph : public testing::Test {
 protected:
  // mm(input, weight); add(mm, mm); add_(add, input): buffers 10, 11 (a parameter), 12, 13.
  void SetUp() override {
    const int64_t plain = script_.LayoutOf({2, 2});
    const int64_t parameter = script_.LayoutOf({2, 2}, meaning::kTensorParameter);
    script_.Call("aten::mm", "", kMmSchema,
                 {Tensor("self", 0, plain), Tensor("mat2", 1, parameter),
                  Tensor("out", 2, plain, Direction::kOut)},
                 {10, 11, 12});
    script_.Call("aten::add", "Tensor", kAddSchema,
                 {Tensor("self", 0, plain), Tensor("other", 0, plain), Integer("alpha", 2),
                  Tensor("out", 1, plain, Direction::kOut)},
                 {12, 13});
    script_.Call("aten::add_", "Tensor", kAddInPlaceSchema,
                 {Tensor("self", 0, plain, Direction::kInOut), Tensor("other", 1, plain),
                  Integer("alpha", 1)},
                 {13, 10});
    script_.AddStep(0, 1, 1);
    script_.AddStep(1, 2, 3);
    path_ = script_.Close();
  }

  TraceScript script_;
  std::filesystem::path path_;
};

TEST_F(FxGraph, NamesProducersAndSplitsKeywordArguments) {
  const auto nodes = GraphOf(path_, "");
  ASSERT_EQ(nodes.size(), 6u);
  EXPECT_EQ(Line(nodes[0]), "placeholder input_1 buffer:10 () {}");
  EXPECT_EQ(Line(nodes[1]), "get_attr param_1 buffer:11 () {}");
  EXPECT_EQ(Line(nodes[2]), "call_function mm aten::mm (input_1, param_1) {}");
  EXPECT_EQ(Line(nodes[3]), "call_function add aten::add.Tensor (mm, mm) {alpha=2}");
  EXPECT_EQ(Line(nodes[4]), "call_function add_ aten::add_.Tensor (add, input_1) {alpha=1}");
  EXPECT_EQ(Line(nodes[5]), "output output output (add_) {}");
  EXPECT_EQ(nodes[2].result, "float32[2, 2]");
  EXPECT_EQ(nodes[2].call_id, 1);
}

TEST_F(FxGraph, WhatNoPickedLeafProducedBecomesAPlaceholder) {
  const auto nodes = GraphOf(path_, "step:1/op:aten::add_");
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_EQ(Line(nodes[0]), "placeholder input_1 buffer:13 () {}");
  EXPECT_EQ(Line(nodes[1]), "placeholder input_2 buffer:10 () {}");
  EXPECT_EQ(Line(nodes[2]), "call_function add_ aten::add_.Tensor (input_1, input_2) {alpha=1}");
}

TEST_F(FxGraph, SelectionPicksByStepOpAndNumber) {
  const storage::Reader reader(path_);
  const auto count = [&](const char* text) {
    return SelectLeaves(reader, Selection::Parse(text)).size();
  };
  EXPECT_EQ(count("step:0"), 1u);
  EXPECT_EQ(count("step:1"), 2u);
  EXPECT_EQ(count("step:0-1/op:aten::add*"), 2u);
  EXPECT_EQ(count("2-"), 2u);
  EXPECT_EQ(count("stream:0"), 0u);
}

TEST(FxGraphNames, RepeatedOpsAreNumbered) {
  TraceScript script;
  const int64_t plain = script.LayoutOf({1});
  for (int i = 0; i < 3; ++i) {
    script.Call("aten::add", "Tensor", kAddSchema,
                {Tensor("self", 0, plain), Tensor("other", 0, plain), Integer("alpha", 1),
                 Tensor("out", 1, plain, Direction::kOut)},
                {int64_t{20} + i, int64_t{21} + i});
  }
  const auto nodes = GraphOf(script.Close(), "");
  ASSERT_EQ(nodes.size(), 5u);
  EXPECT_EQ(nodes[1].name, "add");
  EXPECT_EQ(Line(nodes[3]), "call_function add_2 aten::add.Tensor (add_1, add_1) {alpha=1}");
  EXPECT_EQ(nodes[4].args, "add_2");
}

TEST(SelectLeaves, AskingForStepsThatTheTraceLacksIsAUsageError) {
  TraceScript script;
  const int64_t plain = script.LayoutOf({1});
  script.Call("aten::relu", "", "aten::relu(Tensor self) -> Tensor",
              {Tensor("self", 0, plain), Tensor("out", 1, plain, Direction::kOut)}, {1, 2});
  const storage::Reader reader(script.Close());
  try {
    SelectLeaves(reader, Selection::Parse("step:0"));
    FAIL() << "steps were found in a trace without steps";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace acltape::cli
