// Tokens in the order of the experts of a range, quantised or with places of a capacity, against
// loops over rows. By the page of aclnnMoeInitRoutingV3.
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Ints = std::vector<int64_t>;

constexpr int64_t kRangeTokens = 4, kRangeChoices = 2, kRangeExperts = 5, kRangeWidth = 6;

// Experts of the tokens; -1 is no expert.
const Ints kChosenExperts = {0, 3, 1, -1, 3, 1, 2, 3};

Tensor ChosenExperts() {
  return at::tensor(kChosenExperts, at::kInt).reshape({kRangeTokens, kRangeChoices});
}

// How a call routes. A capacity of 0 means that no row is dropped.
struct RangeWay {
  int64_t first = 0, last = kRangeExperts, capacity = 0, active = 0, mode = -1;
};

// The flat positions of the rows in the order of their places; -1: an empty place.
Ints RangePlaces(const RangeWay& way) {
  std::map<int64_t, Ints> rows;  // by expert
  for (int64_t i = 0; i < kRangeTokens * kRangeChoices; ++i) {
    if (kChosenExperts[i] >= way.first && kChosenExperts[i] < way.last)
      rows[kChosenExperts[i]].push_back(i);
  }
  Ints places;
  for (int64_t expert = way.first; expert < way.last; ++expert) {
    Ints mine = rows[expert];
    if (way.capacity > 0) mine.resize(way.capacity, -1);
    places.insert(places.end(), mine.begin(), mine.end());
  }
  if (way.capacity > 0) return places;
  places.resize(way.active > 0 ? std::min(way.active, kRangeTokens * kRangeChoices)
                               : kRangeTokens * kRangeChoices,
                -1);
  return places;
}

Ints RangeCounts(const RangeWay& way) {
  Ints counts(way.last - way.first, 0);
  for (const int64_t expert : kChosenExperts) {
    if (expert >= way.first && expert < way.last) ++counts[expert - way.first];
  }
  return counts;
}

// The place of each row, -1 where it has none.
Tensor RangeWhere(const RangeWay& way) {
  RangeWay all = way;
  all.active = 0;
  const Ints places = RangePlaces(all);
  Ints where(kRangeTokens * kRangeChoices, -1);
  for (size_t place = 0; place < places.size(); ++place) {
    if (places[place] >= 0) where[places[place]] = static_cast<int64_t>(place);
  }
  return at::tensor(where, at::kInt);
}

// The rows at their places, and zeros, in doubles.
Tensor RangeRows(const RangeWay& way, const Tensor& x) {
  const Ints places = RangePlaces(way);
  const Tensor rows = at::zeros({static_cast<int64_t>(places.size()), kRangeWidth}, at::kDouble);
  for (size_t place = 0; place < places.size(); ++place) {
    if (places[place] >= 0) rows[place].copy_(x[places[place] / kRangeChoices]);
  }
  return rows;
}

Ints RangeSizes(const RangeWay& way) {
  if (way.capacity > 0) return {kRangeExperts, way.capacity, kRangeWidth};
  return {static_cast<int64_t>(RangePlaces(way).size()), kRangeWidth};
}

// Arguments up to the outputs.
Args RangeInputs(const RangeWay& way, const Tensor& x, const Arg& scale, const Arg& offset) {
  const Ints range = {way.first, way.last};
  const int64_t pad = way.capacity > 0 ? 1 : 0, none = 0;
  return {x,   ChosenExperts(), scale, offset,   way.active, way.capacity, kRangeExperts,
          pad, int64_t{1},      true,  way.mode, range,      none};
}

const RangeWay kRangeWays[] = {
    {0, kRangeExperts}, {1, 4}, {0, kRangeExperts, 2}, {0, kRangeExperts, 0, 3}, {2, 4, 0, 6}};

constexpr const char* kRangeNames[] = {"aclnnMoeInitRoutingV3", "aclnnMoeInitRoutingCustom"};

TEST(RangeRouting, RowsKeepTheirScales) {
  for (const at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16, at::kChar}) {
    const Tensor x = Random({kRangeTokens, kRangeWidth}, at::kFloat, -99, 99).to(dtype);
    const Tensor scale = Random({kRangeTokens});
    for (const RangeWay& way : kRangeWays) {
      const Ints places = RangePlaces(way);
      const Tensor scales = at::zeros({static_cast<int64_t>(places.size())});
      for (size_t place = 0; place < places.size(); ++place) {
        if (places[place] >= 0) scales[place].copy_(scale[places[place] / kRangeChoices]);
      }
      for (const char* name : kRangeNames) {
        Check(name, RangeInputs(way, x, scale, Null{}),
              {RangeRows(way, x).to(dtype).reshape(RangeSizes(way)), RangeWhere(way),
               at::tensor(RangeCounts(way), at::kLong), scales});
      }
    }
  }
}

TEST(RangeRouting, OneScaleAndOneOffsetQuantiseAllRows) {
  const Tensor scale = at::tensor({17.5f}), offset = at::tensor({-3.25f});
  for (const at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    const Tensor x = Random({kRangeTokens, kRangeWidth}, dtype, -9, 9);  // some leave the range
    for (RangeWay way : kRangeWays) {
      way.mode = 0;
      const Ints places = RangePlaces(way);
      Tensor bytes = (RangeRows(way, x) * 17.5 - 3.25).round().clamp(-128, 127).to(at::kChar);
      for (size_t place = 0; place < places.size(); ++place) {
        if (places[place] < 0) bytes[place].zero_();
      }
      for (const char* name : kRangeNames) {
        Check(name, RangeInputs(way, x, scale, offset),
              {bytes.reshape(RangeSizes(way)), RangeWhere(way),
               at::tensor(RangeCounts(way), at::kLong), Tensor()});
      }
    }
  }
}

TEST(RangeRouting, EachRowHasAScaleOfItsOwn) {
  for (const at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const bool smooth : {false, true}) {
      const Tensor x = Random({kRangeTokens, kRangeWidth}, dtype);
      for (RangeWay way : kRangeWays) {
        way.mode = 1;
        const Ints places = RangePlaces(way);
        const Tensor factors = Random({way.last - way.first, kRangeWidth}, at::kFloat, 0.5, 2);
        Tensor rows = RangeRows(way, x).to(at::kFloat);
        for (size_t place = 0; smooth && place < places.size(); ++place) {
          if (places[place] >= 0)
            rows[place].mul_(factors[kChosenExperts[places[place]] - way.first]);
        }
        const Tensor scales = rows.abs().amax(1) / 127;
        const Tensor steps = scales.masked_fill(scales.eq(0), 1).unsqueeze(1);
        for (const char* name : kRangeNames) {
          Check(name, RangeInputs(way, x, smooth ? Arg(factors) : Arg(Null{}), Null{}),
                {(rows / steps).round().to(at::kChar).reshape(RangeSizes(way)), RangeWhere(way),
                 at::tensor(RangeCounts(way), at::kLong), scales});
        }
      }
    }
  }
}

TEST(RangeRouting, WhatThePageLeavesOutIsRefused) {
  const Tensor x = Random({kRangeTokens, kRangeWidth}), one = Random({1});
  const auto refusal = [&](const RangeWay& way, const Arg& scale, const Arg& offset,
                           const std::map<int, Arg>& changed, at::ScalarType dtype) {
    Args args = RangeInputs(way, x, scale, offset);
    args.insert(args.end(), {at::empty(RangeSizes(way), dtype), at::empty({8}, at::kInt),
                             at::empty({way.last - way.first}, at::kLong), Null{}});
    for (const auto& [i, value] : changed) args[i] = value;
    EXPECT_EQ(RunOperator("aclnnMoeInitRoutingV3", args), kReject);
    return LastMessage();
  };
  const std::string name = "aclnnMoeInitRoutingV3: ";
  const RangeWay plain, capacity{0, kRangeExperts, 2}, fixed{0, kRangeExperts, 0, 0, 0};
  const RangeWay dynamic{0, kRangeExperts, 0, 0, 1};
  EXPECT_EQ(refusal(plain, Null{}, one, {}, at::kFloat),
            name + "offsetOptional is given, but quantMode is -1.");
  EXPECT_EQ(refusal(plain, Null{}, Null{}, {}, at::kHalf),
            name + "expandedXOut has dtype Half, expected Float.");
  EXPECT_EQ(refusal(fixed, one, Null{}, {}, at::kChar),
            name + "offsetOptional is absent, but quantMode is 0.");
  EXPECT_EQ(refusal(fixed, Null{}, one, {}, at::kChar),
            name + "scaleOptional is absent, but quantMode is 0.");
  EXPECT_EQ(refusal(fixed, Random({2}), one, {}, at::kChar),
            name + "scaleOptional has shape [2], expected [1].");
  EXPECT_EQ(refusal(fixed, one, one, {}, at::kFloat), name + "expandedXOut is not of dtype int8.");
  EXPECT_EQ(refusal(dynamic, Null{}, one, {}, at::kChar),
            name + "offsetOptional is given, but quantMode is 1.");
  EXPECT_EQ(refusal(dynamic, Random({2, kRangeWidth}), Null{}, {}, at::kChar),
            name + "scaleOptional has shape [2, 6], expected [5, 6].");
  EXPECT_EQ(refusal(plain, Null{}, Null{}, {{10, int64_t{2}}}, at::kFloat),
            name + "quantMode must be -1 (none), 0 (static) or 1 (dynamic).");
  EXPECT_EQ(refusal(plain, Null{}, Null{}, {{7, int64_t{2}}}, at::kFloat),
            name + "dropPadMode must be 0 or 1.");
  EXPECT_EQ(refusal(plain, Null{}, Null{}, {{4, int64_t{-2}}}, at::kFloat),
            name + "activeNum is less than -1.");
  EXPECT_EQ(refusal(plain, Null{}, Null{}, {{6, int64_t{10241}}}, at::kFloat),
            name + "expertNum must be between 1 and 10240.");
  EXPECT_EQ(refusal(plain, Null{}, Null{}, {{6, int64_t{5121}}, {8, int64_t{2}}}, at::kFloat),
            name + "expertNum must be between 1 and 5120.");
  EXPECT_EQ(refusal(plain, Null{}, Null{}, {{11, Ints{3, 3}}}, at::kFloat),
            name + "activeExpertRangeOptional must be a range of experts.");
  EXPECT_EQ(refusal(capacity, Null{}, Null{}, {{5, int64_t{5}}}, at::kFloat),
            name + "expertCapacity must be between 1 and the number of tokens.");
  EXPECT_EQ(refusal(capacity, Null{}, Null{}, {{12, int64_t{1}}}, at::kFloat),
            name + "rowIdxType must be 0 where dropPadMode is 1.");
  EXPECT_EQ(refusal(capacity, Null{}, Null{}, {{8, int64_t{0}}}, at::kFloat),
            name + "expertTokensNumType must be 1 where dropPadMode is 1.");
  EXPECT_EQ(refusal(capacity, Null{}, Null{}, {{11, Ints{0, 4}}}, at::kFloat),
            name + "activeExpertRangeOptional must hold all experts where dropPadMode is 1.");
}

}  // namespace
}  // namespace acltape::opapi
