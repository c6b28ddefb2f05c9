// A replay call by call says of how many calls its compared outputs tell, as one of leaves does.
#include "tests/replayer/acl_fixture.h"

namespace acltape::test {
namespace {

// The coverage of each of the four ways to replay, which are alike.
void ExpectCoverage(const AclRecorded& recorded, int64_t covered, int64_t computed, int code) {
  recorded.ForEachWay([&](const replayer::ReplayReport& report, replayer::Mode, replayer::Streams) {
    EXPECT_EQ(report.coverage.covered, covered) << Explain(report);
    EXPECT_EQ(report.coverage.computed, computed);
    EXPECT_EQ(report.ExitCode(), code);
  });
}

// A stream, and three tensors of which the first has values.
struct StreamAndTensors {
  explicit StreamAndTensors(AclTraceBuilder& trace)
      : stream(trace.NewStream()),
        x(trace.Device({2})),
        y(trace.Device({2})),
        z(trace.Device({2})) {
    trace.Upload(x, Floats{1, -2});
  }
  int64_t stream;
  Tensor x, y, z;
};

TEST(AclCoverage, WhatComesToTheHostTellsOfTheCallsThatItWasMadeOf) {
  ExpectCoverage(AclRecorded([](AclTraceBuilder& trace) {
                   const auto [stream, x, y, z] = StreamAndTensors(trace);
                   trace.Op("aclnnRelu", stream, {In("self", x), Out("out", y)});
                   trace.Op("aclnnRelu", stream, {In("self", y), Out("out", z)});
                   trace.Synchronize(stream);
                   trace.Download(z, Floats{1, 0});
                 }),
                 2, 2, 0);
}

TEST(AclCoverage, ResultsThatNothingComparesAreNotKnown) {
  ExpectCoverage(AclRecorded([](AclTraceBuilder& trace) {
                   const auto [stream, x, y, z] = StreamAndTensors(trace);
                   trace.Op("aclnnRelu", stream, {In("self", x), Out("out", y)});
                   trace.After("out", Floats{1, 0});
                   trace.Op("aclnnRelu", stream, {In("self", x), Out("out", z)});
                   trace.Synchronize(stream);
                 }),
                 1, 2, 125);
}

TEST(AclCoverage, AnExecutionTellsOfTheCallsThatItsGraphHolds) {
  ExpectCoverage(AclRecorded([](AclTraceBuilder& trace) {
                   const auto [stream, x, y, z] = StreamAndTensors(trace);
                   trace.BeginCapture(stream);
                   trace.Op("aclnnRelu", stream, {In("self", x), Out("out", y)});
                   trace.Op("aclnnRelu", stream, {In("self", y), Out("out", z)});
                   const int64_t model = trace.EndCapture(stream);
                   for (int i = 0; i < 3; ++i) {
                     trace.Execute(model, stream);
                     trace.AfterWhole(z, Floats{1, 0});
                     trace.Synchronize(stream);
                   }
                 }),
                 6, 6, 0);
}

}  // namespace
}  // namespace acltape::test
