// Steps of programs that train, on traces built by hand. Each program marks where its steps begin;
// the search must find the same places in both forms of the trace.
#include "analyzer/steps/training_steps.h"

#include <gtest/gtest.h>

#include "analyzer/lint/lint.h"
#include "analyzer/steps/live_bytes.h"
#include "analyzer/steps/steps.h"
#include "tests/analyzer/trace_builder.h"

namespace acltape::analyzer {
namespace {

using storage::Phase;
using test::In;
using test::Out;
using test::Tensor;
using test::Written;

// A program with one layer and one parameter, call by call.
class TrainedCalls : public test::TraceBuilder {
 public:
  explicit TrainedCalls(const std::string& path) : TraceBuilder(path) {
    // Calls before the loop.
    Call(Phase::kForward, "aten::ones", {}, {Out("out", parameter_)});
    Call(Phase::kForward, "aten::sign", {In("self", parameter_)}, {Out("out", other_)});
    Call(Phase::kForward, "aten::neg", {In("self", other_)}, {Out("out", second_)});
  }

  void Begin() { begins_.push_back(last_call() + 1); }
  // Ends the loop: what follows is in no step.
  void End() { end_ = last_call(); }

  Tensor Batch() {
    const Tensor batch = NewTensor({64});
    Call(Phase::kForward, "aten::randn", {}, {Out("out", batch)});
    return batch;
  }
  Tensor Forward(const Tensor& batch, const std::string& name = "aten::mm") {
    const Tensor hidden = NewTensor({64});
    const Tensor loss = NewTensor({1});
    Call(Phase::kForward, name, {In("self", batch), In("mat2", parameter_)}, {Out("out", hidden)});
    Call(Phase::kForward, "aten::mean", {In("self", hidden)}, {Out("out", loss)});
    kept_ = hidden;
    return loss;
  }
  // Writes the gradient, or adds to the one that is there.
  void Backward(const Tensor& loss, bool adds = false) {
    const Tensor gradient = NewTensor({64});
    Call(Phase::kBackward, "aten::expand", {In("self", loss)}, {Out("out", gradient)});
    Call(Phase::kBackward, "aten::mul", {In("self", kept_), In("other", gradient)},
         {Out("out", adds ? NewTensor({16}) : gradient_)});
    if (adds) Call(Phase::kBackward, "aten::add_", {Written("self", gradient_)}, {});
  }
  void Optimize(const Tensor& parameter, Phase phase = Phase::kOptimizer) {
    const Tensor scaled = NewTensor({16});
    Call(phase, "aten::mul", {In("self", gradient_)}, {Out("out", scaled)});
    Call(phase, "aten::sub_", {Written("self", parameter), In("other", scaled)}, {});
  }
  void Train(const Tensor& batch) {
    loss_ = Forward(batch);
    Backward(loss_);
    Optimize(parameter_);
  }
  void Read(const Tensor& value) {
    Call(Phase::kForward, "aten::_local_scalar_dense", {In("self", value)},
         {test::Real("out", 0, storage::Direction::kOut)});
  }
  void Clear() { Call(Phase::kForward, "aten::zero_", {Out("self", gradient_)}, {}); }
  const Tensor& parameter() const { return parameter_; }
  const Tensor& second() const { return second_; }
  const Tensor& loss() const { return loss_; }
  // First and last call of each step.
  std::vector<std::pair<int64_t, int64_t>> Steps() const {
    std::vector<std::pair<int64_t, int64_t>> steps;
    for (size_t i = 0; i < begins_.size(); ++i) {
      const int64_t last = i + 1 < begins_.size() ? begins_[i + 1] - 1 : end_;
      steps.emplace_back(begins_[i], last == 0 ? last_call() : last);
    }
    return steps;
  }

 private:
  Tensor parameter_ = NewTensor({16});
  Tensor other_ = NewTensor({16});
  Tensor second_ = NewTensor({16});
  Tensor gradient_ = NewTensor({16});
  Tensor kept_;
  Tensor loss_;
  std::vector<int64_t> begins_;
  int64_t end_ = 0;
};

// The steps that are found are those that the program of `write` marked.
void CheckSteps(const std::function<void(TrainedCalls&)>& write) {
  test::TemporaryTrace file("training-steps");
  TrainedCalls program(file.path());
  write(program);
  program.Finish();
  const storage::Reader reader(file.path());
  Work work = LoadWork(reader);
  AssignSteps(work, nullptr);
  std::vector<std::pair<int64_t, int64_t>> found;
  for (const StepRange& step : work.steps) {
    EXPECT_EQ(step.found_by, kFoundByPeriod);
    found.emplace_back(work.calls[step.first].call_id, work.calls[step.end - 1].call_id);
  }
  EXPECT_EQ(found, program.Steps());
}

TEST(TrainingSteps, AReadAfterTheOptimiserEndsTheStep) {
  CheckSteps([](TrainedCalls& program) {
    for (int step = 0; step < 4; ++step) {
      program.Begin();
      program.Train(program.Batch());
      program.Read(program.loss());
    }
  });
}

TEST(TrainingSteps, WithoutAReadTheyBeginWithTheBatch) {
  CheckSteps([](TrainedCalls& program) {
    for (int step = 0; step < 3; ++step) {
      program.Begin();
      program.Train(program.Batch());
    }
    program.End();
    program.Read(program.loss());
  });
}

TEST(TrainingSteps, GradientsAreClearedWhereTheLastStepShowsIt) {
  for (const bool at_the_end : {false, true}) {
    CheckSteps([&](TrainedCalls& program) {
      for (int step = 0; step < 4; ++step) {
        program.Begin();
        if (!at_the_end) program.Clear();
        program.Train(program.Batch());
        program.Read(program.loss());
        if (at_the_end) program.Clear();
      }
    });
  }
}

TEST(TrainingSteps, TwoOptimisersThatTakeTurnsAreOneStep) {
  CheckSteps([](TrainedCalls& program) {
    for (int step = 0; step < 3; ++step) {
      program.Begin();
      program.Train(program.Batch());
      program.Backward(program.Forward(program.Batch(), "aten::addmm"));
      program.Optimize(program.second());
      program.Read(program.loss());
    }
  });
}

TEST(TrainingSteps, AccumulatedGradientsEndNoStep) {
  CheckSteps([](TrainedCalls& program) {
    for (int step = 0; step < 3; ++step) {
      program.Begin();
      for (int part = 0; part < 4; ++part) {
        const Tensor loss = program.Forward(program.Batch());
        program.Backward(loss, /*adds=*/part > 0);
        if (part < 3) continue;
        program.Optimize(program.parameter());
        program.Read(loss);
      }
    }
  });
}

// The step of a validation is longer than the others.
TEST(TrainingSteps, AValidationNowAndThenEndsAStep) {
  CheckSteps([](TrainedCalls& program) {
    for (int step = 0; step < 8; ++step) {
      program.Begin();
      program.Train(program.Batch());
      program.Read(program.loss());
      if (step % 3 != 2) continue;
      for (int batch = 0; batch < 2; ++batch) program.Read(program.Forward(program.Batch()));
    }
  });
}

TEST(TrainingSteps, AValidationThatTheFirstStepHasBeforeItBeginsOne) {
  CheckSteps([](TrainedCalls& program) {
    for (int step = 0; step < 8; ++step) {
      program.Begin();
      if (step % 3 == 0) program.Read(program.Forward(program.Batch(), "aten::addmm"));
      program.Train(program.Batch());
      program.Read(program.loss());
    }
  });
}

TEST(TrainingSteps, AProgramMayUpdateItsParametersItself) {
  CheckSteps([](TrainedCalls& program) {
    for (int step = 0; step < 4; ++step) {
      program.Begin();
      const Tensor loss = program.Forward(program.Batch());
      program.Backward(loss);
      program.Optimize(program.parameter(), Phase::kForward);
      program.Read(loss);
    }
  });
}

TEST(TrainingSteps, AnIterationThatWasCutOffIsTheLastStep) {
  CheckSteps([](TrainedCalls& program) {
    for (int step = 0; step < 3; ++step) {
      program.Begin();
      program.Train(program.Batch());
      program.Read(program.loss());
    }
    program.Begin();
    program.Backward(program.Forward(program.Batch()));
  });
}

// Clearing and loading lie in one range: the step does not end between them, though the calls
// after the loop look as if it did.
TEST(TrainingSteps, ARangeOfTheProgramIsNotCut) {
  CheckSteps([](TrainedCalls& program) {
    const int64_t scope = program.writer().InternScope(0, "user", "load");
    for (int step = 0; step < 4; ++step) {
      program.Begin();
      const int64_t first = program.last_call() + 1;
      program.Clear();
      const Tensor batch = program.Batch();
      program.writer().AddScopeRange(scope, 1, first, program.last_call(), 0, 0);
      program.Train(batch);
    }
    program.End();
    program.Clear();
  });
}

TEST(TrainingSteps, LintReportsTheReadAtTheEndOfEachStep) {
  test::TemporaryTrace file("training-lint");
  TrainedCalls program(file.path());
  for (int step = 0; step < 4; ++step) {
    program.Train(program.Batch());
    program.Read(program.loss());
  }
  program.Finish();
  const storage::Reader reader(file.path());
  Work work = LoadWork(reader);
  AssignSteps(work, nullptr);
  const lint::LintReport report = lint::Lint(work, lint::LintOptions{});
  std::vector<int64_t> counts;
  for (const lint::Finding& finding : report.findings) {
    EXPECT_NE(finding.rule->id, "LINT-38");
    if (finding.rule->id != "LINT-40") continue;
    counts.push_back(finding.count);
    EXPECT_EQ(work.op(static_cast<size_t>(work.Find(finding.call_id))).name,
              "aten::_local_scalar_dense");
  }
  EXPECT_EQ(counts, std::vector<int64_t>{4});
}

// Place 0 writes 8 bytes that 2 reads, 1 writes 4 that 4 reads, 3 fills 16 that 4 reads.
TEST(LiveBytes, CountValuesBetweenTheirWriteAndTheirLastRead) {
  const std::vector<std::vector<ByteAccess>> accesses = {{{9, 0, 1, false}, {1, 0, 8, true}},
                                                         {{9, 0, 1, false}, {2, 0, 4, true}},
                                                         {{1, 0, 8, false}},
                                                         {{3, 0, 16, true}},
                                                         {{2, 0, 4, false}, {3, 0, 16, false}}};
  OperatorSequence sequence;
  for (size_t i = 0; i < accesses.size(); ++i) sequence.Add(0, LeafKind::kKernel, Phase::kForward);
  sequence.accesses = [&](size_t place, const OperatorSequence::Visitor& visitor) {
    for (const ByteAccess& access : accesses[place]) visitor(access);
  };
  using Bytes = std::vector<int64_t>;
  EXPECT_EQ(LiveBytesAcross(sequence, {0, 5}, {0, 4}, 5), (Bytes{0, 8, 12, 4, 4}));
  EXPECT_EQ(LiveBytesAcross(sequence, {0, 5}, {0, 4}, 3), (Bytes{0, 8, 8, 0, 0}));
  EXPECT_EQ(LiveBytesAcross(sequence, {1, 5}, {2, 4}, 5), (Bytes{4, 4, 4}));
}

}  // namespace
}  // namespace acltape::analyzer
