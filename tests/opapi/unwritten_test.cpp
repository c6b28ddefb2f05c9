// Kernels that make a result of device memory that nothing wrote (rule FND-01).
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

const std::string& FileName() {
  static const std::string name = "/tmp/acltape_unwritten_" + std::to_string(getpid());
  return name;
}

const bool set = [] {
  setenv("ACLTAPE_SOFT_POISON", "1", 1);
  setenv("ACLTAPE_SOFT_FINDINGS", FileName().c_str(), 1);
  return true;
}();

class Unwritten : public testing::Test {
 protected:
  void TearDown() override { std::remove(FileName().c_str()); }

  // A tensor in new device memory. It lives until the process ends.
  static Tensor New(at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat) {
    TestStream();
    void* memory = nullptr;
    const Tensor like = at::empty(sizes, dtype);
    EXPECT_EQ(aclrtMalloc(&memory, like.nbytes(), ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    return at::from_blob(memory, sizes, like.options());
  }

  static std::string Found() {
    std::ifstream file(FileName());
    std::string text, line;
    while (std::getline(file, line)) text += line.substr(line.find('\t') + 1) + "\n";
    return text;
  }
};

TEST_F(Unwritten, FND_01_AResultOfMemoryThatNothingWroteNamesOperatorAndArgument) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    const Tensor partly = New({8, 4}, dtype);
    partly.narrow(0, 0, 6).fill_(1);
    ASSERT_EQ(RunOperator("aclnnMul", {at::ones({8, 4}, dtype), partly, at::empty({8, 4}, dtype)}),
              0)
        << LastMessage();
  }
  const std::string found = Found();
  EXPECT_EQ(found.find("unwritten_read\taclnnMul\t1\tnothing had written 8 of the 32 elements of "
                       "its argument other\n"),
            0u)
      << found;
  EXPECT_NE(found.find("unwritten_read\taclnnMul\t2\t"), std::string::npos) << found;
  std::remove(FileName().c_str());

  const Tensor greater = at::empty({8}, at::kBool);
  ASSERT_EQ(RunOperator("aclnnGtTensor", {New({8}), at::ones({8}), greater}), 0) << LastMessage();
  EXPECT_NE(Found().find("unwritten_read\taclnnGtTensor\t1\t"), std::string::npos) << Found();
  const Tensor sum = New({8});
  ASSERT_EQ(RunOperator("aclnnInplaceAdd", {sum, at::ones({8}), 1}), 0) << LastMessage();
  EXPECT_NE(Found().find("unwritten_read\taclnnInplaceAdd\t1\t"), std::string::npos) << Found();
}

TEST_F(Unwritten, FND_01_WhatAMaskLeavesOutOrACopyPassesOnIsNone) {
  const Tensor partly = New({8});
  partly.narrow(0, 0, 6).fill_(1);
  const Tensor first = at::arange(8).lt(6), out = at::empty({8});
  ASSERT_EQ(RunOperator("aclnnSWhere", {first, partly, at::zeros({8}), out}), 0) << LastMessage();
  EXPECT_TRUE(SameBits(out, first.to(at::kFloat)));
  ASSERT_EQ(RunOperator("aclnnInplaceCopy", {at::empty({8}), partly}), 0) << LastMessage();
  // Memory that is overwritten, and numbers that are NaN of themselves.
  ASSERT_EQ(RunOperator("aclnnInplaceZero", {New({8})}), 0) << LastMessage();
  ASSERT_EQ(RunOperator("aclnnAdd", {at::full({8}, NAN), at::ones({8}), 1, at::empty({8})}), 0);
  EXPECT_EQ(Found(), "");
}

}  // namespace
}  // namespace acltape::opapi
