// The captures of traces written by hand: why each was made, and what they took.
#include "analyzer/lint/recaptures.h"

#include <gtest/gtest.h>

#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using test::AclTraceBuilder;
using test::In;
using test::Int;
using test::Out;
using test::TemporaryTrace;
using test::Tensor;
using test::Written;

class RecapturesTest : public testing::Test {
 protected:
  RecapturesTest() : file_("recaptures"), trace(file_.path()) {
    main = trace.NewStream();
    side = trace.NewStream();
  }

  void Muls(const Tensor& from, int64_t other, const Tensor& to) {
    trace.Op("aclnnMuls", main, {In("self", from), Int("other", other), Out("out", to)});
  }
  // relu into a place of the graph's own, then muls from there.
  int64_t Capture(const Tensor& from, int64_t other, const Tensor& to) {
    trace.BeginCapture(main);
    const Tensor between = trace.Device(from.layout.shape);
    trace.Op("aclnnRelu", main, {In("self", from), Out("out", between)});
    Muls(between, other, to);
    return trace.EndCapture(main);
  }

  const lint::CaptureList& Run() {
    trace.Finish();
    reader_ = std::make_unique<storage::Reader>(file_.path());
    work_ = LoadWork(*reader_);
    return list_ = lint::FindCaptures(work_);
  }
  // "other operators, shape, address"
  std::string Reasons() const {
    std::string text;
    for (const lint::CaptureRow& row : list_.captures) {
      text += (text.empty() ? "" : ", ") + std::string(lint::CaptureReasonName(row.reason));
    }
    return text;
  }

  TemporaryTrace file_;
  AclTraceBuilder trace;
  int64_t main, side;
  std::unique_ptr<storage::Reader> reader_;
  Work work_;
  lint::CaptureList list_;
};

TEST_F(RecapturesTest, AProgramWithoutCapturesHasNone) {
  const Tensor a = trace.Device({4}), b = trace.Device({4});
  Muls(a, 1, b);
  EXPECT_TRUE(Run().captures.empty());
  EXPECT_EQ(list_.most_alive, 0);
}

TEST_F(RecapturesTest, AnotherShapeIsNamedWithBothSizes) {
  const Tensor a = trace.Device({4}), b = trace.Device({4});
  const Tensor longer = trace.Device({8}), b8 = trace.Device({8});
  Capture(a, 2, b);
  Capture(longer, 2, b8);
  Run();
  EXPECT_EQ(Reasons(), "other operators, shape");
  const lint::CaptureRow& row = list_.captures[1];
  EXPECT_EQ(row.earlier_model, 1);
  EXPECT_EQ(row.difference.find("dimension 0 of self of call "), 0u) << row.difference;
  EXPECT_NE(row.difference.find(" aclnnRelu is 8 instead of 4"), std::string::npos)
      << row.difference;
  EXPECT_EQ(row.launches, 2);
}

TEST_F(RecapturesTest, AHostArgumentIsNamedWithBothValues) {
  const Tensor a = trace.Device({4}), b = trace.Device({4});
  Capture(a, 2, b);
  Capture(a, 3, b);
  Run();
  EXPECT_EQ(Reasons(), "other operators, argument");
  EXPECT_NE(list_.captures[1].difference.find("other of call "), std::string::npos);
  EXPECT_NE(list_.captures[1].difference.find(" aclnnMuls is 3 instead of 2"), std::string::npos)
      << list_.captures[1].difference;
}

TEST_F(RecapturesTest, WhatIsReadElsewhereIsNamedBeforeWhatIsWritten) {
  const Tensor a = trace.Device({4}), b = trace.Device({4});
  const Tensor c = trace.Device({4}), d = trace.Device({4});
  Capture(a, 2, b);
  Capture(c, 2, d);
  Capture(c, 2, b);
  Run();
  EXPECT_EQ(Reasons(), "other operators, address, address");
  EXPECT_EQ(list_.captures[1].difference.find("self of call "), 0u) << list_.captures[1].difference;
  EXPECT_NE(list_.captures[1].difference.find(
                " aclnnRelu, which it reads, lies elsewhere; 1 more differ"),
            std::string::npos)
      << list_.captures[1].difference;
  // Against the one before, which read the same place.
  EXPECT_EQ(list_.captures[2].earlier_model, 2);
  EXPECT_NE(list_.captures[2].difference.find(" aclnnMuls, which it writes, lies elsewhere"),
            std::string::npos)
      << list_.captures[2].difference;
}

TEST_F(RecapturesTest, WhatIsUpdatedElsewhereIsNamedFirst) {
  const Tensor a = trace.Device({4}), b = trace.Device({4});
  for (int i = 0; i < 2; ++i) {
    const Tensor total = trace.Device({4}), input = trace.Device({4});
    trace.BeginCapture(main);
    trace.Op("aclnnRelu", main, {In("self", input), Out("out", b)});
    trace.Op("aclnnInplaceAdd", main, {Written("selfRef", total), In("other", b)});
    trace.EndCapture(main);
  }
  Run();
  EXPECT_EQ(Reasons(), "other operators, address");
  EXPECT_NE(list_.captures[1].difference.find(
                " aclnnInplaceAdd, which it updates, lies elsewhere; 1 more differ"),
            std::string::npos)
      << list_.captures[1].difference;
}

TEST_F(RecapturesTest, ACaptureWithoutOperatorsIsEmpty) {
  trace.BeginCapture(main);
  trace.EndCapture(main);
  Run();
  EXPECT_EQ(Reasons(), "empty");
  EXPECT_EQ(list_.captures[0].launches, 0);
}

TEST_F(RecapturesTest, TheSameAgainHasNoReasonThatTheTraceShows) {
  const Tensor a = trace.Device({4}), b = trace.Device({4});
  const Tensor longer = trace.Device({8}), b8 = trace.Device({8});
  Capture(a, 2, b);
  Capture(longer, 2, b8);
  Capture(a, 2, b);
  Run();
  EXPECT_EQ(Reasons(), "other operators, shape, nothing");
  EXPECT_EQ(list_.captures[2].earlier_model, 1);
  EXPECT_EQ(list_.operator_lists, 1u);
}

TEST_F(RecapturesTest, ExecutionsStreamsAndGraphsAtATimeAreCounted) {
  const Tensor a = trace.Device({4}), b = trace.Device({4}), c = trace.Device({4});
  const int64_t fork = trace.NewEvent(), join = trace.NewEvent();
  trace.BeginCapture(main);
  trace.Record(fork, main);
  trace.Wait(side, fork);
  trace.Op("aclnnRelu", side, {In("self", a), Out("out", c)});
  trace.Record(join, side);
  trace.Wait(main, join);
  const int64_t forked = trace.EndCapture(main);
  trace.Execute(forked, main);
  trace.Execute(forked, main);
  trace.Synchronize(main);
  trace.Interface("aclmdlRIDestroy", {Int("modelRI", forked)});
  Capture(a, 2, b);
  Run();
  ASSERT_EQ(list_.captures.size(), 2u);
  EXPECT_EQ(list_.captures[0].stream_numbers, 2);
  EXPECT_EQ(list_.captures[0].executions, 2);
  EXPECT_NE(list_.captures[0].destroy_call, 0);
  EXPECT_EQ(list_.captures[1].executions, 0);
  EXPECT_EQ(list_.captures[1].destroy_call, 0);
  EXPECT_EQ(Reasons(), "other operators, other operators");
  EXPECT_EQ(list_.most_alive, 1);
  EXPECT_EQ(list_.most_streams, 2);
}

}  // namespace
}  // namespace acltape::analyzer
