// The generated headers: they compile together as C++ and as C, and agree with the operator table.
#include <gtest/gtest.h>

#include <type_traits>

#include "acl/acl.h"
#include "acl/acl_prof.h"
#include "aclnn/aclnn_base.h"
#include "all_operator_headers.h"

extern "C" int CountModesFromC(void);

namespace {

TEST(Headers, CompileAsC) { EXPECT_EQ(CountModesFromC(), 3); }

TEST(Headers, ValuesAndLayoutsAreTheInterfaces) {
  EXPECT_EQ(ACL_ERROR_RT_STREAM_CAPTURED, 107027);
  EXPECT_EQ(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, 507903);
  EXPECT_EQ(ACL_BF16, 27);
  EXPECT_EQ(ACL_EVENT_EXTERNAL, 0x20u);
  EXPECT_EQ(ACLNN_ERR_PARAM_INVALID, 161002);
  EXPECT_EQ(sizeof(aclmdlRITaskParams), 200u);
  EXPECT_EQ(offsetof(aclmdlRITaskParams, kernelTaskParams), 72u);
}

TEST(Headers, OperatorsHaveTheirTypedSignatures) {
  using Add = aclnnStatus (*)(const aclTensor*, const aclTensor*, const aclScalar*, aclTensor*,
                              uint64_t*, aclOpExecutor**);
  EXPECT_TRUE((std::is_same_v<decltype(&aclnnAddGetWorkspaceSize), Add>));
  using Run = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, aclrtStream);
  EXPECT_TRUE((std::is_same_v<decltype(&aclnnAdd), Run>));
}

}  // namespace
