#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "analyzer/calls/level.h"
#include "analyzer/steps/steps.h"
#include "analyzer/waits/early_lines.h"
#include "analyzer/waits/host_waits.h"
#include "analyzer/waits/mends.h"
#include "analyzer/waits/step_modes.h"
#include "analyzer/waits/timed_source.h"
#include "analyzer/waits/wait_lines.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer::waits {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the words of the trace builder

using Floats = std::vector<float>;

// A program with two streams and some memory.
class Waits : public ::testing::Test {
 protected:
  Waits() : file_("waits"), trace_(file_.path()) {
    main_ = trace_.NewStream();
    side_ = trace_.NewStream();
    a_ = trace_.Device({4});
    b_ = trace_.Device({4});
    c_ = trace_.Device({4});
    pinned_ = trace_.Pinned({4});
  }

  void Relu(const Tensor& from, const Tensor& to, int64_t stream) {
    trace_.Op("aclnnRelu", stream, {In("self", from), Out("out", to)});
  }
  int64_t Captured() {
    trace_.BeginCapture(main_);
    Relu(a_, b_, main_);
    Relu(b_, a_, main_);
    return trace_.EndCapture(main_);
  }

  // "not needed, needed: a copy by the host follows" of the waits in order.
  std::string Needs() {
    constexpr std::string_view kNames[] = {"not judged", "no work",    "last",
                                           "needed",     "not needed", "not known"};
    std::string text;
    WithWork([&](const Work& work) {
      for (const HostWait& wait : FindHostWaits(work).waits) {
        text += (text.empty() ? "" : ", ") + std::string(kNames[static_cast<size_t>(wait.need)]);
        if (!wait.why.empty()) text += ": " + std::string(wait.why);
      }
    });
    return text;
  }

  std::vector<std::string> Advice() {
    std::vector<std::string> found;
    WithWork([&](const Work& work) {
      const lint::Places places(work);
      lint::Words words(work, places);
      for (const WaitLine& line : FindWaitLines(work, FindHostWaits(work), places, words)) {
        if (!line.advice.empty()) found.push_back(line.advice);
      }
    });
    return found;
  }

  std::vector<std::string> EarlyAdvice() {
    std::vector<std::string> found;
    WithWork([&](const Work& work) {
      const lint::Places places(work);
      lint::Words words(work, places);
      for (const EarlyLine& line : FindEarlyLines(work, FindEarlyWaits(work), places, words)) {
        found.push_back(line.advice);
      }
    });
    return found;
  }

  void WithWork(const std::function<void(const Work&)>& use) {
    if (!finished_) trace_.Finish();
    finished_ = true;
    const storage::Reader reader(file_.path());
    Work work = LoadWork(reader, Level::kAcl);
    AssignSteps(work, nullptr);
    use(work);
  }

  TemporaryTrace file_;
  AclTraceBuilder trace_;
  bool finished_ = false;
  int64_t main_ = 0;
  int64_t side_ = 0;
  Tensor a_, b_, c_, pinned_;
};

using Lines = std::vector<std::string>;

TEST_F(Waits, ASynchroniseBeforeEachReplayIsNotNeeded) {
  const int64_t graph = Captured();
  for (int i = 0; i < 4; ++i) {
    trace_.Synchronize(main_);
    trace_.Execute(graph, main_);
  }
  trace_.Synchronize(main_);
  trace_.Download(a_, Floats{1, 2, 3, 4});
  // The first has nothing to wait for, and the copy at the end needs the last one.
  EXPECT_EQ(Needs(),
            "no work, not needed, not needed, not needed, needed: a copy by the host follows, "
            "not judged");
}

TEST_F(Waits, ASynchroniseBeforeTheHostReadsIsNeeded) {
  for (int i = 0; i < 3; ++i) {
    Relu(a_, b_, main_);
    trace_.Synchronize(main_);
    trace_.Download(b_, Floats{1, 2, 3, 4});
  }
  EXPECT_EQ(Advice(), (Lines{"blocks the host 3 times: copy with aclrtMemcpyAsync and pinned "
                             "memory, and wait for an event where the value is used"}));
  EXPECT_EQ(Needs().find("not needed"), std::string::npos);
}

TEST_F(Waits, AReadOfOtherBytesDoesNotNeedIt) {
  for (int i = 0; i < 3; ++i) {
    Relu(a_, b_, main_);
    trace_.Synchronize(main_);
    trace_.Download(c_, Floats{1, 2, 3, 4});
  }
  EXPECT_EQ(Needs(), "not needed, not judged, not needed, not judged, last, not judged");
}

TEST_F(Waits, WorkThatUsesPinnedMemoryIsNotJudged) {
  for (int i = 0; i < 3; ++i) {
    trace_.UploadPinned(a_, pinned_, Floats{1, 2, 3, 4}, main_);
    Relu(a_, b_, main_);
    trace_.Synchronize(main_);  // the program fills the pinned memory again
  }
  EXPECT_EQ(Needs(),
            "not known: the work uses memory of the host, not known: the work uses memory of the "
            "host, not known: the work uses memory of the host");
  EXPECT_EQ(Advice(), Lines{});
}

TEST_F(Waits, AWaitThatOrdersAnotherStreamIsNeeded) {
  for (int i = 0; i < 3; ++i) {
    Relu(a_, b_, main_);
    trace_.Synchronize(main_);
    Relu(b_, c_, side_);
    trace_.Synchronize(side_);
  }
  EXPECT_EQ(Needs().find("needed: work on another stream uses it next"), 0U);
  EXPECT_EQ(Advice(), Lines{});
}

TEST_F(Waits, AnEventThatOrdersTheStreamsTakesThePlaceOfAWait) {
  const int64_t event = trace_.NewEvent();
  for (int i = 0; i < 2; ++i) {
    Relu(a_, b_, main_);
    trace_.Record(event, main_);
    trace_.Wait(side_, event);
    trace_.Synchronize(main_);
    Relu(b_, c_, side_);
  }
  trace_.Synchronize(main_);
  EXPECT_EQ(Needs(), "not needed, not needed, no work");
}

TEST_F(Waits, AWaitBeforeMemoryIsFreedACaptureOrATimeIsNeeded) {
  Relu(a_, b_, main_);
  trace_.Synchronize(main_);
  trace_.Free(b_);
  Relu(a_, c_, main_);
  trace_.Synchronize(main_);
  trace_.BeginCapture(main_);
  Relu(a_, c_, main_);
  trace_.EndCapture(main_);
  EXPECT_EQ(Needs(), "needed: its memory is freed next, needed: a capture follows");
}

TEST_F(Waits, TwoWaitsInARowMayBoundATime) {
  for (int i = 0; i < 3; ++i) {
    trace_.Synchronize(main_);
    Relu(a_, b_, main_);
    trace_.Synchronize(main_);
  }
  EXPECT_EQ(Advice(), Lines{});
  EXPECT_EQ(Needs().find("not needed"), std::string::npos);
}

TEST_F(Waits, TheLastWaitOfAProgramIsNotJudged) {
  Relu(a_, b_, main_);
  trace_.Synchronize(main_);
  EXPECT_EQ(Needs(), "last");
}

TEST_F(Waits, ACopyFromMemoryThatIsNotPinnedBlocksTheHost) {
  for (int i = 0; i < 3; ++i) {
    trace_.Upload(a_, Floats{1, 2, 3, 4}, main_);
    Relu(a_, b_, main_);
  }
  EXPECT_EQ(Advice(), (Lines{"blocks the host 3 times: the host's memory is not pinned, so that "
                             "the copy blocks: allocate it with aclrtMallocHost"}));
}

TEST_F(Waits, ACopyFromPinnedMemoryDoesNotWait) {
  for (int i = 0; i < 3; ++i) {
    trace_.UploadPinned(a_, pinned_, Floats{1, 2, 3, 4}, main_);
    Relu(a_, b_, main_);
  }
  EXPECT_EQ(Needs(), "");
}

TEST_F(Waits, CopiesOfASetupInARowAreNoAdvice) {
  for (int i = 0; i < 3; ++i) trace_.Upload(a_, Floats{1, 2, 3, 4}, main_);
  Relu(a_, b_, main_);
  EXPECT_EQ(Advice(), Lines{});
}

TEST_F(Waits, AStreamThatWaitsBeforeItsOwnWorkWaitsTooEarly) {
  const Tensor shared = trace_.Device({4}), routed = trace_.Device({4}), out = trace_.Device({4});
  const int64_t event = trace_.NewEvent();
  Relu(a_, shared, side_);
  trace_.Record(event, side_);
  trace_.Wait(main_, event);
  Relu(a_, b_, main_);
  Relu(b_, routed, main_);
  trace_.Op("aclnnAdd", main_, {In("self", shared), In("other", routed), Out("out", out)});
  EXPECT_EQ(EarlyAdvice(),
            (Lines{"waits too early: nothing on stream 1 needs aclnnRelu of stream 2 before "
                   "aclnnAdd; wait just before that, so that aclnnRelu and what follows it run "
                   "beside it"}));
}

TEST_F(Waits, AStreamThatWaitsForWhatItNeedsNextDoesNot) {
  const Tensor shared = trace_.Device({4}), out = trace_.Device({4});
  const int64_t event = trace_.NewEvent();
  Relu(a_, shared, side_);
  Relu(a_, b_, main_);
  trace_.Record(event, side_);
  trace_.Wait(main_, event);
  trace_.Op("aclnnAdd", main_, {In("self", shared), In("other", b_), Out("out", out)});
  EXPECT_EQ(EarlyAdvice(), Lines{});
}

TEST_F(Waits, ABlockThatIsUsedAgainNeedsTheWait) {
  const int64_t event = trace_.NewEvent();
  Relu(a_, b_, side_);
  trace_.Record(event, side_);
  trace_.Wait(main_, event);
  Relu(c_, a_, main_);  // overwrites what the side stream reads
  Relu(b_, c_, main_);
  EXPECT_EQ(EarlyAdvice(), Lines{});
}

TEST_F(Waits, AQueryWouldNotHaveWaitedInPlaceOfAnEarlierWait) {
  const int64_t event = trace_.NewEvent();
  Relu(a_, b_, main_);
  trace_.Record(event, main_);
  trace_.Synchronize(main_);
  trace_.Interface("aclrtQueryEventStatus", {Int("event", event), Int("status", 1)});
  trace_.Download(b_, Floats{1, 2, 3, 4});
  EXPECT_EQ(Needs(), "needed: a copy by the host follows, not judged, not judged");
}

TEST_F(Waits, WhatTheAwaitedStreamWaitedForIsAwaitedToo) {
  const int64_t third = trace_.NewStream();
  const int64_t first = trace_.NewEvent(), second = trace_.NewEvent();
  const Tensor d = trace_.Device({4});
  Relu(a_, b_, third);
  trace_.Record(first, third);
  trace_.Wait(side_, first);
  Relu(a_, c_, side_);
  trace_.Record(second, side_);
  trace_.Wait(main_, second);
  Relu(b_, d, main_);  // the third stream made b
  Relu(c_, d, main_);
  EXPECT_EQ(EarlyAdvice(), Lines{});
}

TEST_F(Waits, WorkThatTheHostHasWaitedForIsNoEarlyWait) {
  const int64_t event = trace_.NewEvent();
  const Tensor d = trace_.Device({4});
  Relu(a_, b_, side_);
  trace_.Record(event, side_);
  trace_.Synchronize(side_);
  trace_.Wait(main_, event);
  Relu(a_, c_, main_);
  Relu(b_, d, main_);
  EXPECT_EQ(EarlyAdvice(), Lines{});
}

TEST_F(Waits, AStreamThatWaitsForTheWaitingOneMayNeedIt) {
  const int64_t third = trace_.NewStream();
  const int64_t event = trace_.NewEvent(), next = trace_.NewEvent();
  const Tensor d = trace_.Device({4});
  Relu(a_, b_, side_);
  trace_.Record(event, side_);
  trace_.Wait(main_, event);
  Relu(a_, c_, main_);
  trace_.Record(next, main_);
  trace_.Wait(third, next);
  Relu(b_, d, third);  // relies on both waits
  Relu(b_, c_, main_);
  EXPECT_EQ(EarlyAdvice(), Lines{});
}

TEST_F(Waits, TheForkOfACaptureIsNoEarlyWait) {
  const int64_t fork = trace_.NewEvent(), join = trace_.NewEvent();
  trace_.BeginCapture(main_);
  Relu(a_, b_, main_);
  trace_.Record(fork, main_);
  trace_.Wait(side_, fork);  // joins the capture, so that it cannot come later
  Relu(a_, c_, side_);
  Relu(b_, c_, side_);
  trace_.Record(join, side_);
  trace_.Wait(main_, join);
  trace_.EndCapture(main_);
  EXPECT_EQ(EarlyAdvice(), Lines{});
}

TEST_F(Waits, AStepWhoseSizeNoGraphHasSaysSo) {
  const int64_t graph = Captured();
  const Tensor large = trace_.Device({8}), result = trace_.Device({8});
  for (int i = 0; i < 4; ++i) trace_.Execute(graph, main_);
  Relu(large, result, main_);
  WithWork([](const Work& found) {
    Work work = found;
    work.steps.clear();
    for (int64_t step = 0; step < 5; ++step) {  // the last five calls
      const int64_t call = static_cast<int64_t>(work.size()) - 5 + step;
      work.AddStep({step, call, call + 1, "test"});
    }
    const std::vector<StepModeRow> rows = FindStepModes(work);
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].mode, StepMode::kGraphs);
    EXPECT_EQ(rows[0].steps, 4);
    EXPECT_EQ(rows[0].in_graphs, 8);
    EXPECT_EQ(rows[1].mode, StepMode::kEager);
    EXPECT_EQ(rows[1].reason, "no graph has its size: aclnnRelu takes [8], and in graphs [4]");
  });
}

std::string MendBegin(const WaitFacts& facts) { return std::string(MendOf(facts).substr(0, 40)); }

TEST(Mends, AreThoseOfTheFrameworksPartThatWaits) {
  WaitFacts item;
  item.called = "aten::item";
  item.inner = "aten::_local_scalar_dense";
  EXPECT_EQ(MendBegin(item), "keep the value as a tensor and read it o");
  item.frames = "GradScaler._maybe_opt_step\nGradScaler.step\n";
  EXPECT_EQ(MendBegin(item), "GradScaler reads once a step whether a g");
  item.frames = "clip_grad_norm_\n";
  EXPECT_EQ(MendBegin(item), "clip_grad_norm_ reads the norm for error");
  item.frames = "Optimizer.step#AdamW.step\n";
  EXPECT_NE(MendOf(item).find("capturable=True"), std::string_view::npos);
  WaitFacts mask;
  mask.called = "aten::index.Tensor";
  mask.inner = "aten::nonzero";
  EXPECT_EQ(MendBegin(mask), "a boolean mask makes a result whose size");
}

TEST(Mends, OfACopyDependOnWhereItsMemoryLies) {
  WaitFacts copy;
  copy.called = "aten::to.device";
  copy.inner = "aten::_to_copy";
  copy.copy = CopySide::kFromPageable;
  EXPECT_EQ(MendBegin(copy), "pin the memory (pin_memory(), or pin_mem");
  copy.non_blocking = true;
  EXPECT_EQ(MendBegin(copy), "non_blocking=True blocks all the same, b");
  copy.made_by = "aten::randn";
  EXPECT_EQ(MendBegin(copy), "the random numbers are made on the host:");
  copy.copy = CopySide::kFromPinned;
  EXPECT_EQ(MendOf(copy), "");
  copy.non_blocking = false;
  EXPECT_EQ(MendOf(copy), "the memory is pinned: copy with non_blocking=True");
}

TEST(TimedSource, IsOneThatTakesATimeBesideTheLine) {
  const TemporaryTrace file("timed-source");
  std::ofstream(file.path()) << "import time\n\n\n\n\nbegin = time.perf_counter()\nstep()\n"
                                "synchronize()\n\n\n\n\n\nsynchronize()\n";
  constexpr int64_t kLater = int64_t{1} << 62;
  const auto at_line = [&](int64_t number) {
    const SourceLine line{file.path(), number, "main"};
    return LookForTimes(&line, "/", kLater);
  };
  EXPECT_EQ(at_line(8), TimedSource::kTimed);
  EXPECT_EQ(at_line(14), TimedSource::kNotTimed);
  const SourceLine line{file.path(), 14, "main"};
  EXPECT_EQ(LookForTimes(&line, "/", 0), TimedSource::kNotRead) << "changed since";
  const SourceLine gone{file.path() + ".gone", 14, "main"};
  EXPECT_EQ(LookForTimes(&gone, "/", kLater), TimedSource::kNotRead);
}

}  // namespace
}  // namespace acltape::analyzer::waits
