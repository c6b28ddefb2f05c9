// The part before an attention over compressed keys, against loops in double precision.
#include <cmath>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Numbers = std::vector<double>;

constexpr int64_t kHidden = 12, kRank = 10, kHeads = 3, kWidth = 8, kKeys = 6, kTurned = 4;
constexpr int64_t kBlocks = 2, kBlock = 4, kTokens = 6;
constexpr double kEpsilon = 1e-3, kFactorQ = 1.5, kFactorKv = 0.75;

Numbers In(const Tensor& x) {
  const Tensor wide = x.to(at::kDouble).contiguous();
  return Numbers(wide.data_ptr<double>(), wide.data_ptr<double>() + wide.numel());
}

// A row of numbers times a matrix of [row.size(), columns].
Numbers Times(const Numbers& row, const Numbers& matrix, int64_t columns) {
  Numbers result(static_cast<size_t>(columns));
  for (size_t i = 0; i < row.size(); ++i) {
    for (size_t k = 0; k < result.size(); ++k) result[k] += row[i] * matrix[i * result.size() + k];
  }
  return result;
}

Numbers Norm(const Numbers& row, const Numbers& gamma, double factor) {
  double squares = 0;
  for (const double value : row) squares += value * value;
  const double root = std::sqrt(squares / static_cast<double>(row.size()) + kEpsilon);
  Numbers result;
  for (size_t i = 0; i < row.size(); ++i) result.push_back(row[i] / root * gamma[i] * factor);
  return result;
}

Numbers Part(const Numbers& from, int64_t first, int64_t count) {
  return Numbers(from.begin() + first, from.begin() + first + count);
}

// Pair i, at 2 i and 2 i + 1, is turned to the places i and i + width / 2.
Numbers Turn(const Numbers& x, const Numbers& cosines, const Numbers& sines) {
  const size_t half = x.size() / 2;
  Numbers result(x.size());
  for (size_t i = 0; i < half; ++i) {
    result[i] = x[2 * i] * cosines[i] - x[2 * i + 1] * sines[i];
    result[i + half] = x[2 * i + 1] * cosines[i + half] + x[2 * i] * sines[i + half];
  }
  return result;
}

struct Given {
  explicit Given(at::ScalarType dtype)
      : x(Random({kTokens, kHidden}, dtype)),
        down_q(Random({kHidden, kRank}, dtype)),
        up_q(Random({kRank, kHeads * (kWidth + kTurned)}, dtype)),
        up_k(Random({kHeads, kWidth, kKeys}, dtype)),
        down_kv(Random({kHidden, kKeys + kTurned}, dtype)),
        gamma_q(Random({kRank}, dtype)),
        gamma_kv(Random({kKeys}, dtype)),
        sines(Random({kTokens, kTurned}, dtype)),
        cosines(Random({kTokens, kTurned}, dtype)),
        slots(at::tensor({7, 0, 3, 5, 2, 6}, at::kLong)),
        kv_cache(Random({kBlocks, kBlock, 1, kKeys}, dtype)),
        kr_cache(Random({kBlocks, kBlock, 1, kTurned}, dtype)) {}
  Tensor x, down_q, up_q, up_k, down_kv, gamma_q, gamma_kv, sines, cosines, slots;
  Tensor kv_cache, kr_cache;
};

struct Results {
  explicit Results(const Given& given)
      : query(at::empty({kTokens, kHeads, kKeys}, given.x.options())),
        rope(at::empty({kTokens, kHeads, kTurned}, given.x.options())),
        kv_cache(given.kv_cache.clone()),
        kr_cache(given.kr_cache.clone()),
        norm(at::empty({kTokens, kRank}, given.x.options())) {}
  Tensor query, rope, kv_cache, kr_cache, norm;
};

Numbers Joined(const Results& results) {
  Numbers all;
  for (const Tensor& each : {results.query, results.rope, results.kv_cache, results.kr_cache}) {
    const Numbers numbers = In(each);
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  return all;
}

// Computes the same in loops: the numbers of the four results, then the norm.
Numbers Reference(const Given& given, double factor_q, double factor_kv) {
  const Numbers x = In(given.x), cosines = In(given.cosines), sines = In(given.sines);
  const Numbers up_k = In(given.up_k);
  Numbers kv = In(given.kv_cache), kr = In(given.kr_cache), queries, ropes, norms;
  for (int64_t t = 0; t < kTokens; ++t) {
    const Numbers row = Part(x, t * kHidden, kHidden);
    const Numbers cosine = Part(cosines, t * kTurned, kTurned);
    const Numbers sine = Part(sines, t * kTurned, kTurned);
    const Numbers low = Norm(Times(row, In(given.down_q), kRank), In(given.gamma_q), factor_q);
    norms.insert(norms.end(), low.begin(), low.end());
    const Numbers both = Times(low, In(given.up_q), kHeads * (kWidth + kTurned));
    for (int64_t h = 0; h < kHeads; ++h) {
      const int64_t first = h * (kWidth + kTurned);
      const Numbers query =
          Times(Part(both, first, kWidth), Part(up_k, h * kWidth * kKeys, kWidth * kKeys), kKeys);
      const Numbers rope = Turn(Part(both, first + kWidth, kTurned), cosine, sine);
      queries.insert(queries.end(), query.begin(), query.end());
      ropes.insert(ropes.end(), rope.begin(), rope.end());
    }
    const Numbers compressed = Times(row, In(given.down_kv), kKeys + kTurned);
    const Numbers keys = Norm(Part(compressed, 0, kKeys), In(given.gamma_kv), factor_kv);
    const Numbers turned = Turn(Part(compressed, kKeys, kTurned), cosine, sine);
    const auto slot = given.slots[t].item<int64_t>();
    std::copy(keys.begin(), keys.end(), kv.begin() + slot * kKeys);
    std::copy(turned.begin(), turned.end(), kr.begin() + slot * kTurned);
  }
  for (const Numbers* more : {&ropes, &kv, &kr, &norms}) {
    queries.insert(queries.end(), more->begin(), more->end());
  }
  return queries;
}

// The first two versions, the second with an output for a scale.
Args First(const Given& g, const Results& r, const Args& more) {
  Args args{g.x,       g.down_q, g.up_q,     g.up_k,     g.down_kv, g.gamma_q, g.gamma_kv, g.sines,
            g.cosines, g.slots,  r.kv_cache, r.kr_cache, Null{},    Null{},    Null{},     Null{},
            Null{},    Null{},   Null{},     kEpsilon,   kEpsilon,  "PA_BSND", r.query,    r.rope};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

Args Third(const Given& g, const Results& r, int64_t weight_mode = 0) {
  return {g.x,        g.down_q,     g.up_q,     g.up_k,      g.down_kv,  g.gamma_q,  g.gamma_kv,
          g.sines,    g.cosines,    r.kv_cache, r.kr_cache,  g.slots,    Null{},     Null{},
          Null{},     Null{},       Null{},     Null{},      Null{},     Null{},     kEpsilon,
          kEpsilon,   "PA_BSND",    true,       weight_mode, int64_t{0}, int64_t{0}, int64_t{0},
          int64_t{0}, int64_t{128}, 1.0,        kFactorQ,    kFactorKv,  r.query,    r.rope,
          Null{},     r.norm,       Null{}};
}

void ExpectNear(const Numbers& found, const Numbers& expected, double tolerance,
                const std::string& what) {
  ASSERT_LE(found.size(), expected.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << what << i;
  }
}

TEST(MlaProlog, EveryVersionIsTheFormulaInDoublePrecision) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const double tolerance = dtype == at::kFloat ? 1e-5 : dtype == at::kHalf ? 1e-3 : 8e-3;
    const Given given(dtype);
    const Numbers plain = Reference(given, 1, 1);
    for (const char* name : {"aclnnMlaProlog", "aclnnMlaPrologV2", "aclnnMlaPrologV2WeightNz"}) {
      const Results results(given);
      const Tensor scale = at::ones({1});
      const bool second = std::string(name) != "aclnnMlaProlog";
      ASSERT_EQ(RunOperator(name, First(given, results, second ? Args{scale} : Args{})), 0)
          << LastMessage();
      ExpectNear(Joined(results), plain, tolerance, name);
    }
    const Numbers scaled = Reference(given, kFactorQ, kFactorKv);
    for (const char* name : {"aclnnMlaPrologV3", "aclnnMlaPrologV3WeightNz"}) {
      const Results results(given);
      Args args = Third(given, results);
      if (std::string(name) == "aclnnMlaPrologV3") args[35] = args[37] = at::ones({1});
      ASSERT_EQ(RunOperator(name, args), 0) << LastMessage();
      Numbers found = Joined(results);
      const Numbers norm = In(results.norm);
      found.insert(found.end(), norm.begin(), norm.end());
      ExpectNear(found, scaled, tolerance, name);
      const Results others(given);
      others.norm.fill_(7);
      args = Third(given, others);
      args[23] = false;  // queryNormFlag
      if (std::string(name) == "aclnnMlaPrologV3") args[35] = args[37] = at::ones({1});
      ASSERT_EQ(RunOperator(name, args), 0) << LastMessage();
      ExpectNear(Joined(others), scaled, tolerance, name);
      EXPECT_TRUE(others.norm.eq(7).all().item<bool>()) << "nobody asked for the norm";
    }
  }
}

TEST(MlaProlog, BatchesAreRowsOfTokens) {
  const Given given(at::kFloat);
  Given batch = given;
  batch.x = given.x.reshape({2, 3, kHidden});
  batch.sines = given.sines.reshape({2, 3, kTurned});
  batch.cosines = given.cosines.reshape({2, 3, kTurned});
  batch.slots = given.slots.reshape({2, 3});
  Results results(given);
  results.query = at::empty({2, 3, kHeads, kKeys});
  results.rope = at::empty({2, 3, kHeads, kTurned});
  ASSERT_EQ(RunOperator("aclnnMlaProlog", First(batch, results, {})), 0) << LastMessage();
  ExpectNear(Joined(results), Reference(given, 1, 1), 1e-5, "a batch");
}

TEST(MlaProlog, WithoutTokensTheCachesStay) {
  Given given(at::kFloat);
  Results results(given);
  for (Tensor* each :
       {&given.x, &given.sines, &given.cosines, &given.slots, &results.query, &results.rope}) {
    *each = each->narrow(0, 0, 0);
  }
  ASSERT_EQ(RunOperator("aclnnMlaProlog", First(given, results, {})), 0) << LastMessage();
  EXPECT_TRUE(SameBits(results.kv_cache, given.kv_cache));
  EXPECT_TRUE(SameBits(results.kr_cache, given.kr_cache));
}

TEST(MlaProlog, WhatItDoesNotTakeIsRefused) {
  const Given given(at::kFloat);
  const Results results(given);
  Args other = First(given, results, {});
  other[21] = "PA_NZ";
  EXPECT_EQ(RunOperator("aclnnMlaProlog", other), kReject);
  EXPECT_EQ(LastMessage(),
            "aclnnMlaProlog: cacheModeOptional must be \"PA_BSND\" on the soft device.");
  Args scaled = First(given, results, {});
  scaled[14] = at::ones({1, kHeads * (kWidth + kTurned)});
  EXPECT_EQ(RunOperator("aclnnMlaProlog", scaled), kReject);
  EXPECT_EQ(RunOperator("aclnnMlaPrologV3WeightNz", Third(given, results, 2)), kReject);
  EXPECT_EQ(LastMessage(),
            "aclnnMlaPrologV3WeightNz: weightQuantMode must be 0: the soft device takes no "
            "quantised form.");
  Given wrong = given;
  wrong.up_q = Random({kRank, 5});
  EXPECT_EQ(RunOperator("aclnnMlaProlog", First(wrong, results, {})), kReject);
}

}  // namespace
}  // namespace acltape::opapi
