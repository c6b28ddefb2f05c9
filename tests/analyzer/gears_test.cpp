#include "analyzer/gears/gears.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "analyzer/gears/trace_sizes.h"
#include "analyzer/steps/steps.h"
#include "tests/analyzer/trace_builder.h"

namespace acltape::analyzer {
namespace {

using namespace test;

// Cost of every set of at most `most` sizes, the least.
double BruteForce(const gears::SizeHistogram& histogram, const gears::GearCosts& costs,
                  int64_t most) {
  double best = gears::EvaluateGears(histogram, {}, costs).cost_ns;
  for (uint32_t set = 1; set < 1u << histogram.size(); ++set) {
    if (__builtin_popcount(set) > most) continue;
    std::vector<int64_t> gears;
    for (size_t i = 0; i < histogram.size(); ++i) {
      if (set >> i & 1) gears.push_back(histogram[i].size);
    }
    best = std::min(best, gears::EvaluateGears(histogram, gears, costs).cost_ns);
  }
  return best;
}

TEST(Gears, CostAsLittleAsTheBestOfAllSets) {
  std::mt19937 random(7);
  const auto number = [&](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  for (int round = 0; round < 400; ++round) {
    std::vector<gears::SizeCount> rows;
    for (int i = number(1, 11); i > 0; --i) rows.push_back({number(1, 60), number(1, 50)});
    const gears::SizeHistogram histogram = gears::MakeHistogram(rows);
    const gears::GearCosts costs{static_cast<double>(number(0, 9)),
                                 static_cast<double>(number(0, 200))};
    const int64_t most = number(0, 6);
    const std::vector<int64_t> gears = gears::ChooseGears(histogram, costs, most);
    EXPECT_LE(static_cast<int64_t>(gears.size()), most);
    EXPECT_TRUE(std::is_sorted(gears.begin(), gears.end()));
    EXPECT_DOUBLE_EQ(gears::EvaluateGears(histogram, gears, costs).cost_ns,
                     BruteForce(histogram, costs, most))
        << "round " << round;
  }
}

TEST(Gears, AreNotMoreThanWhatPays) {
  // Padding is free: the greatest size serves all.
  EXPECT_EQ(gears::ChooseGears({{1, 5}, {2, 5}, {9, 1}}, {0, 100}, 3), (std::vector<int64_t>{9}));
  // Eager is free: nothing is captured.
  EXPECT_TRUE(gears::ChooseGears({{1, 5}, {2, 5}}, {3, 0}, 2).empty());
  EXPECT_EQ(gears::ChooseGears({{4, 1}}, {3, 5}, 8), (std::vector<int64_t>{4}));
}

TEST(Gears, LeaveAFewGreatSizesToEagerExecution) {
  const gears::SizeHistogram histogram{{8, 100}, {1000, 1}};
  EXPECT_EQ(gears::ChooseGears(histogram, {1, 50}, 1), (std::vector<int64_t>{8}));
  const gears::GearUse use = gears::EvaluateGears(histogram, {8}, {1, 50});
  EXPECT_EQ(use.exact_steps, 100);
  EXPECT_EQ(use.eager_steps, 1);
  EXPECT_EQ(use.cost_ns, 50);
}

// A size below a gear runs eagerly where padding would cost more.
TEST(Gears, DoNotPadWhatRunsFasterEagerly) {
  const gears::GearUse use = gears::EvaluateGears({{1, 1}, {90, 1}, {100, 1}}, {100}, {1, 50});
  EXPECT_EQ(use.eager_steps, 1);
  EXPECT_EQ(use.padded_steps, 1);
  EXPECT_EQ(use.padding, 10);
  EXPECT_EQ(use.cost_ns, 60);
}

// 40 layers, each a graph, and the 67 sizes that serving captures by default: 2680 graphs, where
// 1920 streams are usable.
TEST(Gears, ForFortyLayersAndSixtySevenSizesKeepToTheStreams) {
  const std::vector<int64_t> sizes = gears::ServingDefault(512);
  ASSERT_EQ(sizes.size(), 67u);
  ASSERT_EQ(40 * sizes.size(), 2680u);
  std::vector<gears::SizeCount> rows;
  for (const int64_t size : sizes) rows.push_back({size, 1 + 4000 / size});  // small ones often
  const gears::SizeHistogram histogram = gears::MakeHistogram(rows);
  const gears::GearCosts costs{900, 250000};
  const int64_t most = 1920 / 40;
  EXPECT_EQ(most, 48);

  const std::vector<int64_t> gears = gears::ChooseGears(histogram, costs, most);
  const std::vector<int64_t> thinned = gears::Thinned(sizes, most);
  EXPECT_EQ(gears.size(), 48u);
  EXPECT_LE(40 * gears.size(), 1920u);
  EXPECT_EQ(thinned.size(), 48u);
  EXPECT_LT(gears::EvaluateGears(histogram, gears, costs).cost_ns,
            0.5 * gears::EvaluateGears(histogram, thinned, costs).cost_ns);
}

TEST(Gears, KnowTheListsOfOthers) {
  EXPECT_EQ(gears::PowersOfTwo(5), (std::vector<int64_t>{1, 2, 4, 8}));
  EXPECT_EQ(gears::ServingDefault(20), (std::vector<int64_t>{1, 2, 4, 8, 16, 24}));
  EXPECT_EQ(gears::ServingDefault(9000).back(), 512);
  EXPECT_EQ(gears::Thinned({1, 2, 3, 4, 5, 6, 7}, 3), (std::vector<int64_t>{1, 4, 7}));
  EXPECT_EQ(gears::Thinned({1, 2}, 3), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(gears::Thinned({1, 2, 3}, 1), (std::vector<int64_t>{3}));
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    std::vector<int64_t> list(2 + random() % 90);
    for (size_t i = 0; i < list.size(); ++i) list[i] = static_cast<int64_t>(i);
    const auto most = static_cast<int64_t>(2 + random() % (list.size() - 1));
    const std::vector<int64_t> thinned = gears::Thinned(list, most);
    EXPECT_EQ(thinned.size(), static_cast<size_t>(most));
    EXPECT_EQ(thinned.front(), list.front());
    EXPECT_EQ(thinned.back(), list.back());
    EXPECT_TRUE(std::adjacent_find(thinned.begin(), thinned.end()) == thinned.end());
  }
}

TEST(Gears, FitALineThroughTheMedianOfEachSize) {
  // 1000 + 10 * size; one step of size 5 met something else.
  const gears::LineFit fit =
      gears::FitLine({{1, 1010}, {5, 1050}, {5, 1050}, {5, 9999999}, {9, 1090}});
  EXPECT_DOUBLE_EQ(fit.base_ns, 1000);
  EXPECT_DOUBLE_EQ(fit.slope_ns, 10);
  EXPECT_EQ(gears::FitLine({{1, 100}, {2, 50}}).slope_ns, 0);
}

TEST(Gears, AFewSlowStepsDoNotMoveTheLine) {
  std::vector<gears::SizedTime> times{{5, 31000000}, {8, 900000}};  // kernels are loaded
  for (int64_t size = 11; size <= 38; size += 3) {
    times.push_back({size, 100000.0 + 500.0 * static_cast<double>(size)});
  }
  const gears::LineFit fit = gears::FitLine(times);
  EXPECT_DOUBLE_EQ(fit.slope_ns, 500);
  EXPECT_DOUBLE_EQ(fit.base_ns, 100000);
}

TEST(Gears, TimesThatShrinkToNothingWithTheSizeDoNotTellWhatAnEagerStepLoses) {
  gears::TraceSizes sizes;
  for (int64_t size = 1; size <= 9; ++size) {
    sizes.times.push_back({size, 1000.0 * static_cast<double>(size)});
  }
  EXPECT_THROW(gears::CostsOf(sizes), Error);
  for (gears::SizedTime& time : sizes.times) time.ns += 50;
  EXPECT_DOUBLE_EQ(gears::CostsOf(sizes).eager_ns, 50);
  EXPECT_DOUBLE_EQ(gears::CostsOf(sizes).padding_ns, 1000);
}

TEST(Gears, ReadAHistogramAndNameTheBrokenLine) {
  const std::string path = ::testing::TempDir() + "sizes.csv";
  std::ofstream(path) << "size,count\n8,3\r\n1,2\n8,1\n\n";
  EXPECT_EQ(gears::ReadHistogram(path), (gears::SizeHistogram{{1, 2}, {8, 4}}));
  for (const char* broken :
       {"1,2\n0,5\n", "1,2\n3\n", "1,2\n3,4,5\n", "1,2\nx,1\n", "1,2\n3,-1\n"}) {
    std::ofstream(path) << broken;
    try {
      gears::ReadHistogram(path);
      ADD_FAILURE() << broken;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_NE(std::string(error.what()).find("line 2"), std::string::npos) << error.what();
    }
  }
  std::ofstream(path) << "size,count\n";
  EXPECT_THROW(gears::ReadHistogram(path), Error);
  EXPECT_THROW(gears::ReadHistogram(path + ".missing"), Error);
}

// Steps of one mm and one relu each, of the given batch sizes.
void WriteSteps(const std::string& path, const std::vector<int64_t>& batches) {
  TraceBuilder trace(path);
  const Tensor weight = trace.NewTensor({3, 3});
  int64_t step = 0;
  for (const int64_t batch : batches) {
    const Tensor x = trace.NewTensor({batch, 3});
    const Tensor y = trace.NewTensor({batch, 3});
    const Tensor z = trace.NewTensor({batch, 3});
    trace.Call("aten::mm", {In("self", x), In("mat2", weight)}, {Out("out", y)});
    const int64_t first = trace.last_call();
    trace.Call("aten::relu", {In("self", y)}, {Out("out", z)});
    trace.writer().AddStep({step++, first, trace.last_call(), "range:step"});
  }
  trace.Finish();
}

TEST(TraceSizes, AreThoseOfTheDimensionThatVaries) {
  TemporaryTrace file("gears");
  WriteSteps(file.path(), {4, 1, 4, 2});
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  const gears::TraceSizes sizes = gears::FindTraceSizes(work, "");
  EXPECT_EQ(sizes.Histogram(), (gears::SizeHistogram{{1, 1}, {2, 1}, {4, 2}}));
  EXPECT_EQ(sizes.places, 2u);
  EXPECT_EQ(sizes.other_steps, 0u);
  EXPECT_EQ(sizes.times[0].ns, 1600);
  EXPECT_NE(sizes.dimension.find("dimension 0 of self of call 1 aten::mm"), std::string::npos)
      << sizes.dimension;

  EXPECT_EQ(gears::FindTraceSizes(work, "s0").Histogram(), sizes.Histogram());
  EXPECT_EQ(gears::FindTraceSizes(work, "4:self:0").Histogram(), sizes.Histogram());
  for (const char* wrong : {"s7", "4:self:1", "3:mat2:0", "99:self:0", "4:self", "batch"}) {
    EXPECT_THROW(gears::FindTraceSizes(work, wrong), Error) << wrong;
  }
}

TEST(TraceSizes, AreRefusedWhereNothingVaries) {
  TemporaryTrace file("gears-same");
  WriteSteps(file.path(), {4, 4, 4});
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  try {
    gears::FindTraceSizes(work, "");
    ADD_FAILURE() << "found a dimension";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no dimension varies"), std::string::npos);
  }
}

}  // namespace
}  // namespace acltape::analyzer
