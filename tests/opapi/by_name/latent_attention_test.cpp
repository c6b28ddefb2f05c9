// MlaProlog by its name, beside the library's operator, whose own test has a reference in loops.
#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr int64_t kTokensOfCall = 5, kHeadsOfCall = 2, kKeysOfCall = 6, kTurnedOfCall = 4;

struct LatentInputs {
  explicit LatentInputs(at::ScalarType dtype) {
    constexpr int64_t kHidden = 8, kRank = 7, kWidth = 3;
    all = {Random({kTokensOfCall, kHidden}, dtype),
           Random({kHidden, kRank}, dtype),
           Random({kRank, kHeadsOfCall * (kWidth + kTurnedOfCall)}, dtype),
           Random({kHeadsOfCall, kWidth, kKeysOfCall}, dtype),
           Random({kHidden, kKeysOfCall + kTurnedOfCall}, dtype),
           Random({kRank}, dtype),
           Random({kKeysOfCall}, dtype),
           Random({kTokensOfCall, kTurnedOfCall}, dtype),
           Random({kTokensOfCall, kTurnedOfCall}, dtype),
           at::tensor({7, 0, 3, 5, 2}, at::kLong),
           Random({2, 4, 1, kKeysOfCall}, dtype),
           Random({2, 4, 1, kTurnedOfCall}, dtype)};
  }
  std::vector<Tensor> all;
};

std::vector<Tensor> MarkedResults(at::ScalarType dtype) {
  return {at::full({kTokensOfCall, kHeadsOfCall, kKeysOfCall}, 77, dtype),
          at::full({kTokensOfCall, kHeadsOfCall, kTurnedOfCall}, 77, dtype),
          at::full({2, 4, 1, kKeysOfCall}, 77, dtype),
          at::full({2, 4, 1, kTurnedOfCall}, 77, dtype)};
}

NamedCall& WithLatent(NamedCall& call, const std::vector<Tensor>& inputs,
                      const std::vector<Tensor>& results) {
  for (const Tensor& input : inputs) call.In(input);
  for (int scale = 0; scale < 7; ++scale) call.None();
  for (const Tensor& result : results) call.Out(result);
  call.Set("rmsnorm_epsilon_cq", 1e-3f).Set("rmsnorm_epsilon_ckv", 2e-3f);
  return call.Set("cache_mode", "PA_BSND");
}

TEST(LatentAttentionByName, TheCachesChangeAndAreResultsToo) {
  at::manual_seed(51);
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    const LatentInputs given(dtype);
    std::vector<Tensor> of_library = given.all;
    for (int i : {10, 11}) of_library[i] = given.all[i].clone();
    const std::vector<Tensor> wanted = MarkedResults(dtype), results = MarkedResults(dtype);
    Args args(of_library.begin(), of_library.end());
    for (int scale = 0; scale < 7; ++scale) args.emplace_back(Null{});
    for (const Arg& each : Args{double{1e-3f}, double{2e-3f}, "PA_BSND", wanted[0], wanted[1]}) {
      args.push_back(each);
    }
    PackedCall library("aclnnMlaProlog", args);
    ASSERT_EQ(library.Prepare(), ACL_SUCCESS) << TakeMessage();
    ASSERT_EQ(library.Launch(TestStream()), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(TestStream()), ACL_SUCCESS);
    const Tensor before = given.all[10].clone();
    NamedCall call("MlaProlog");
    ASSERT_EQ(WithLatent(call, given.all, results).Run(), ACL_SUCCESS) << TakeMessage();
    for (int i : {0, 1}) EXPECT_TRUE(SameBits(results[i], wanted[i])) << i;
    for (int i : {0, 1}) {
      EXPECT_TRUE(SameBits(given.all[10 + i], of_library[10 + i])) << i;
      EXPECT_TRUE(SameBits(results[2 + i], of_library[10 + i])) << i;
    }
    EXPECT_FALSE(at::equal(given.all[10], before));
  }
}

TEST(LatentAttentionByName, FormsThatAreRefused) {
  const auto refuse = [](const std::vector<Tensor>& inputs, const std::vector<Tensor>& results,
                         const char* mode, const char* part) {
    TakeMessage();
    NamedCall call("MlaProlog");
    WithLatent(call, inputs, results).Set("cache_mode", mode);
    EXPECT_NE(call.Run(), ACL_SUCCESS);
    const std::string message = TakeMessage();
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  const LatentInputs given(at::kFloat);
  std::vector<Tensor> results = MarkedResults(at::kFloat);
  refuse(given.all, results, "PA_NZ", "must be \"PA_BSND\"");
  results[2] = at::empty({2, 4, 1, 5});
  refuse(given.all, results, "PA_BSND", "output 2 has the shape [2, 4, 1, 5]");
  results = MarkedResults(at::kFloat);
  results[3] = results[3].to(at::kHalf);
  refuse(given.all, results, "PA_BSND", "the soft device takes one type");
  results = MarkedResults(at::kFloat);
  std::vector<Tensor> inputs = given.all;
  inputs[1] = Random({8, 5});
  refuse(inputs, results, "PA_BSND", "weightUqQr");
  inputs.resize(11);
  TakeMessage();
  NamedCall few("MlaProlog");
  for (const Tensor& input : inputs) few.In(input);
  EXPECT_NE(few.Out(results[0]).Run(), ACL_SUCCESS);
  EXPECT_NE(TakeMessage().find("expected at least 12 and 4"), std::string::npos);
}

}  // namespace
}  // namespace acltape::opapi
