#include <gtest/gtest.h>
#include <sqlite3.h>

#include "storage/database.h"
#include "tests/replayer/small_programs.h"

namespace acltape::replayer {
namespace {

using storage::DType;
using test::Add;
using test::Explain;
using test::Floats;
using test::In;
using test::Int;
using test::Numbers;
using test::Out;
using test::Real;
using test::Recorded;
using test::Tensor;
using test::TraceBuilder;
using test::Written;

TEST(EagerReplay, AddAndMatrixProductEqualTheRecordedBits) {
  const Recorded recorded([](TraceBuilder& trace) {
    const Tensor a = trace.NewTensor({3, 4});
    const Tensor b = trace.NewTensor({4, 2});
    const Tensor c = trace.NewTensor({3, 2});
    const Tensor bias = trace.NewTensor({2});
    const Tensor d = trace.NewTensor({3, 2});
    const Floats product = test::MatMul(Numbers(12, 1), Numbers(8, 2), 3, 4, 2);
    trace.Call("aten::mm", {In("self", a), In("mat2", b)}, {Out("out", c)})
        .Before(a, Numbers(12, 1))
        .Before(b, Numbers(8, 2))
        .After("out", product);
    Add(trace, c, bias, d);
    trace.Before(bias, Floats{10, 20}).After("out", test::Sum(product, {10, 20}));
  });
  const ReplayReport report = recorded.Replay(Mode::kEager);
  EXPECT_EQ(report.differing, 0) << Explain(report);
  EXPECT_EQ(report.compared, 2);
  EXPECT_EQ(report.equal, 2);
  EXPECT_EQ(report.kernels, 2);
  EXPECT_EQ(report.substituted, 0);
  EXPECT_EQ(report.ExitCode(), 0);
}

TEST(EagerReplay, AWrongRecordedValueIsAMismatchWithPlaceAndDistance) {
  const Recorded recorded([](TraceBuilder& trace) {
    const Tensor a = trace.NewTensor({3});
    trace.Call("aten::relu", {In("self", a)}, {Out("out", trace.NewTensor({3}))})
        .Before(a, Floats{1, 2, 3})
        .After("out", Floats{1, 2.5, 3});
  });
  ReplayOptions options;
  const ReplayReport report = recorded.Replay(options);
  ASSERT_EQ(report.differing, 1);
  ASSERT_EQ(report.mismatches.size(), 1u);
  const Mismatch& mismatch = report.mismatches[0];
  EXPECT_EQ(mismatch.call_id, 1);
  EXPECT_EQ(mismatch.op, "aten::relu");
  EXPECT_EQ(mismatch.metrics.first_index, 1);
  EXPECT_EQ(mismatch.metrics.first_a, "2.5");
  EXPECT_EQ(mismatch.metrics.first_b, "2");
  EXPECT_EQ(mismatch.metrics.max_abs, 0.5);
  EXPECT_EQ(report.ExitCode(), 1);
}

TEST(EagerReplay, InPlaceOperatorsThroughViewsChangeTheWholeBuffer) {
  const Recorded recorded([](TraceBuilder& trace) {
    const Tensor a = trace.NewTensor({2, 3});
    const Tensor column = trace.View(a, {2}, {3}, 1);  // the middle column
    trace
        .Call("aten::select.int", {In("self", a), Int("dim", 1), Int("index", 1)},
              {Out("out", column)})
        .Before(a, Floats{1, 2, 3, 4, 5, 6});
    trace.Call("aten::mul_.Scalar", {Written("self", column), Real("other", 10)})
        .After("self", Floats{20, 50});
    const Tensor t = trace.View(a, {3, 2}, {1, 3});
    trace.Call("aten::t", {In("self", a)}, {Out("out", t)});
    trace.Call("aten::clone", {In("self", t)}, {Out("out", trace.NewTensor({3, 2}))})
        .After("out", Floats{1, 4, 20, 50, 3, 6});
  });
  const ReplayReport report = recorded.Replay(Mode::kEager);
  EXPECT_EQ(report.differing, 0) << Explain(report);
  EXPECT_EQ(report.compared, 2);
  EXPECT_EQ(report.views, 2);
}

TEST(EagerReplay, TensorsWithoutDimensionsAndWithoutElementsWork) {
  const Recorded recorded([](TraceBuilder& trace) {
    const Tensor a = trace.NewTensor({});
    const Tensor number = trace.NewTensor({}, DType::kFloat64);
    const Tensor scaled = trace.NewTensor({});
    // A Python number: the result stays float32 though the number is a double.
    trace.Call("aten::mul.Tensor", {In("self", a), In("other", number)}, {Out("out", scaled)})
        .Before(a, Floats{3})
        .Before(number, std::vector<double>{0.1})
        .After("out", Floats{3.0f * 0.1f});
    const Tensor empty = trace.NewTensor({0, 4});
    trace.Call("aten::relu", {In("self", empty)}, {Out("out", trace.NewTensor({0, 4}))});
    trace.Call("aten::_local_scalar_dense", {In("self", scaled)},
               {Real("out", 3.0f * 0.1f, storage::Direction::kOut)});
  });
  const ReplayReport report = recorded.Replay(Mode::kEager);
  EXPECT_EQ(report.differing, 0) << Explain(report);
  EXPECT_EQ(report.compared, 2);  // the product and the host read
  EXPECT_EQ(report.host_reads, 1);
}

TEST(EagerReplay, AHostReadOfAnotherValueIsAMismatch) {
  const Recorded recorded([](TraceBuilder& trace) {
    const Tensor a = trace.NewTensor({});
    trace
        .Call("aten::_local_scalar_dense", {In("self", a)},
              {Real("out", 2, storage::Direction::kOut)})
        .Before(a, Floats{3});
  });
  const ReplayReport report = recorded.Replay(Mode::kEager);
  ASSERT_EQ(report.differing, 1);
  EXPECT_EQ(report.mismatches[0].metrics.first_a, "2");
  EXPECT_EQ(report.mismatches[0].metrics.first_b, "3");
}

TEST(EagerReplay, RandomLeavesComeFromTheirRecordedResults) {
  const Recorded recorded([](TraceBuilder& trace) {
    const Tensor noise = trace.NewTensor({4});
    const Tensor strided = trace.View(noise, {2}, {2});
    trace.Call("aten::normal_", {Written("self", noise), Real("mean", 0), Real("std", 1)})
        .After("self", Floats{1, -2, 3, -4});
    // A random write into every second element leaves the others.
    trace.Call("aten::uniform_", {Written("self", strided), Real("from", 0), Real("to", 1)})
        .After("self", Floats{0.5, 0.25});
    trace.Call("aten::relu", {In("self", noise)}, {Out("out", trace.NewTensor({4}))})
        .After("out", Floats{0.5, 0, 0.25, 0});
  });
  const ReplayReport report = recorded.Replay(Mode::kEager);
  EXPECT_EQ(report.differing, 0) << Explain(report);
  EXPECT_EQ(report.sources, 2);
  EXPECT_EQ(report.substituted, 0);
  EXPECT_EQ(report.compared, 1);
}

TEST(EagerReplay, ABufferThatChangedBetweenCallsIsFedAgain) {
  const Recorded recorded([](TraceBuilder& trace) {
    const Tensor a = trace.NewTensor({2});
    for (const float value : {1.0f, 5.0f}) {
      trace.Call("aten::relu", {In("self", a)}, {Out("out", trace.NewTensor({2}))})
          .Before(a, Floats{value, -value})
          .After("out", Floats{value, 0});
    }
  });
  const ReplayReport report = recorded.Replay(Mode::kEager);
  EXPECT_EQ(report.differing, 0) << Explain(report);
}

TEST(EagerReplay, AnOperatorWithoutARuleIsSubstitutedAndCounted) {
  const Recorded recorded([](TraceBuilder& trace) {
    const Tensor a = trace.NewTensor({2});
    const Tensor b = trace.NewTensor({2});
    trace.Call("aten::special_i1", {In("self", a)}, {Out("out", b)})
        .Before(a, Floats{1, 2})
        .After("out", Floats{-0.5, 0.5});
    trace.Call("aten::relu", {In("self", b)}, {Out("out", trace.NewTensor({2}))})
        .After("out", Floats{0, 0.5});
  });
  const ReplayReport report = recorded.Replay(Mode::kEager);
  EXPECT_EQ(report.differing, 0) << Explain(report);
  EXPECT_EQ(report.substituted, 1);
  EXPECT_EQ(report.compared, 1);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0].rule, "LOWER-SUBSTITUTED");
  EXPECT_NE(report.notes[0].message.find("aten::special_i1"), std::string::npos);
}

TEST(EagerReplay, AnOperatorThatCanNeitherRunNorBeSubstitutedIsNamed) {
  const Recorded recorded([](TraceBuilder& trace) {
    const Tensor a = trace.NewTensor({2});
    trace.Call("aten::special_i1", {In("self", a)}, {Out("out", trace.NewTensor({2}))})
        .Before(a, Floats{1, 2});
  });
  try {
    recorded.Replay(Mode::kEager);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kTrace);
    EXPECT_NE(std::string(error.what()).find("aten::special_i1"), std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("--payload all"), std::string::npos) << error.what();
  }
}

TEST(EagerReplay, ADeviceLibraryThatIsNotThereIsADeviceError) {
  const Recorded recorded([](TraceBuilder& trace) {
    const Tensor a = trace.NewTensor({2});
    trace.Call("aten::relu", {In("self", a)}, {Out("out", trace.NewTensor({2}))})
        .Before(a, Floats{1, 2});
  });
  ReplayOptions options;
  options.device_lib = "/nonexistent/folder";
  try {
    recorded.Replay(options);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
    EXPECT_NE(std::string(error.what()).find("/nonexistent/folder"), std::string::npos);
  }
}

TEST(EagerReplay, DigestsWithoutPayloadsAreEnoughToCompare) {
  for (const bool right : {true, false}) {
    const Recorded recorded([&](TraceBuilder& trace) {
      const Tensor a = trace.NewTensor({2});
      trace.Call("aten::relu", {In("self", a)}, {Out("out", trace.NewTensor({2}))})
          .Before(a, Floats{1, -2})
          .After("out", right ? Floats{1, 0} : Floats{1, 9}, /*payload=*/false);
    });
    const ReplayReport report = recorded.Replay(Mode::kEager);
    EXPECT_EQ(report.compared, 1);
    EXPECT_EQ(report.differing, right ? 0 : 1);
    if (!right) {
      ASSERT_EQ(report.mismatches.size(), 1u);
      EXPECT_TRUE(report.mismatches[0].digest_only);
    }
  }
}

TEST(EagerReplay, RunsComparisonsAndFindingsAreRowsOfTheTrace) {
  const Recorded recorded([](TraceBuilder& trace) {
    const Tensor a = trace.NewTensor({2});
    trace
        .Call("aten::gelu", {In("self", a), test::Text("approximate", "none")},
              {Out("out", trace.NewTensor({2}))})
        .Before(a, Floats{0, 0})
        .After("out", Floats{0, 1});
  });
  const ReplayReport report = recorded.Replay(Mode::kEager);
  EXPECT_EQ(report.differing, 1);
  const storage::Reader reader(recorded.path());
  const auto count = [&](const std::string& query) {
    return reader.database().Integer(query.c_str(), /*otherwise=*/-1);
  };
  EXPECT_EQ(count("SELECT exit_code FROM run WHERE mode = 'eager'"), 1);
  EXPECT_EQ(count("SELECT count(*) FROM comparison WHERE verdict = 'different' AND call_id = 1"),
            1);
  EXPECT_EQ(count("SELECT json_extract(metrics, '$.first_index') FROM comparison"), 1);
  EXPECT_EQ(count("SELECT count(*) FROM finding WHERE rule = 'LOWER-GELU' AND call_id = 1"), 1);
}

}  // namespace
}  // namespace acltape::replayer
