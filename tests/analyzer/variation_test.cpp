#include "analyzer/graph/variation.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "analyzer/steps/steps.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the words of the trace builder

// A trace whose steps are marked, as a user range would.
class SteppedTrace {
 public:
  explicit SteppedTrace(const std::string& name) : file_(name), trace_(file_.path()) {}

  TraceBuilder& trace() { return trace_; }
  void BeginStep() { first_ = trace_.last_call() + 1; }
  void EndStep() { trace_.writer().AddStep({steps_++, first_, trace_.last_call(), "range:step"}); }
  // Finishes the trace.
  const Work& Load() {
    trace_.Finish();
    reader_.emplace(file_.path());
    work_ = LoadWork(*reader_);
    return work_;
  }

 private:
  TemporaryTrace file_;
  TraceBuilder trace_;
  int64_t first_ = 0;
  int64_t steps_ = 0;
  std::optional<storage::Reader> reader_;
  Work work_;
};

TEST(Variation, StepsOfEqualOperatorsAreAFamilyAndAnotherSaysWhereItParts) {
  SteppedTrace stepped("families");
  TraceBuilder& trace = stepped.trace();
  const Tensor x = trace.NewTensor({4});
  const Tensor y = trace.NewTensor({4});
  for (const char* last : {"aten::relu", "aten::relu", "aten::tanh", "aten::relu"}) {
    stepped.BeginStep();
    trace.Call("aten::abs", {In("self", x)}, {Out("out", y)});
    trace.Call("aten::view", {In("self", y)}, {Out("out", y)});  // a view is no place
    trace.Call(last, {In("self", x)}, {Out("out", y)});
    stepped.EndStep();
  }
  const Work& work = stepped.Load();
  const std::vector<graph::StepFamily> families = graph::FindFamilies(work);

  ASSERT_EQ(families.size(), 2u);
  EXPECT_EQ(families[0].steps, (std::vector<size_t>{0, 1, 3}));
  EXPECT_EQ(families[0].places, 2u);
  EXPECT_EQ(work.Describe(families[0].Call(2, 1)), "call 12 aten::relu");
  EXPECT_EQ(families[0].before, -1);
  EXPECT_EQ(families[1].steps, (std::vector<size_t>{2}));
  EXPECT_EQ(work.Describe(static_cast<size_t>(families[1].before)), "call 6 aten::relu");
  EXPECT_EQ(work.Describe(static_cast<size_t>(families[1].here)), "call 9 aten::tanh");
}

TEST(Variation, AScalarThatChangesIsListedWithItsValuesAndAConstantOneIsNot) {
  SteppedTrace stepped("scalar");
  TraceBuilder& trace = stepped.trace();
  const Tensor x = trace.NewTensor({4});
  for (const double rate : {0.1, 0.1, 0.05, 0.1}) {
    stepped.BeginStep();
    trace.Call("aten::add_.Scalar", {Written("self", x), Int("other", 1), Real("alpha", -rate)});
    stepped.EndStep();
  }
  const Work& work = stepped.Load();
  const graph::Variation variation = graph::FindVariation(work, graph::FindFamilies(work).at(0));

  EXPECT_EQ(variation.host_arguments, 2u);
  ASSERT_EQ(variation.arguments.size(), 1u);
  const graph::ArgumentVariation& row = variation.arguments[0];
  EXPECT_EQ(row.name, "alpha");
  EXPECT_EQ(row.kind, graph::VariationKind::kVarying);
  EXPECT_EQ(row.values, 2u);
  EXPECT_EQ(row.first_value, "-0.1");
  EXPECT_EQ(row.second_value, "-0.05");
  EXPECT_EQ(work.calls[row.first_call].call_id, 1);
  EXPECT_EQ(work.calls[row.second_call].call_id, 3);
}

// Steps in which `read[i]` comes to the host and `used[i]` is an argument, before or after it.
graph::VariationKind KindOfUse(const std::vector<double>& read, const std::vector<double>& used,
                               bool read_first) {
  SteppedTrace stepped("derived");
  TraceBuilder& trace = stepped.trace();
  const Tensor x = trace.NewTensor({});
  const Tensor y = trace.NewTensor({4});
  for (size_t i = 0; i < read.size(); ++i) {
    stepped.BeginStep();
    const auto item = [&] {
      trace.Call("aten::_local_scalar_dense", {In("self", x)},
                 {Real("out", read[i], storage::Direction::kOut)});
    };
    if (read_first) item();
    trace.Call("aten::mul_.Scalar", {Written("self", y), Real("other", used[i])});
    if (!read_first) item();
    stepped.EndStep();
  }
  const Work& work = stepped.Load();
  const graph::Variation variation = graph::FindVariation(work, graph::FindFamilies(work).at(0));
  EXPECT_EQ(variation.arguments.size(), 1u);
  if (variation.arguments.empty()) return graph::VariationKind::kLayout;
  const graph::ArgumentVariation& row = variation.arguments[0];
  if (row.kind == graph::VariationKind::kDerived) {
    EXPECT_EQ(row.read_place, 0);
  }
  if (row.kind == graph::VariationKind::kCarried) {
    EXPECT_EQ(row.read_place, read_first ? 0 : 1);
  }
  if (row.kind == graph::VariationKind::kVarying) {
    EXPECT_EQ(row.read_place, -1);
  }
  return row.kind;
}

TEST(Variation, AnArgumentThatEqualsAnEarlierHostReadInEveryStepIsDerived) {
  EXPECT_EQ(KindOfUse({1, 2, 3}, {1, 2, 3}, true), graph::VariationKind::kDerived);
}
TEST(Variation, AnArgumentThatEqualsAHostReadInSomeStepsOnlyIsVarying) {
  EXPECT_EQ(KindOfUse({1, 2, 3}, {1, 2, 4}, true), graph::VariationKind::kVarying);
}
TEST(Variation, AnArgumentThatIsReadOnlyLaterIsVarying) {
  EXPECT_EQ(KindOfUse({1, 2, 3}, {1, 2, 3}, false), graph::VariationKind::kVarying);
}

TEST(Variation, AnArgumentThatEqualsAHostReadOfTheStepBeforeIsCarried) {
  EXPECT_EQ(KindOfUse({1, 2, 3, 4}, {7, 1, 2, 3}, false), graph::VariationKind::kCarried);
}
TEST(Variation, AnArgumentThatIsConstantAfterTheFirstStepIsNotCarriedFromAConstantRead) {
  EXPECT_EQ(KindOfUse({1, 1, 1, 1}, {7, 1, 1, 1}, false), graph::VariationKind::kVarying);
}

TEST(Variation, InputsAreStableMovingOrAtAReusedAddress) {
  SteppedTrace stepped("inputs");
  TraceBuilder& trace = stepped.trace();
  const Tensor weight = trace.NewTensor({4, 4});
  const Tensor state = trace.NewTensor({4});
  trace.Call("aten::zero_", {Out("self", state)});
  for (int step = 0; step < 3; ++step) {
    stepped.BeginStep();
    const Tensor batch = trace.NewTensor({2, 4});  // elsewhere in each step
    const Tensor reused = trace.NewTensor({2});
    trace.writer().AddBuffer({reused.buffer, 0x70000, 8, 0, 0, false});
    const Tensor result = trace.NewTensor({2, 4});
    const Tensor empty = trace.NewTensor({0, 4});
    trace.Call("aten::addmm",
               {In("self", reused), In("mat1", batch), In("mat2", weight), In("none", empty)},
               {Out("out", result)});
    trace.Call("aten::relu_", {Written("self", result)});
    trace.Call("aten::add_.Tensor", {Written("self", state), In("other", result)});
    stepped.EndStep();
  }
  const Work& work = stepped.Load();
  const graph::Variation variation = graph::FindVariation(work, graph::FindFamilies(work).at(0));

  std::vector<std::string> seen;
  for (const graph::StepInput& input : variation.inputs) {
    seen.push_back(input.name + " " + std::to_string(input.bytes) +
                   (input.written ? " written" : "") + (input.moves ? " moves" : "") +
                   (input.moves_by_address ? " by address" : "") + " " +
                   std::to_string(input.buffers));
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"self 8 moves 3", "mat1 32 moves by address 3",
                                            "mat2 64 1", "self 16 written 1"}));
  EXPECT_EQ(work.calls[variation.inputs[1].moved_call].call_id, 5);
}

// The symbols of a cache of lengths `lengths` that one row is appended to.
graph::Variation GrowingCache(SteppedTrace& stepped, const std::vector<int64_t>& lengths) {
  TraceBuilder& trace = stepped.trace();
  for (const int64_t length : lengths) {
    stepped.BeginStep();
    const Tensor cache = trace.NewTensor({1, length, 8});
    const Tensor row = trace.NewTensor({1, 1, 8});
    const Tensor longer = trace.NewTensor({1, length + 1, 8});
    const Tensor wide = trace.NewTensor({4 * length, 2});
    trace.Call("aten::cat", {List("tensors", {cache, row}), Int("dim", 1)}, {Out("out", longer)});
    trace.Call("aten::abs", {In("self", longer)}, {Out("out", trace.NewTensor({1}))});
    trace.Call("aten::expand_copy",
               {In("self", wide), Ints("size", {4 * length, 2}), Int("limit", length * length)},
               {Out("out", trace.NewTensor({1}))});
    stepped.EndStep();
  }
  const Work& work = stepped.Load();
  return graph::FindVariation(work, graph::FindFamilies(work).at(0));
}

std::vector<std::string> Texts(const graph::Variation& variation) {
  std::vector<std::string> texts;
  for (const graph::DimensionVariation& row : variation.dimensions) {
    texts.push_back(row.name + "[" + std::to_string(row.element) + "]." +
                    std::to_string(row.dimension) + " = " +
                    graph::SymbolText(row.symbol, row.factor, row.offset));
  }
  for (const graph::ArgumentVariation& row : variation.arguments) {
    texts.push_back(row.name + " = " + row.symbols);
  }
  return texts;
}

TEST(Variation, DimensionsThatChangeTogetherShareASymbol) {
  SteppedTrace stepped("symbols");
  const graph::Variation variation = GrowingCache(stepped, {5, 6, 7, 12});
  EXPECT_EQ(Texts(variation),
            (std::vector<std::string>{"tensors[0].1 = s0", "self[0].1 = s0 + 1",
                                      "self[0].0 = 4 * s0", "size = [4 * s0, 2]", "limit = "}));
  ASSERT_EQ(variation.symbols.size(), 1u);
  EXPECT_EQ(variation.symbols[0].sizes, (std::vector<int64_t>{5, 6, 7, 12}));
  EXPECT_EQ(variation.symbols[0].dimensions, 3u);
}

TEST(Variation, TwoSizesDoNotProveAFactor) {
  SteppedTrace stepped("two-sizes");
  const graph::Variation variation = GrowingCache(stepped, {5, 6, 5});
  EXPECT_EQ(Texts(variation),
            (std::vector<std::string>{"tensors[0].1 = s0", "self[0].1 = s0 + 1", "self[0].0 = s1",
                                      "size = [s1, 2]", "limit = "}));
}

TEST(Variation, AnotherElementTypeIsALayoutVariation) {
  SteppedTrace stepped("layout");
  TraceBuilder& trace = stepped.trace();
  const Tensor out = trace.NewTensor({4});
  for (const auto dtype : {storage::DType::kFloat32, storage::DType::kFloat16}) {
    stepped.BeginStep();
    trace.Call("aten::abs", {In("self", trace.NewTensor({4}, dtype))}, {Out("out", out)});
    stepped.EndStep();
  }
  const Work& work = stepped.Load();
  const graph::Variation variation = graph::FindVariation(work, graph::FindFamilies(work).at(0));
  ASSERT_EQ(variation.arguments.size(), 1u);
  EXPECT_EQ(variation.arguments[0].kind, graph::VariationKind::kLayout);
  EXPECT_EQ(variation.arguments[0].second_value, "1: float16 of 1 dimensions");
}

TEST(Variation, AnOptionalArgumentThatIsNoneInSomeStepsVaries) {
  SteppedTrace stepped("optional");
  TraceBuilder& trace = stepped.trace();
  const Tensor x = trace.NewTensor({4});
  for (const bool given : {false, true}) {
    stepped.BeginStep();
    trace.Call("aten::clamp",
               {In("self", x), given ? Real("min", 0.5) : None("min"),
                given ? In("weight", x) : None("weight"), None("max")},
               {Out("out", trace.NewTensor({4}))});
    stepped.EndStep();
  }
  const Work& work = stepped.Load();
  const graph::Variation variation = graph::FindVariation(work, graph::FindFamilies(work).at(0));
  ASSERT_EQ(variation.arguments.size(), 2u);
  EXPECT_EQ(variation.arguments[0].name, "min");
  EXPECT_EQ(variation.arguments[0].first_value, "none");
  EXPECT_EQ(variation.arguments[0].second_value, "0.5");
  EXPECT_EQ(variation.arguments[1].name, "weight");
  EXPECT_EQ(variation.arguments[1].kind, graph::VariationKind::kLayout);
}

TEST(Variation, OfAFamilyOfOneStepOnlyInputsAreKnown) {
  SteppedTrace stepped("one");
  TraceBuilder& trace = stepped.trace();
  stepped.BeginStep();
  trace.Call("aten::add_.Scalar", {Written("self", trace.NewTensor({})), Real("other", 1)});
  stepped.EndStep();
  const Work& work = stepped.Load();
  const graph::Variation variation = graph::FindVariation(work, graph::FindFamilies(work).at(0));
  EXPECT_TRUE(variation.arguments.empty());
  ASSERT_EQ(variation.inputs.size(), 1u);
  EXPECT_EQ(variation.inputs[0].bytes, 4);
}

TEST(Variation, AclScalarsListsAndAddressesAreComparedAndExecutorsAreNot) {
  TemporaryTrace file("variation-acl");
  AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const Tensor pool = trace.Device({64});
  const Tensor out = trace.Device({4});
  for (int step = 0; step < 3; ++step) {
    const Tensor part = TraceBuilder::View(pool, {4}, {1}, 8 * step);
    trace.Op("aclnnAdds", stream,
             {In("self", part), Scalar("other", 0.5 * step), ScalarInt("alpha", 1),
              Ints("dims", {0, step}), Out("out", out)});
    trace.Synchronize(stream);
  }
  trace.Finish();
  const storage::Reader reader(file.path());
  Work work = LoadWork(reader);
  AssignSteps(work, nullptr);
  const std::vector<graph::StepFamily> families = graph::FindFamilies(work);
  ASSERT_EQ(families.size(), 1u);
  ASSERT_EQ(families[0].steps.size(), 3u);
  const graph::Variation variation = graph::FindVariation(work, families[0]);

  std::vector<std::string> seen;
  for (const graph::ArgumentVariation& row : variation.arguments) {
    seen.push_back(row.name + " " + std::to_string(row.values) + " " + row.first_value + " / " +
                   row.second_value);
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"other 3 float32 0 / float32 0.5",
                                            "dims 3 [0, 0] / [0, 1]"}));
  ASSERT_EQ(variation.inputs.size(), 2u);
  EXPECT_EQ(variation.inputs[0].name, "self");
  EXPECT_TRUE(variation.inputs[0].moves && variation.inputs[0].moves_by_address);
  EXPECT_EQ(variation.inputs[0].buffers, 1u);
  EXPECT_FALSE(variation.inputs[1].moves);
}

TEST(Variation, AMovingBufferThatAnAclOperatorOverwritesInPlaceIsNoInputThatIsRead) {
  for (const auto& [op, read] :
       {std::pair<const char*, bool>{"aclnnInplaceCopy", false}, {"aclnnInplaceAdd", true}}) {
    SCOPED_TRACE(op);
    TemporaryTrace file("variation-overwritten");
    AclTraceBuilder trace(file.path());
    const int64_t stream = trace.NewStream();
    const Tensor pool = trace.Device({64});
    const Tensor batch = trace.Device({4});
    for (int step = 0; step < 3; ++step) {
      const Tensor part = TraceBuilder::View(pool, {4}, {1}, 8 * step);
      trace.Op(op, stream, {Written("selfRef", part), In("src", batch)});
      trace.Synchronize(stream);
    }
    trace.Finish();
    const storage::Reader reader(file.path());
    Work work = LoadWork(reader);
    AssignSteps(work, nullptr);
    const graph::Variation variation = graph::FindVariation(work, graph::FindFamilies(work).at(0));
    ASSERT_FALSE(variation.inputs.empty());
    for (const graph::StepInput& input : variation.inputs) {
      if (input.name != "selfRef") continue;
      EXPECT_TRUE(input.moves);
      EXPECT_EQ(input.read, read);
    }
  }
}

TEST(Variation, InputsOfRandomStepsAreTheBytesThatTheyHadNotWritten) {
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    SteppedTrace stepped("random-inputs");
    TraceBuilder& trace = stepped.trace();
    std::vector<Tensor> old = {trace.NewTensor({8}), trace.NewTensor({8})};
    std::vector<ByteAccess> uses;  // uses of the last step
    struct Choice {
      size_t tensor;
      int64_t first, count;
      bool write;
    };
    std::vector<Choice> choices;
    for (int i = 0; i < 12; ++i) {
      const int64_t first = random() % 6;
      choices.push_back({random() % 4, first, static_cast<int64_t>(1 + random() % (8 - first)),
                         random() % 2 == 0});
    }
    for (const int64_t id : {old[0].buffer, old[1].buffer}) {  // both exist before the steps
      trace.Call("aten::zero_", {Out("self", old[id - old[0].buffer])});
    }
    for (int step = 0; step < 2; ++step) {
      stepped.BeginStep();
      const std::vector<Tensor> tensors = {old[0], old[1], trace.NewTensor({8}),
                                           trace.NewTensor({8})};
      uses.clear();
      for (const Choice& choice : choices) {
        const Tensor& whole = tensors[choice.tensor];
        const Tensor part = TraceBuilder::View(whole, {choice.count}, {1}, choice.first);
        if (choice.write) {
          trace.Call("aten::zero_", {Out("self", part)});
        } else {
          trace.Call("aten::_local_scalar_dense", {In("self", part)},
                     {Real("out", 0, storage::Direction::kOut)});
        }
        uses.push_back(
            {whole.buffer, 4 * choice.first, 4 * (choice.first + choice.count), choice.write});
      }
      stepped.EndStep();
    }
    std::set<std::pair<int64_t, int64_t>> written;
    std::set<std::tuple<int64_t, int64_t, int64_t>> seen;
    std::vector<size_t> expected;
    for (size_t place = 0; place < uses.size(); ++place) {
      const ByteAccess& use = uses[place];
      const bool was_there = use.buffer == old[0].buffer || use.buffer == old[1].buffer;
      bool covered = true;
      for (int64_t byte = use.first; byte < use.end; ++byte) {
        covered = covered && written.contains({use.buffer, byte});
      }
      const bool outside = !covered && (!use.write || was_there);
      if (seen.insert({use.buffer, use.first, use.end}).second && outside) {
        expected.push_back(place);
      }
      for (int64_t byte = use.first; use.write && byte < use.end; ++byte) {
        written.insert({use.buffer, byte});
      }
    }
    const Work& work = stepped.Load();
    const graph::Variation variation = graph::FindVariation(work, graph::FindFamilies(work).at(0));
    std::vector<size_t> found;
    for (const graph::StepInput& input : variation.inputs) found.push_back(input.place);
    EXPECT_EQ(found, expected) << "round " << round;
  }
}

}  // namespace
}  // namespace acltape::analyzer
