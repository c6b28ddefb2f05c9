// The search for scales of quantised numbers by the operator's name, beside a formula that tries
// all of them.
#include <cmath>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

struct Range {
  float highest = 0.999999f, lowest = 0.999999f, from = 0.7f, to = 1.3f, step = 0.01f;
  bool with_offset = true;
  int64_t bits = 8;
  int64_t bins = 128;
};

struct Quantised {
  double scale, offset;
};

double LossOf(const Tensor& data, const Quantised& with, const Range& range) {
  const double least = -std::exp2(range.bits - 1), most = -least - 1;
  const Tensor kept = at::clamp(at::round(data / with.scale) + with.offset, least, most);
  return at::sum(at::square((kept - with.offset) * with.scale - data)).item<double>();
}

Tensor SumsOf(const Tensor& data, int64_t bins) {
  const Tensor wide = data.to(at::kFloat);
  const double least = wide.min().item<double>(), most = wide.max().item<double>();
  return at::cumsum(at::histc(wide, bins, least, most), 0).to(at::kInt);
}

// All candidates, in doubles.
std::vector<Quantised> CandidatesByFormula(const Tensor& data, const Range& range) {
  const double least = data.min().item<double>(), most = data.max().item<double>();
  const Tensor parts = SumsOf(data, range.bins).to(at::kFloat) / static_cast<float>(data.numel());
  const auto place = [&](float part) {
    const auto below = static_cast<double>(parts.lt(part).sum().item<int64_t>());
    return below / static_cast<double>(range.bins) * (most - least) + least;
  };
  double high = place(range.highest), low = place(static_cast<float>(1 - double{range.lowest}));
  const double levels = std::exp2(range.bits);
  std::vector<Quantised> candidates;
  const int steps = static_cast<int>(std::floor((double{range.to} - range.from) / range.step)) + 1;
  for (int i = 0; i < steps; ++i) {
    const double factor = range.from + i * double{range.step};
    if (range.with_offset) {
      const double scale = (std::max(high, 0.0) * factor - std::min(low, 0.0)) / (levels - 1);
      candidates.push_back({scale, -(std::nearbyint(std::min(low, 0.0) / scale) + levels / 2)});
    } else {
      candidates.push_back(
          {std::max(std::abs(high), std::abs(low)) * factor / (levels / 2 - 1), 0});
    }
  }
  return candidates;
}

void FillRange(NamedCall& call, const Tensor& data, const Range& range) {
  call.In(data).In(data.min().view({1})).In(data.max().view({1})).In(SumsOf(data, range.bins));
  call.Set("min_percentile", range.lowest).Set("max_percentile", range.highest);
  call.Set("search_range", std::vector<float>{range.from, range.to});
  call.Set("search_step", range.step).Set("with_offset", range.with_offset);
  call.Set("quant_bits", range.bits);
}

// The result is one of the candidates, and none loses less.
void ExpectScale(const Tensor& data, const Range& range) {
  const Tensor scale = at::full({1}, 77, data.scalar_type()), offset = scale.clone();
  NamedCall call("IFMR");
  FillRange(call, data, range);
  ASSERT_EQ(call.Out(scale).Out(offset).RunOlder(), ACL_SUCCESS) << TakeMessage();
  const Tensor wide = data.to(at::kDouble);
  const double found = scale.item<double>();
  double best = INFINITY, loss = INFINITY;
  for (const Quantised& candidate : CandidatesByFormula(wide, range)) {
    const double its = LossOf(wide, candidate, range);
    best = std::min(best, its);
    const double error = data.scalar_type() == at::kHalf ? 1e-3 : 1e-5;
    if (std::abs(found - candidate.scale) > error * candidate.scale) continue;
    if (offset.item<double>() == candidate.offset) loss = std::min(loss, its);
  }
  EXPECT_LE(loss, best * 1.001 + 1e-9) << found << " " << offset.item<double>();
}

TEST(CalibrationByName, AScaleWithWhichNumbersLoseLeast) {
  at::manual_seed(15);
  for (bool with_offset : {true, false}) {
    Range range;
    range.with_offset = with_offset;
    ExpectScale(Random({2, 2, 3, 4}), range);
    ExpectScale(Random({5, 5}), range);
    ExpectScale(at::rand({100}) + 1, range);   // positive numbers alone
    ExpectScale(-at::rand({100}) - 1, range);  // negative ones
    ExpectScale(at::randn({3000}), range);
    range.highest = range.lowest = 0.9f;
    ExpectScale(at::randn({3000}), range);
    range.bins = 17;
    range.from = 0.5f;
    range.to = 0.75f;
    range.step = 0.0625f;
    ExpectScale(at::randn({3000}).to(at::kHalf), range);
    range.bits = 16;
    ExpectScale(at::randn({64}), range);
  }
}

// torch_npu's example: the data lie between 0.0146 and 0.9746.
TEST(CalibrationByName, TheScaleOfTheDocumentation) {
  const Tensor data =
      at::tensor({0.4508f, 0.6513f, 0.4734f, 0.1924f, 0.0402f, 0.5502f, 0.0694f, 0.9032f,
                  0.4844f, 0.5361f, 0.9369f, 0.7874f, 0.5157f, 0.1863f, 0.4574f, 0.8033f,
                  0.5986f, 0.8090f, 0.7605f, 0.8252f, 0.4264f, 0.8952f, 0.2279f, 0.9746f,
                  0.0803f, 0.7114f, 0.8773f, 0.2341f, 0.6497f, 0.0423f, 0.8407f, 0.9515f,
                  0.1821f, 0.5931f, 0.7160f, 0.4968f, 0.7977f, 0.0899f, 0.9572f, 0.0146f,
                  0.2804f, 0.8569f, 0.2292f, 0.1118f, 0.5747f, 0.4064f, 0.8370f, 0.1611f})
          .view({2, 2, 3, 4});
  Range range;
  range.with_offset = false;
  const Tensor scale = at::full({}, 77.0f), offset = at::full({}, 77.0f);
  NamedCall call("IFMR");
  FillRange(call, data, range);
  ASSERT_EQ(call.Out(scale).Out(offset).Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_NEAR(scale.item<double>(), 0.0080, 5e-5);
  EXPECT_EQ(offset.item<float>(), 0);
}

TEST(CalibrationByName, NumbersWithoutARangeAndFormsThatAreRefused) {
  for (bool with_offset : {true, false}) {
    Range range;
    range.with_offset = with_offset;
    const Tensor data = at::zeros({1}), scale = at::full({1}, 77.0f), offset = at::full({1}, 77.0f);
    NamedCall call("IFMR");
    FillRange(call, data, range);
    ASSERT_EQ(call.Out(scale).Out(offset).Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_EQ(scale.item<float>(), 1);
    EXPECT_EQ(offset.item<float>(), with_offset ? -128 : 0);
  }
  const auto said = [](const Tensor& data, const Range& range, const Tensor& scale) {
    NamedCall call("IFMR");
    FillRange(call, data, range);
    call.Out(scale).Out(at::zeros({1}));
    TakeMessage();
    EXPECT_NE(call.Run(), ACL_SUCCESS);
    return TakeMessage();
  };
  const Tensor data = at::rand({10}), scale = at::zeros({1});
  Range range;
  range.bits = 4;
  EXPECT_NE(said(data, range, scale).find("quant_bits 4"), std::string::npos);
  range = {};
  range.step = 0;
  EXPECT_NE(said(data, range, scale).find("search_step is 0"), std::string::npos);
  range.step = 1e-5f;
  EXPECT_NE(said(data, range, scale).find("1 to 4096 steps"), std::string::npos);
  range = {};
  range.to = 0.5f;
  EXPECT_NE(said(data, range, scale).find("two numbers with"), std::string::npos);
  range = {};
  EXPECT_NE(said(data, range, at::zeros({2})).find("one element in data_min"), std::string::npos);
  EXPECT_NE(said(data.to(at::kDouble), range, scale).find("float32 or float16"), std::string::npos);
  range.bins = 8193;
  EXPECT_NE(said(data, range, scale).find("1 to 8192 bins"), std::string::npos);
}

}  // namespace
}  // namespace acltape::opapi
