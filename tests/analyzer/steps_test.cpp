#include "analyzer/steps/steps.h"

#include <gtest/gtest.h>

#include <random>

#include "analyzer/graph/variation.h"
#include "analyzer/program/program.h"
#include "storage/results.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using test::In;
using test::Out;
using test::TemporaryTrace;
using test::Tensor;
using test::TraceBuilder;

// Writes one leaf per letter: capital letters are host reads, small ones kernels.
void WriteLetters(TraceBuilder& trace, const std::string& letters) {
  const Tensor x = trace.NewTensor({4});
  const Tensor y = trace.NewTensor({4});
  for (const char letter : letters) {
    if (letter >= 'A' && letter <= 'Z') {
      trace.Call("aten::item_" + std::string(1, letter), {In("self", x)},
                 {test::Real("out", 0, storage::Direction::kOut)});
    } else {
      trace.Call("aten::op_" + std::string(1, letter), {In("self", x)}, {Out("out", y)});
    }
  }
}

// The steps of a program of letters, as the letters of each.
std::vector<std::string> StepsOf(const std::string& letters) {
  TemporaryTrace file("steps");
  TraceBuilder trace(file.path());
  WriteLetters(trace, letters);
  trace.Finish();
  const storage::Reader reader(file.path());
  const Program program = LoadProgram(reader);
  std::vector<std::string> steps;
  for (const StepRange& step : program.work.steps) {
    steps.push_back(letters.substr(step.first, step.end - step.first));
  }
  return steps;
}

using Steps = std::vector<std::string>;

TEST(Steps, RepeatedStretchAfterAPrologueIsFound) {
  EXPECT_EQ(StepsOf("pqrs"
                    "abcdH"
                    "abcdH"
                    "abcdH"),
            (Steps{"abcdH", "abcdH", "abcdH"}));
}

TEST(Steps, RepeatedLayersInsideAStepDoNotHideTheStep) {
  const std::string step =
      "e"
      "abcdabcdabcdabcd"
      "fgH";
  EXPECT_EQ(StepsOf("zyx" + step + step + step + step), (Steps{step, step, step, step}));
}

TEST(Steps, CutComesAfterTheHostReadBeforeTheLongestStretch) {
  // Two host reads end each step; the cut is after the second.
  EXPECT_EQ(StepsOf("zz"
                    "abcdeHfI"
                    "abcdeHfI"
                    "abcdeHfI"),
            (Steps{"abcdeHfI", "abcdeHfI", "abcdeHfI"}));
}

TEST(Steps, AFirstIterationThatDiffersIsTheFirstStep) {
  // The first iteration clones state (c) where later ones update it (d) and clear it first (z).
  EXPECT_EQ(StepsOf("wxyw"
                    "abefghicH"
                    "zabefghidH"
                    "zabefghidH"
                    "zabefghidH"),
            (Steps{"abefghicH", "zabefghidH", "zabefghidH", "zabefghidH"}));
}

TEST(Steps, APrologueThatDoesNotResembleAStepIsNone) {
  EXPECT_EQ(StepsOf("mnopqrstuvw"
                    "abcdH"
                    "abcdH"
                    "abcdH"),
            (Steps{"abcdH", "abcdH", "abcdH"}));
}

TEST(Steps, AStretchCutOffInTheMiddleGivesALastPartialStep) {
  EXPECT_EQ(StepsOf("pq"
                    "abcdefH"
                    "abcdefH"
                    "abcde"),
            (Steps{"abcdefH", "abcdefH", "abcde"}));
}

TEST(Steps, AProgramWithoutRepetitionHasNone) { EXPECT_TRUE(StepsOf("abcdefghijklmnop").empty()); }

TEST(Steps, ALoopOfOneOperatorHasNone) {
  EXPECT_TRUE(StepsOf("pq" + std::string(40, 'a')).empty());
  EXPECT_TRUE(StepsOf(std::string(20, 'a') + "z" + std::string(20, 'a')).empty());
}

TEST(Steps, ALongLoopOfOneOperatorDoesNotHideTheSteps) {
  EXPECT_EQ(StepsOf(std::string(100, 'z') + "abcdH" + "abcdH" + "abcdH"),
            (Steps{"abcdH", "abcdH", "abcdH"}));
}

TEST(Steps, OperatorsThatRunInAStepAreSteps) { EXPECT_EQ(StepsOf("aabaabaab").size(), 3u); }

TEST(Steps, SeededRandomStepsAreRecovered) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::string step;
    const int length = 5 + static_cast<int>(random() % 60);
    for (int i = 0; i < length; ++i) step += static_cast<char>('a' + random() % 20);
    step += 'H';
    std::string prologue;
    for (int i = 0; i < 12; ++i) prologue += static_cast<char>('u' + random() % 5);
    const int count = 3 + static_cast<int>(random() % 6);
    std::string letters = prologue;
    for (int i = 0; i < count; ++i) letters += step;
    EXPECT_EQ(StepsOf(letters), Steps(count, step)) << letters;
  }
}

TEST(Steps, RecordedStepsAreTakenAsTheyAre) {
  TemporaryTrace file("recorded");
  TraceBuilder trace(file.path());
  WriteLetters(trace, "pqabab");
  storage::Step step;
  step.step = 0;
  step.first_call = 1;
  step.last_call = 3;
  step.found_by = "range:batch";
  trace.writer().AddStep(step);
  trace.Finish();
  const storage::Reader reader(file.path());
  Program program = LoadProgram(reader);
  ASSERT_EQ(program.work.steps.size(), 1u);
  EXPECT_EQ(program.work.steps[0].found_by, "range:batch");
  EXPECT_EQ(program.leaves[2].step_index, 0);
  EXPECT_EQ(program.leaves[3].step_index, -1);

  Work work = LoadWork(reader);
  AssignSteps(work, nullptr);
  ASSERT_EQ(work.steps.size(), 1u);
  EXPECT_EQ(work.steps[0].found_by, "range:batch");
  EXPECT_EQ(work.calls[2].step, 0);
  EXPECT_EQ(work.calls[3].step, -1);
}

TEST(Steps, FoundInTheCompactFormAreThoseThatAreWritten) {
  TemporaryTrace file("written-work");
  {
    TraceBuilder trace(file.path());
    WriteLetters(trace, "pabHabHabH");
    trace.Finish();
  }
  storage::Reader reader(file.path(), storage::Reader::Mode::kReadWrite);
  {
    storage::Results results(reader);
    Work work = LoadWork(reader);
    AssignSteps(work, &results);
    EXPECT_EQ(work.calls[0].step, -1);
    EXPECT_EQ(work.calls[9].step, 2);
  }
  EXPECT_EQ(LoadWork(reader).steps.size(), 3u);
  EXPECT_EQ(reader.Steps()[0].first_call, 2);
  EXPECT_EQ(reader.Steps()[2].last_call, 10);
}

// There are as many steps as `ends`, and each ends with the call of that id.
void CheckEnds(const Work& work, const std::vector<int64_t>& ends) {
  ASSERT_EQ(work.steps.size(), ends.size());
  for (size_t step = 0; step < ends.size(); ++step) {
    EXPECT_EQ(work.calls[work.steps[step].end - 1].call_id, ends[step]);
  }
}

TEST(Steps, OfAnAclProgramDoNotDependOnHowOftenItAsked) {
  TemporaryTrace file("steps-acl");
  test::AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const Tensor a = trace.Device({4});
  const Tensor b = trace.Device({4});
  std::vector<int64_t> ends;
  for (int step = 0; step < 4; ++step) {
    trace.Op("aclnnRelu", stream, {In("self", a), Out("out", b)});
    for (int query = 0; query < step; ++query) {
      trace.Interface("aclrtStreamQuery", {test::Int("stream", stream), test::Int("status", 0)});
    }
    trace.Op("aclnnAbs", stream, {In("self", b), Out("out", a)});
    trace.Synchronize(stream);
    ends.push_back(trace.last_call());
  }
  trace.Finish();
  const storage::Reader reader(file.path());
  Work work = LoadWork(reader);
  AssignSteps(work, nullptr);
  CheckEnds(work, ends);
}

TEST(Steps, OfAnAclProgramDoNotDependOnWhenAnotherThreadMadeItsEvents) {
  TemporaryTrace file("steps-events");
  test::AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const Tensor a = trace.Device({4});
  const Tensor b = trace.Device({4});
  std::vector<int64_t> ends;
  for (int step = 0; step < 4; ++step) {
    trace.Op("aclnnRelu", stream, {In("self", a), Out("out", b)});
    if (step % 2 == 0) trace.NewEvent();
    trace.Op("aclnnAbs", stream, {In("self", b), Out("out", a)});
    for (int event = 0; event < step; ++event) {
      trace.Interface("aclrtDestroyEvent", {test::Int("event", trace.NewEvent())});
    }
    trace.Synchronize(stream);
    ends.push_back(trace.last_call());
  }
  trace.Finish();
  const storage::Reader reader(file.path());
  Work work = LoadWork(reader);
  AssignSteps(work, nullptr);
  CheckEnds(work, ends);
  EXPECT_EQ(graph::FindFamilies(work).size(), 1u);
}

// A program that captures the work of a step as graphs: `requests` times each, in turns, it
// executes one.
class GraphProgram {
 public:
  explicit GraphProgram(const std::string& path) : trace_(path) {
    stream_ = trace_.NewStream();
    a_ = trace_.Device({4});
    b_ = trace_.Device({4});
  }

  // Warms up and captures, as a program does for each size that it serves.
  int64_t Capture() {
    Layers();
    trace_.Synchronize(stream_);
    trace_.BeginCapture(stream_);
    Layers();
    return trace_.EndCapture(stream_);
  }

  // Executes the graph so often, each time with an input and a result; before it something else is
  // set up.
  void Serve(int64_t graph, int tokens) {
    trace_.Op("aclnnInplaceOne", stream_, {test::Written("selfRef", a_)});
    for (int token = 0; token < tokens; ++token) {
      trace_.Upload(a_, std::vector<float>{1, 2, 3, 4}, stream_);
      trace_.Execute(graph, stream_);
      trace_.Synchronize(stream_);
      trace_.Download(b_, std::vector<float>{1, 2, 3, 4});
      ends_.push_back(trace_.last_call());
    }
  }

  void CheckSteps(const std::string& path) {
    trace_.Finish();
    const storage::Reader reader(path);
    Work work = LoadWork(reader);
    AssignSteps(work, nullptr);
    ASSERT_EQ(work.steps.size(), ends_.size());
    for (const StepRange& step : work.steps) EXPECT_GE(step.end - step.first, 4);
    EXPECT_EQ(work.calls[work.steps.back().end - 1].call_id, ends_.back());
  }

 private:
  void Layers() {
    for (int layer = 0; layer < 6; ++layer) {
      trace_.Op("aclnnRelu", stream_, {In("self", a_), Out("out", b_)});
      trace_.Op("aclnnAbs", stream_, {In("self", b_), Out("out", a_)});
    }
  }

  test::AclTraceBuilder trace_;
  int64_t stream_ = 0;
  Tensor a_, b_;
  std::vector<int64_t> ends_;
};

TEST(Steps, OfAProgramWithGraphsAreItsExecutionsAndNotItsWarmUp) {
  TemporaryTrace file("steps-graph");
  GraphProgram program(file.path());
  program.Capture();
  program.Capture();
  program.Serve(program.Capture(), 5);
  program.CheckSteps(file.path());
}

TEST(Steps, OfAProgramThatServesRequestsByGraphsAreTheTokensOfAllRequests) {
  TemporaryTrace file("steps-requests");
  GraphProgram program(file.path());
  const int64_t large = program.Capture();
  const int64_t small = program.Capture();
  for (int request = 0; request < 2; ++request) {
    program.Serve(large, 4);
    program.Serve(small, 4);
  }
  program.CheckSteps(file.path());
}

TEST(Steps, DoNotBeginInTheUpdateOfAGraphWhoseCallsDoNotExecute) {
  TemporaryTrace file("steps-update");
  test::AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const int64_t updating = trace.NewStream();
  const Tensor a = trace.Device({4});
  const Tensor b = trace.Device({4});
  trace.BeginCapture(stream);
  trace.Op("aclnnMuls", stream, {In("self", a), Out("out", b)});
  const int64_t graph = trace.EndCapture(stream);
  std::vector<int64_t> ends;
  for (int step = 0; step < 4; ++step) {
    trace.Upload(a, std::vector<float>{1, 2, 3, 4}, stream);
    trace.Execute(graph, stream);
    trace.Interface("aclmdlRICaptureTaskUpdateBegin",
                    {test::Int("stream", updating), test::Int("handle", 7)}, updating);
    trace.Op("aclnnMuls", updating, {In("self", a), Out("out", b)});
    trace.Interface("aclmdlRICaptureTaskUpdateEnd", {test::Int("stream", updating)}, updating);
    trace.Synchronize(stream);
    trace.Download(b, std::vector<float>{1, 2, 3, 4});
    ends.push_back(trace.last_call());
  }
  trace.Finish();
  const storage::Reader reader(file.path());
  Work work = LoadWork(reader);
  AssignSteps(work, nullptr);
  CheckEnds(work, ends);
}

TEST(Steps, FoundStepsAreWrittenToTheTrace) {
  TemporaryTrace file("written");
  {
    TraceBuilder trace(file.path());
    WriteLetters(trace, "pabHabHabH");
    trace.Finish();
  }
  storage::Reader reader(file.path(), storage::Reader::Mode::kReadWrite);
  {
    storage::Results results(reader);
    LoadProgram(reader, &results);
  }
  const storage::Reader again(file.path());
  const std::vector<storage::Step> steps = again.Steps();
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].first_call, 2);
  EXPECT_EQ(steps[2].last_call, 10);
  EXPECT_EQ(steps[1].found_by, "period");
}

}  // namespace
}  // namespace acltape::analyzer
