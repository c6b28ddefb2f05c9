// Replays in which leaves read recorded results, so that each difference is of its own call.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/replayer/small_programs.h"

namespace acltape::replayer {
namespace {

using test::Add;
using test::Explain;
using test::Floats;
using test::In;
using test::Int;
using test::Numbers;
using test::Out;
using test::Real;
using test::Recorded;
using test::Relu;
using test::Sum;
using test::Tensor;
using test::TraceBuilder;
using test::Written;

constexpr int kCallsOfStep = 5;

// Per step: y = relu(x); state += y; a host read of the state; z = state + y. What was recorded of
// step 2 follows from a relu that gave another number, as if another device had computed it.
enum class Kept { kEveryResult, kNoRelu, kNoResult };
Recorded OneWrongRelu(Kept kept = Kept::kEveryResult) {
  const bool results = kept != Kept::kNoResult;
  Tensor state;
  Floats sum = Numbers(4, 99);
  return Recorded(4, [=](TraceBuilder& trace, int step) mutable {
    const bool first = step == 0;
    if (first) state = trace.NewTensor({4});
    const Tensor x = trace.NewTensor({4});
    const Tensor y = trace.NewTensor({4});
    Floats relu = Relu(Numbers(4, step));
    if (step == 2) relu[1] += 0.5f;
    trace.Call("aten::relu", {In("self", x)}, {Out("out", y)}).Before(x, Numbers(4, step));
    if (kept == Kept::kEveryResult) trace.After("out", relu);
    trace.Call("aten::add_.Tensor", {Written("self", state), In("other", y), Int("alpha", 1)});
    if (first) trace.Before(state, sum);
    sum = Sum(sum, relu);
    if (results) trace.After("self", sum);
    const Tensor element = trace.View(state, {}, {}, 1);
    trace.Call("aten::select.int", {In("self", state)}, {Out("out", element)});
    trace.Call("aten::_local_scalar_dense", {In("self", element)},
               {Real("out", sum[1], storage::Direction::kOut)});
    Add(trace, state, y, trace.NewTensor({4}));
    if (results) trace.After("out", Sum(sum, relu));
  });
}

int64_t CallOf(int step, int call) { return step * kCallsOfStep + call; }

ReplayReport ReplayWith(const Recorded& recorded, Mode mode, Inputs inputs,
                        Outputs outputs = Outputs::kLeaf) {
  ReplayOptions options;
  options.mode = mode;
  options.inputs = inputs;
  options.outputs = outputs;
  return recorded.Replay(options);
}

// The error of one call reaches the rest of its step, and by the state all later steps.
const std::set<int64_t> kCarried{CallOf(2, 1), CallOf(2, 2), CallOf(2, 4), CallOf(2, 5),
                                 CallOf(3, 2), CallOf(3, 4), CallOf(3, 5)};

TEST(GoldenInputs, EagerlyOnlyTheCallThatIsWrongByItselfDiffers) {
  const Recorded recorded = OneWrongRelu();
  const ReplayReport carried = ReplayWith(recorded, Mode::kEager, Inputs::kCarried);
  EXPECT_EQ(carried.differing_calls, kCarried) << Explain(carried);
  const ReplayReport golden = ReplayWith(recorded, Mode::kEager, Inputs::kGolden);
  EXPECT_EQ(golden.differing_calls, std::set<int64_t>{CallOf(2, 1)}) << Explain(golden);
  EXPECT_EQ(golden.compared, carried.compared);
}

TEST(GoldenInputs, CapturedAnErrorStaysInItsRegion) {
  const Recorded recorded = OneWrongRelu();
  EXPECT_EQ(ReplayWith(recorded, Mode::kCaptured, Inputs::kCarried).differing_calls, kCarried);
  // The region of the relu and the sum; the host read divides it from the second sum.
  const ReplayReport golden = ReplayWith(recorded, Mode::kCaptured, Inputs::kGolden);
  EXPECT_EQ(golden.differing_calls, (std::set<int64_t>{CallOf(2, 1), CallOf(2, 2)}))
      << Explain(golden);
  EXPECT_EQ(golden.capture.captured_steps, 4);
}

TEST(GoldenInputs, CapturedWithSharedMemoryTheStateOfTheNextStepIsTheRecordedOne) {
  const ReplayReport golden =
      ReplayWith(OneWrongRelu(), Mode::kCaptured, Inputs::kGolden, Outputs::kStep);
  // The relu is used inside the step, so that it is not compared.
  EXPECT_EQ(golden.differing_calls, std::set<int64_t>{CallOf(2, 2)}) << Explain(golden);
}

// Nobody could keep the results of the relu, as inside a graph of the program.
TEST(GoldenInputs, AResultThatTheTraceLacksIsComputedAndCounted) {
  const Recorded recorded = OneWrongRelu(Kept::kNoRelu);
  for (const Mode mode : {Mode::kEager, Mode::kCaptured}) {
    const ReplayReport golden = ReplayWith(recorded, mode, Inputs::kGolden);
    // The sums of step 2 show what the relu gave in the recording. Step 3 begins with its record.
    EXPECT_EQ(golden.differing_calls, (std::set<int64_t>{CallOf(2, 2), CallOf(2, 5)}))
        << Explain(golden);
    const auto note = std::find_if(golden.notes.begin(), golden.notes.end(),
                                   [](const Note& row) { return row.rule == "REPLAY-GOLDEN"; });
    ASSERT_NE(note, golden.notes.end());
    EXPECT_EQ(note->count, 4);
  }
}

TEST(GoldenInputs, NeedSomeRecordedResult) {
  const Recorded recorded = OneWrongRelu(Kept::kNoResult);
  try {
    ReplayWith(recorded, Mode::kEager, Inputs::kGolden);
    FAIL() << "a trace without results was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kTrace);
    EXPECT_NE(std::string(error.what()).find("call 1 aten::relu has no recorded result"),
              std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("--payload all"), std::string::npos) << error.what();
  }
}

TEST(GoldenInputs, AreNotSynthesised) {
  ReplayOptions options;
  options.inputs = Inputs::kGolden;
  options.data = Data::kSynthesised;
  try {
    OneWrongRelu().Replay(options);
    FAIL() << "golden inputs were synthesised";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage) << error.what();
  }
}

}  // namespace
}  // namespace acltape::replayer
