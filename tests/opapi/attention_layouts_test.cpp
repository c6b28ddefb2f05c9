// Fused attention of inference takes its tensors in many layouts, and gives its result in the same
// one or in another. Each is held against attention of [batch, heads, positions, width] in double
// precision.
#include <limits>
#include <string>
#include <vector>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr int64_t kEveryToken = std::numeric_limits<int32_t>::max();
constexpr int64_t kSequences = 2, kLayoutHeads = 4, kLayoutWidth = 8;
constexpr int64_t kQueryRows = 3, kKeyRows = 5;

bool IsPacked(const std::string& layout) { return layout == "TND" || layout == "NTD"; }

// A tensor of [batch, heads, positions, width] in another layout.
Tensor In(const std::string& layout, const Tensor& bnsd) {
  if (layout == "BSND") return bnsd.transpose(1, 2).contiguous();
  if (layout == "BSH") return bnsd.transpose(1, 2).flatten(2).contiguous();
  if (layout == "NBSD") return bnsd.transpose(0, 1).contiguous();
  if (layout == "TND") return bnsd.transpose(1, 2).flatten(0, 1).contiguous();
  if (layout == "NTD") return bnsd.transpose(0, 1).flatten(1, 2).contiguous();
  return bnsd;
}

// The arguments of a version that lie around those of this test.
struct InferVersion {
  const char* op;
  bool fused;     // keys and values are lists, and there may be sums
  size_t before;  // arguments before the number of heads
  size_t modes;   // modes of quantisation before the results
};
constexpr InferVersion kInferVersions[] = {
    {"aclnnFusedInferAttentionScore", true, 17, 0},
    {"aclnnFusedInferAttentionScoreV2", true, 24, 2},
    {"aclnnFusedInferAttentionScoreV3", true, 27, 2},
    {"aclnnFusedInferAttentionScoreV4", true, 29, 3},
    {"aclnnPromptFlashAttentionV3", false, 12, 0},
};

Args CallOf(const InferVersion& version, const char* layout, const Tensor& query, const Tensor& key,
            const Tensor& value, const Tensor& out) {
  const std::string name = layout;
  const std::string given = name.substr(0, name.find('_'));
  Args args(version.before, Null{});
  args[0] = In(given, query);
  const Tensor keys = In(given, key), values = In(given, value);
  args[1] = version.fused ? Arg(std::vector<Tensor>{keys}) : Arg(keys);
  args[2] = version.fused ? Arg(std::vector<Tensor>{values}) : Arg(values);
  if (IsPacked(given)) {  // where each sequence ends
    args[5] = std::vector<int64_t>{kQueryRows, kSequences * kQueryRows};
    args[6] = std::vector<int64_t>{kKeyRows, kSequences * kKeyRows};
  }
  args.insert(args.end(), {kLayoutHeads, 0.4, kEveryToken, kEveryToken, layout, kLayoutHeads});
  args.insert(args.end(), version.fused ? 4 : 2, int64_t{0});  // from the mode of the mask on
  if (version.fused) args.push_back(false);                    // no sums
  args.insert(args.end(), version.modes, int64_t{0});
  args.push_back(out);
  if (version.fused) args.push_back(Null{});
  return args;
}

TEST(AttentionLayouts, EachGivesTheSameAttention) {
  const auto bnsd = [](int64_t rows) {
    return Random({kSequences, kLayoutHeads, rows, kLayoutWidth});
  };
  const Tensor query = bnsd(kQueryRows), key = bnsd(kKeyRows), value = bnsd(kKeyRows);
  const Tensor q = query.to(at::kDouble), k = key.to(at::kDouble), v = value.to(at::kDouble);
  const Tensor expected =
      at::matmul(at::softmax(at::matmul(q, k.transpose(2, 3)) * 0.4, -1), v).to(at::kFloat);
  const char* const layouts[] = {"BNSD",      "BSND",      "BSH",      "TND",
                                 "NTD",       "BNSD_BSND", "BSH_NBSD", "BSND_NBSD",
                                 "BNSD_NBSD", "TND_NTD",   "NTD_TND"};
  for (const InferVersion& version : kInferVersions) {
    for (const char* layout : layouts) {
      SCOPED_TRACE(std::string(version.op) + " " + layout);
      const std::string name = layout;
      const Tensor wanted = In(name.substr(name.find('_') + 1), expected);
      const Tensor out = at::empty_like(wanted);
      ASSERT_EQ(RunOperator(version.op, CallOf(version, layout, query, key, value, out)), 0)
          << LastMessage();
      EXPECT_TRUE(at::allclose(out, wanted, 1e-5, 1e-6));
    }
  }
}

TEST(AttentionLayouts, ALayoutThatIsNoneIsRefusedWithItsName) {
  const Tensor x = Random({kSequences, kLayoutHeads, kQueryRows, kLayoutWidth});
  EXPECT_EQ(RunOperator(kInferVersions[3].op, CallOf(kInferVersions[3], "BDSN", x, x, x, x)),
            kReject);
  EXPECT_EQ(LastMessage(),
            "aclnnFusedInferAttentionScoreV4: inputLayout is the layout \"BDSN\", which the soft "
            "device lacks.");
}

}  // namespace
}  // namespace acltape::opapi
