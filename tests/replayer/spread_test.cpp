// The errors that are a call's own, and how far they spread, on graphs whose answer is known.
#include "replayer/prove/spread.h"

#include <gtest/gtest.h>

#include "tests/analyzer/trace_builder.h"

namespace acltape::replayer {
namespace {

using test::In;
using test::Out;
using test::Tensor;
using test::TraceBuilder;

// Calls 1 to 6 of each of two steps:
//   a = relu(x); b = relu(a); c = relu(b); d = add(a, c); e = relu(y); f = add(d, e)
class Spread : public testing::Test {
 protected:
  Spread() : file_("spread") {
    TraceBuilder trace(file_.path());
    for (int s = 0; s < 2; ++s) {
      storage::Step step;
      step.step = s;
      step.first_call = trace.last_call() + 1;
      const auto tensor = [&] { return trace.NewTensor({4}); };
      const auto unary = [&](const Tensor& in) {
        const Tensor out = tensor();
        trace.Call("aten::relu", {In("self", in)}, {Out("out", out)});
        return out;
      };
      const auto sum = [&](const Tensor& a, const Tensor& b) {
        const Tensor out = tensor();
        trace.Call("aten::add.Tensor", {In("self", a), In("other", b)}, {Out("out", out)});
        return out;
      };
      const Tensor a = unary(tensor());
      const Tensor d = sum(a, unary(unary(a)));
      sum(d, unary(tensor()));
      step.last_call = trace.last_call();
      step.found_by = "range:step";
      trace.writer().AddStep(step);
    }
    trace.Finish();
    reader_ = std::make_unique<storage::Reader>(file_.path());
    work_ = analyzer::LoadWork(*reader_);
  }

  // Calls with their greatest relative error.
  using Errors = std::map<int64_t, double>;
  prove::SpreadReport Find(const Errors& carried, const Errors& golden,
                           const std::vector<prove::GraphRange>& graphs = {}) const {
    const auto outputs = [](const Errors& errors) {
      std::vector<prove::WrongOutput> wrong;
      for (const auto& [call, max_rel] : errors) {
        wrong.push_back({call, true, max_rel, static_cast<int64_t>(max_rel * 1000)});
      }
      return wrong;
    };
    return prove::FindSpread(work_, outputs(carried), outputs(golden), graphs);
  }

  test::TemporaryTrace file_;
  std::unique_ptr<storage::Reader> reader_;
  analyzer::Work work_;
};

TEST_F(Spread, FollowsAnErrorAlongTheReadsAndSaysWhereItEnds) {
  // b is wrong; c inherits it, d absorbs it.
  const prove::SpreadReport report = Find({{2, 0.5}, {3, 0.25}}, {{2, 0.5}});
  ASSERT_EQ(report.own.size(), 1u);
  EXPECT_EQ(report.own[0].call_id, 2);
  EXPECT_EQ(report.own[0].reaches, 1);
  EXPECT_EQ(report.own[0].last_call, 3);
  EXPECT_EQ(report.own[0].absorbed, 1);
  EXPECT_FALSE(report.own[0].beside_another);
  EXPECT_EQ(report.inherited, 1);
  EXPECT_TRUE(report.unexplained.empty());
  ASSERT_EQ(report.absorbing.size(), 1u);
  EXPECT_EQ(report.absorbing[0].call_id, 4);
  EXPECT_EQ(report.absorbing[0].source_call, 3);
}

TEST_F(Spread, CountsReadsByTheShortestWayAndShowsGrowth) {
  // a is wrong: b and d read it, c and f are two reads away.
  const prove::SpreadReport report =
      Find({{1, 0.1}, {2, 0.2}, {3, 0.3}, {4, 0.9}, {6, 0.4}}, {{1, 0.1}});
  ASSERT_EQ(report.bands.size(), 3u);
  const std::vector<std::pair<int64_t, double>> expected{{1, 0.1}, {2, 0.9}, {2, 0.4}};
  for (size_t hops = 0; hops < expected.size(); ++hops) {
    EXPECT_EQ(report.bands[hops].first_hops, static_cast<int64_t>(hops));
    EXPECT_EQ(report.bands[hops].calls, expected[hops].first) << hops;
    EXPECT_EQ(report.bands[hops].max_rel, expected[hops].second) << hops;
  }
  EXPECT_EQ(report.own[0].reaches, 4);
  EXPECT_EQ(report.own[0].last_call, 6);
}

TEST_F(Spread, KeepsStepsApartThatShareNothing) {
  const prove::SpreadReport report = Find({{1, 1}, {2, 1}, {7, 1}}, {{1, 1}, {7, 1}});
  ASSERT_EQ(report.own.size(), 2u);
  EXPECT_EQ(report.own[0].reaches, 1);
  EXPECT_EQ(report.own[1].reaches, 0);
  EXPECT_EQ(report.own[1].absorbed, 2);  // b and d of the second step
}

TEST_F(Spread, SaysWhichDifferencesNoOwnErrorExplains) {
  // f differs though d and e are right: something else has changed its inputs.
  const prove::SpreadReport report = Find({{1, 1}, {6, 1}}, {{1, 1}});
  EXPECT_EQ(report.unexplained, std::vector<int64_t>{6});
  EXPECT_EQ(report.inherited, 0);
}

TEST_F(Spread, CountsErrorsThatWrongInputsHide) {
  const prove::SpreadReport report = Find({{1, 1}}, {{1, 1}, {2, 1}});
  EXPECT_EQ(report.hidden, 1);
  EXPECT_EQ(report.own[1].reaches, 0);
}

TEST_F(Spread, InsideOneGraphAnErrorMayBeThatOfTheCallBefore) {
  // Graphs of calls 1 to 3 and 4 to 6 of the template step hold for the second step too.
  const std::vector<prove::GraphRange> graphs{{1, 3}, {4, 6}};
  const Errors wrong{{7, 1}, {8, 1}, {10, 1}};
  const prove::SpreadReport report = Find(wrong, wrong, graphs);
  ASSERT_EQ(report.own.size(), 3u);
  EXPECT_FALSE(report.own[0].beside_another);
  EXPECT_TRUE(report.own[1].beside_another);
  EXPECT_FALSE(report.own[2].beside_another) << "d reads a and c, which other graphs gave it";
}

TEST_F(Spread, ADigestAloneGivesPlacesWithoutSizes) {
  prove::WrongOutput digest;
  digest.call_id = 2;
  const prove::SpreadReport report = prove::FindSpread(work_, {digest}, {digest}, {});
  ASSERT_EQ(report.bands.size(), 1u);
  EXPECT_FALSE(report.bands[0].has_values);
}

}  // namespace
}  // namespace acltape::replayer
