// The operators that make the values of a leaf random, as the recorder sees it.
#include "recorder/acl/random_operators.h"

#include <gtest/gtest.h>

#include <vector>

namespace acltape::acl_agent {
namespace {

// `value` is the argument of this name; all others are zero.
bool Draws(std::string_view op, std::string_view name = "", acl::ArgValue value = {}) {
  const acl::OperatorInfo* info = acl::FindOperator(op);
  EXPECT_NE(info, nullptr) << op;
  std::vector<acl::ArgValue> values(info->arg_count, acl::ArgValue{});
  for (uint32_t i = 0; i < info->arg_count; ++i) {
    if (info->args[i].name == name) values[i] = value;
  }
  return DrawsNumbers(*info, values.data());
}

TEST(RandomOperators, AreAllThatTakeASeedNotDropoutAlone) {
  for (const char* op : {"aclnnDropoutGenMaskV2", "aclnnDropoutV3", "aclnnBernoulli",
                         "aclnnInplaceNormal", "aclnnInplaceUniformTensor", "aclnnMultinomial",
                         "aclnnRandperm", "aclnnSimThreadExponential", "aclnnStatelessBernoulli"}) {
    EXPECT_TRUE(Draws(op)) << op;
  }
  for (const char* op :
       {"aclnnAdd", "aclnnDropoutDoMask", "aclnnDropoutBackward", "aclnnDropoutV3Grad"}) {
    EXPECT_FALSE(Draws(op)) << op;
  }
}

TEST(RandomOperators, DrawOnlyWhereTheirArgumentsSaySo) {
  EXPECT_TRUE(Draws("aclnnDropout", "train", acl::Pack(true)));
  EXPECT_FALSE(Draws("aclnnDropout", "train", acl::Pack(false)));
  EXPECT_TRUE(Draws("aclnnRReluWithNoise", "training", acl::Pack(true)));
  EXPECT_FALSE(Draws("aclnnRReluWithNoise", "training", acl::Pack(false)));
  EXPECT_TRUE(Draws("aclnnFlashAttentionScoreV4", "keepProb", acl::Pack(0.9)));
  EXPECT_FALSE(Draws("aclnnFlashAttentionScoreV4", "keepProb", acl::Pack(1.0)));
}

}  // namespace
}  // namespace acltape::acl_agent
