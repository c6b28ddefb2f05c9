// The order of captured calls by streams, events and graphs.
#include "replayer/bisect/captured_order.h"

#include <gtest/gtest.h>

namespace acltape::replayer {
namespace {

// In these scripts the numbers of calls in the table are those in the trace.
constexpr int kCalls = 100;

Launch Call(int call, int stream) { return {call, stream}; }

Script OneGraph(std::vector<Operation> inside) {
  Script script;
  script.streams = 2;
  script.calls.resize(kCalls);
  for (int call = 0; call < kCalls; ++call) script.calls[call].call_id = call;
  script.operations = {Call(90, 0), BeginCapture{0}, RecordEvent{0, 0}, WaitEvent{0, 1}};
  script.operations.insert(script.operations.end(), inside.begin(), inside.end());
  for (const Operation& end :
       {Operation(RecordEvent{9, 1}), Operation(WaitEvent{9, 0}), Operation(EndCapture{0})}) {
    script.operations.push_back(end);
  }
  return script;
}

TEST(CapturedOrder, CallsOfOneStreamAreOrdered) {
  const bisect::CapturedOrder order(OneGraph({Call(1, 1), Call(2, 1)}));
  EXPECT_TRUE(order.Before(1, 2));
  EXPECT_FALSE(order.Before(2, 1));
}

TEST(CapturedOrder, CallsOfTwoStreamsAreOrderedByAWaitOnly) {
  const bisect::CapturedOrder without(OneGraph({Call(1, 0), RecordEvent{1, 0}, Call(2, 1)}));
  EXPECT_FALSE(without.Before(1, 2));
  const bisect::CapturedOrder with(
      OneGraph({Call(1, 0), RecordEvent{1, 0}, WaitEvent{1, 1}, Call(2, 1), Call(3, 0)}));
  EXPECT_TRUE(with.Before(1, 2));
  EXPECT_FALSE(with.Before(3, 2)) << "launched after the record";
  EXPECT_FALSE(with.Before(2, 3));
}

TEST(CapturedOrder, WaitsReachThroughOtherStreams) {
  Script script = OneGraph({Call(1, 0), RecordEvent{1, 0}, WaitEvent{1, 1}, Call(2, 1),
                            RecordEvent{2, 1}, WaitEvent{2, 2}, Call(3, 2)});
  script.streams = 3;
  EXPECT_TRUE(bisect::CapturedOrder(script).Before(1, 3));
}

TEST(CapturedOrder, ACallOfSeveralLaunchesEndsWithItsLast) {
  const bisect::CapturedOrder order(OneGraph(
      {Call(1, 0), RecordEvent{1, 0}, Call(1, 0), WaitEvent{1, 1}, Call(2, 1), Call(3, 0)}));
  EXPECT_FALSE(order.Before(1, 2));
  EXPECT_TRUE(order.Before(1, 3));
}

TEST(CapturedOrder, GraphsAreOrderedByTheHost) {
  Script script = OneGraph({Call(1, 1)});
  for (const Operation& more :
       {Operation(BeginCapture{1}), Operation(Call(2, 0)), Operation(EndCapture{1})}) {
    script.operations.push_back(more);
  }
  const bisect::CapturedOrder order(script);
  EXPECT_TRUE(order.Before(1, 2));
  EXPECT_FALSE(order.Before(2, 1));
}

TEST(CapturedOrder, WhatIsNotCapturedHasNoOrder) {
  const bisect::CapturedOrder order(OneGraph({Call(1, 0)}));
  EXPECT_FALSE(order.Before(90, 1));
  EXPECT_FALSE(order.Before(1, 77));
}

}  // namespace
}  // namespace acltape::replayer
