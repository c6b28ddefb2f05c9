// Operands that operators of fused attention need and PyTorch's do not have: statistics whose last
// dimension holds each value 8 times, and masks with an element for each score.
#include <cmath>

#include "analyzer/lowering/values.h"

namespace acltape::analyzer::lowering {
namespace {

using storage::DType;

constexpr int64_t kRepeats = 8;

std::vector<int64_t> StatisticShape(const LoweredTensor& rows) {
  std::vector<int64_t> shape = rows.layout.shape;
  shape.push_back(kRepeats);
  return shape;
}

// statistic(rows, 'name'): a temporary with a value per row. A rule that names it again gets the
// same one.
LoweredValue StatisticFunction(Binder& binder, Values& operands) {
  const LoweredTensor& rows = TensorOf(operands[0], "statistic");
  return Tensor(binder.Shared(operands[1].text, rows.layout.dtype, StatisticShape(rows)));
}

// repeated(rows): each value 8 times.
LoweredValue RepeatedFunction(Binder& binder, Values& operands) {
  LoweredTensor rows = TensorOf(operands[0], "repeated");
  const LoweredTensor copy = binder.Temporary(rows.layout.dtype, StatisticShape(rows));
  rows.layout.shape.push_back(1);
  rows.layout.strides.push_back(1);
  binder.Before({"aclnnInplaceCopy", {Tensor(copy), Tensor(rows)}});
  return Tensor(copy);
}

// repeatedones(rows): a 1 for each value, 8 times.
LoweredValue RepeatedOnesFunction(Binder& binder, Values& operands) {
  const LoweredTensor& rows = TensorOf(operands[0], "repeatedones");
  const LoweredTensor ones = binder.Temporary(rows.layout.dtype, StatisticShape(rows));
  binder.Before({"aclnnInplaceOne", {Tensor(ones)}});
  return Tensor(ones);
}

// The shape of the scores of query and key [batch, heads, positions, width].
std::vector<int64_t> ScoreShape(const LoweredTensor& query, const LoweredTensor& key) {
  const std::vector<int64_t>& q = query.layout.shape;
  const std::vector<int64_t>& k = key.layout.shape;
  if (q.size() != 4 || k.size() != 4) throw CannotBind("attention needs four dimensions");
  return {q[0], q[1], q[2], k[2]};
}

// likescores(x, query, key): uninitialised memory of x's element type, with an element per score.
LoweredValue LikeScoresFunction(Binder& binder, Values& operands) {
  const DType dtype = TensorOf(operands[0], "likescores").layout.dtype;
  return Tensor(binder.Temporary(
      dtype, ScoreShape(TensorOf(operands[1], "likescores"), TensorOf(operands[2], "likescores"))));
}

// perscore(mask, query, key): the mask broadcast to all scores.
LoweredValue PerScoreFunction(Binder& binder, Values& operands) {
  LoweredValue spread = LikeScoresFunction(binder, operands);
  binder.Before({"aclnnInplaceCopy", {spread, operands[0]}});
  return spread;
}

// causal(query, key): true if a key comes after its query. Both are counted from their first.
LoweredValue CausalFunction(Binder& binder, Values& operands) {
  const std::vector<int64_t> scores =
      ScoreShape(TensorOf(operands[0], "causal"), TensorOf(operands[1], "causal"));
  const LoweredTensor mask = binder.Temporary(DType::kBool, {scores[2], scores[3]});
  binder.Before({"aclnnInplaceOne", {Tensor(mask)}});
  binder.Before({"aclnnInplaceTriu", {Tensor(mask), Int(1)}});
  return Tensor(mask);
}

// scorecount(query, key): the number of scores, as a list.
LoweredValue ScoreCountFunction(Binder&, Values& operands) {
  int64_t count = 1;
  for (const int64_t size :
       ScoreShape(TensorOf(operands[0], "scorecount"), TensorOf(operands[1], "scorecount"))) {
    count *= size;
  }
  return IntList({count});
}

// dropbits(query, key): memory for a bit per score, in the units of 128 bits that the operator
// writes. A rule that asks again gets the same memory.
LoweredValue DropBitsFunction(Binder& binder, Values& operands) {
  const int64_t count = ScoreCountFunction(binder, operands).integers[0];
  return Tensor(binder.Shared("dropbits", DType::kUint8, {(count + 127) / 128 * 16}));
}

// dropped(keep): the probability that a weight is dropped, in float32 as the adapter computes it.
LoweredValue DroppedFunction(Binder&, Values& operands) {
  LoweredValue result;
  result.kind = storage::ValueKind::kReal;
  result.real = 1.0f - static_cast<float>(operands[0].real);
  return result;
}

// rsqrt(n): 1 / sqrt(n), the scale of attention over heads of width n.
LoweredValue RsqrtFunction(Binder&, Values& operands) {
  LoweredValue result;
  result.kind = storage::ValueKind::kReal;
  result.real = 1.0 / std::sqrt(static_cast<double>(IntOf(operands[0], "rsqrt")));
  return result;
}

}  // namespace

const std::vector<BindFunction>& AttentionFunctions() {
  static const std::vector<BindFunction> functions = {
      {"statistic", 2, StatisticFunction},
      {"repeated", 1, RepeatedFunction},
      {"repeatedones", 1, RepeatedOnesFunction},
      {"likescores", 3, LikeScoresFunction},
      {"perscore", 3, PerScoreFunction},
      {"causal", 2, CausalFunction},
      {"rsqrt", 1, RsqrtFunction},
      {"scorecount", 2, ScoreCountFunction},
      {"dropbits", 2, DropBitsFunction},
      {"dropped", 1, DroppedFunction},
  };
  return functions;
}

}  // namespace acltape::analyzer::lowering
