// The libopapi.so for clients that choose an operator by whether its symbol exists exports those
// with a kernel, and no other. It needs no program that is linked against the usual one.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "acl/invoke/operator_table.h"

namespace acltape::opapi {
namespace {

void* Open(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  return library;
}

TEST(KernelExports, OPI_10_AnOperatorIsExportedThereWhereItHasAKernel) {
  void* fewer = Open(ACLTAPE_KERNELS_LIBRARY);
  void* all = Open(ACLTAPE_OPAPI_LIBRARY);
  ASSERT_NE(fewer, nullptr);
  ASSERT_NE(all, nullptr);
  ASSERT_NE(fewer, all);
  const auto has_kernel =
      reinterpret_cast<int (*)(const char*)>(dlsym(fewer, "SoftOperatorHasKernel"));
  ASSERT_NE(has_kernel, nullptr);
  int with = 0, without = 0;
  for (uint32_t i = 0; i < acl::OperatorCount(); ++i) {
    const std::string name(acl::OperatorAt(i).name);
    const bool kernel = has_kernel(name.c_str()) != 0;
    for (const std::string& symbol : {name, name + "GetWorkspaceSize"}) {
      EXPECT_EQ(dlsym(fewer, symbol.c_str()) != nullptr, kernel) << symbol;
    }
    if (kernel) {
      EXPECT_NE(dlsym(all, name.c_str()), nullptr) << name;
    }
    kernel ? ++with : ++without;
  }
  EXPECT_GE(with, 700);
  EXPECT_GT(without, 0);
  EXPECT_NE(dlsym(fewer, "aclnnCalculateMatmulWeightSize"), nullptr);
  EXPECT_NE(dlsym(fewer, "aclnnFusedInferAttentionScoreV3GetMaxWorkspaceSize"), nullptr);
}

}  // namespace
}  // namespace acltape::opapi
