#include "analyzer/steps/thread_groups.h"

#include <gtest/gtest.h>

#include <random>

#include "analyzer/steps/steps.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using test::In;
using test::Out;
using test::TemporaryTrace;
using test::Tensor;

// A thread of an ACL program: a stream and memory of its own, and a loop over them.
struct Loop {
  Loop(test::AclTraceBuilder& builder, int64_t number)
      : trace(builder),
        thread(number),
        stream(builder.NewStream()),
        a(builder.Device({4})),
        b(builder.Device({4})) {}

  // Issues a part of the loop's body, which has three.
  void Issue() {
    trace.Thread(thread);
    if (part == 0) trace.Op("aclnnRelu", stream, {In("self", a), Out("out", b)});
    if (part == 1) trace.Op("aclnnAbs", stream, {In("self", b), Out("out", a)});
    if (part == 2) trace.Synchronize(stream);
    part = (part + 1) % 3;
  }
  void IssueAll() {
    do Issue();
    while (part != 0);
  }

  test::AclTraceBuilder& trace;
  int64_t thread, stream;
  Tensor a, b;
  int part = 0;
};

// The first calls of the steps. Sets how many groups of threads work.
std::vector<int64_t> FindSteps(test::AclTraceBuilder& trace, const std::string& path,
                               size_t* groups = nullptr) {
  trace.Finish();
  const storage::Reader reader(path);
  Work work = LoadWork(reader);
  if (groups != nullptr) *groups = ThreadGroups(work).working();
  AssignSteps(work, nullptr);
  std::vector<int64_t> first_calls;
  for (const StepRange& step : work.steps) first_calls.push_back(step.first_call);
  return first_calls;
}

TEST(ThreadGroups, ThreadsThatRunSideBySideHaveNoCommonSteps) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    TemporaryTrace file("groups-apart");
    test::AclTraceBuilder trace(file.path());
    std::vector<Loop> loops;
    loops.reserve(3);
    for (int64_t thread = 2; thread < 5; ++thread) loops.emplace_back(trace, thread);
    std::mt19937 random(seed);
    for (int turn = 0; turn < 90; ++turn) loops[random() % loops.size()].Issue();
    size_t groups = 0;
    EXPECT_EQ(FindSteps(trace, file.path(), &groups), std::vector<int64_t>{}) << "seed " << seed;
    EXPECT_EQ(groups, 3u) << "the main thread makes streams and does no work";
  }
}

TEST(ThreadGroups, TheThreadThatDoesMostOfTheWorkHasTheSteps) {
  TemporaryTrace file("groups-most");
  test::AclTraceBuilder trace(file.path());
  Loop main(trace, 1);
  Loop helper(trace, 2);
  std::vector<int64_t> begins;
  for (int step = 0; step < 6; ++step) {
    begins.push_back(trace.last_call() + 1);
    main.Issue();
    if (step % 2 == 1) helper.Issue();
    main.Issue();
    main.Issue();
  }
  EXPECT_EQ(FindSteps(trace, file.path()), begins);
}

TEST(ThreadGroups, ThreadsThatHandOverMemoryWorkTogether) {
  TemporaryTrace file("groups-together");
  test::AclTraceBuilder trace(file.path());
  Loop first(trace, 1);
  Loop second(trace, 2);
  second.a = first.a;  // the second thread reads and writes what the first one does
  std::vector<int64_t> begins;
  for (int step = 0; step < 6; ++step) {
    begins.push_back(trace.last_call() + 1);
    first.IssueAll();
    second.IssueAll();
  }
  size_t groups = 0;
  const std::vector<int64_t> steps = FindSteps(trace, file.path(), &groups);
  EXPECT_EQ(groups, 0u) << "there is nothing to tell apart";
  EXPECT_GE(steps.size(), 6u);
}

TEST(ThreadGroups, WeightsThatTheMainThreadUploadedBeforeDoNotJoinItsThreads) {
  TemporaryTrace file("groups-weights");
  test::AclTraceBuilder trace(file.path());
  const Tensor weights = trace.Device({4});
  const int64_t stream = trace.NewStream();
  trace.Upload(weights, std::vector<float>{1, 2, 3, 4}, stream);
  trace.Synchronize(stream);
  Loop first(trace, 2);
  Loop second(trace, 3);
  for (int step = 0; step < 6; ++step) {
    for (Loop* loop : {&first, &second}) {
      loop->IssueAll();
      trace.Op("aclnnAbs", loop->stream, {In("self", weights), Out("out", loop->b)});
    }
  }
  size_t groups = 0;
  EXPECT_EQ(FindSteps(trace, file.path(), &groups), std::vector<int64_t>{});
  EXPECT_EQ(groups, 3u);
}

}  // namespace
}  // namespace acltape::analyzer
