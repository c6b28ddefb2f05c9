// The operator table and its trampolines.
#include "acl/invoke/operator_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace acltape::acl {
namespace {

TEST(OperatorTable, HoldsEveryOperatorInOrderOfNames) {
  ASSERT_GE(OperatorCount(),
            1261u);  // the vendor's operators of the specification, and our additions
  for (uint32_t i = 0; i < OperatorCount(); ++i) {
    const OperatorInfo& info = OperatorAt(i);
    EXPECT_EQ(info.index, i);
    EXPECT_EQ(FindOperator(info.name), &info);
    EXPECT_EQ(std::string(info.name) + "GetWorkspaceSize", info.workspace_name);
    EXPECT_NE(info.prepare, nullptr);
    EXPECT_NE(info.launch, nullptr);
    if (i > 0) {
      EXPECT_LT(OperatorAt(i - 1).name, info.name);
    }
  }
  EXPECT_EQ(FindOperator("aclnnNoSuchOperator"), nullptr);
  EXPECT_EQ(FindOperator("aclnnAddGetWorkspaceSize"), nullptr);
  EXPECT_EQ(FindOperator(""), nullptr);
}

TEST(OperatorTable, DescribesArguments) {
  const OperatorInfo* add = FindOperator("aclnnAdd");
  ASSERT_NE(add, nullptr);
  EXPECT_EQ(add->header, "aclnnop/aclnn_add.h");
  EXPECT_EQ(add->domain, "math");
  ASSERT_EQ(add->arg_count, 4u);
  EXPECT_EQ(add->args[2].name, "alpha");
  EXPECT_EQ(add->args[2].kind, ArgKind::kScalar);
  EXPECT_EQ(add->args[0].direction, Direction::kIn);
  EXPECT_EQ(add->args[3].direction, Direction::kOut);
  const OperatorInfo* inplace = FindOperator("aclnnInplaceAdd");
  ASSERT_NE(inplace, nullptr);
  EXPECT_EQ(inplace->args[0].direction, Direction::kInOut);
}

// Stands in for aclnnAdd's first phase.
struct Seen {
  const aclTensor* self;
  const aclScalar* alpha;
};
Seen seen;

aclnnStatus FakeAdd(const aclTensor* self, const aclTensor*, const aclScalar* alpha, aclTensor*,
                    uint64_t* workspace, aclOpExecutor** executor) {
  seen = {self, alpha};
  *workspace = 4096;
  *executor = reinterpret_cast<aclOpExecutor*>(0x40);
  return 161002;
}

TEST(OperatorTable, TrampolinesPassPackedArgumentsOn) {
  auto* self = reinterpret_cast<const aclTensor*>(0x10);
  auto* alpha = reinterpret_cast<const aclScalar*>(0x30);
  const ArgValue args[] = {Pack(self), Pack(self), Pack(alpha),
                           Pack(reinterpret_cast<aclTensor*>(0x20))};
  uint64_t workspace = 0;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(FindOperator("aclnnAdd")
                ->prepare(reinterpret_cast<void*>(&FakeAdd), args, &workspace, &executor),
            161002);
  EXPECT_EQ(seen.self, self);
  EXPECT_EQ(seen.alpha, alpha);
  EXPECT_EQ(workspace, 4096u);
  EXPECT_EQ(executor, reinterpret_cast<aclOpExecutor*>(0x40));
}

TEST(OperatorTable, TheOperatorThatRepeatsItsArgumentsIsMarked) {
  uint32_t repeating = 0;
  for (uint32_t i = 0; i < OperatorCount(); ++i) repeating += OperatorAt(i).launch_repeats_args;
  EXPECT_EQ(repeating, 1u);
  EXPECT_TRUE(FindOperator("aclnnGaussianBlur")->launch_repeats_args);
}

TEST(ArgValue, PackAndUnpackAreInverse) {
  EXPECT_EQ(Unpack<int64_t>(Pack(int64_t{-5})), -5);
  EXPECT_EQ(Unpack<uint64_t>(Pack(UINT64_MAX)), UINT64_MAX);
  EXPECT_EQ(Unpack<uint32_t>(Pack(UINT32_MAX)), UINT32_MAX);
  EXPECT_EQ(Unpack<int8_t>(Pack(int8_t{-1})), -1);
  EXPECT_EQ(Unpack<bool>(Pack(true)), true);
  EXPECT_EQ(Unpack<float>(Pack(1.1f)), 1.1f);
  EXPECT_EQ(Unpack<double>(Pack(-0.1)), -0.1);
  EXPECT_EQ(Unpack<aclDataType>(Pack(ACL_DT_UNDEFINED)), ACL_DT_UNDEFINED);
  const char* text = "sum";
  EXPECT_EQ(Unpack<const char*>(Pack(text)), text);
}

}  // namespace
}  // namespace acltape::acl
