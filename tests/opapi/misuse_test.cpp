// Misuse of operators: arguments that are no live objects, executors that were used up or
// destroyed, memory that is gone when a kernel runs. tests/runtime/misuse has the functions of the
// other libraries.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "acl/invoke/operator_table.h"
#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_neg.h"

namespace acltape::opapi {
namespace {

constexpr aclnnStatus kInvalid = 161002;
constexpr int64_t kFour = 4;

std::string Message() {
  const char* text = aclGetRecentErrMsg();
  return text != nullptr ? text : "";
}

class OperatorMisuse : public testing::Test {
 protected:
  void SetUp() override {
    aclInit(nullptr);
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
    ASSERT_EQ(aclrtMalloc(&memory_, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    ASSERT_EQ(aclrtMemset(memory_, 64, 0, 64), ACL_SUCCESS);
    tensor_ = TensorAt(memory_);
  }
  void TearDown() override {
    aclrtResetDeviceForce(0);
    aclFinalize();
    Message();
  }

  static aclTensor* TensorAt(void* address) {
    return aclCreateTensor(&kFour, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &kFour, 1, address);
  }

  // An executor of aclnnNeg in place of `tensor`.
  static aclOpExecutor* Prepare(const aclTensor* tensor) {
    uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(aclnnNegGetWorkspaceSize(tensor, const_cast<aclTensor*>(tensor), &bytes, &executor),
              OK)
        << Message();
    return executor;
  }

  aclnnStatus Launch(aclOpExecutor* executor) { return aclnnNeg(nullptr, 0, executor, stream_); }

  // The last call was refused by `function` for a reason with `words` in it.
  static void ExpectSays(const std::string& function, const std::string& words) {
    const std::string message = Message();
    EXPECT_EQ(message.substr(0, function.size() + 1), function + ":") << message;
    EXPECT_NE(message.find(words), std::string::npos) << message;
  }

  aclrtStream stream_ = nullptr;
  void* memory_ = nullptr;
  aclTensor* tensor_ = nullptr;
};

TEST_F(OperatorMisuse, AnExecutorThatIsNotRepeatableIsLaunchedOnce) {
  aclOpExecutor* executor = Prepare(tensor_);
  EXPECT_EQ(Launch(executor), OK);
  EXPECT_EQ(Launch(executor), kInvalid);
  ExpectSays("aclnnNeg", "it was launched already");
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), kInvalid);
  ExpectSays("aclDestroyAclOpExecutor", "it was launched already");
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(executor), kInvalid);
  ExpectSays("aclSetAclOpExecutorRepeatable", "it was launched already");
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
}

TEST_F(OperatorMisuse, ADestroyedExecutorIsNeitherLaunchedNorDestroyedAgain) {
  aclOpExecutor* executor = Prepare(tensor_);
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(executor), OK);
  EXPECT_EQ(Launch(executor), OK);
  EXPECT_EQ(Launch(executor), OK);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), OK);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), kInvalid);
  EXPECT_EQ(Launch(executor), kInvalid);
  EXPECT_EQ(aclSetTensorAddr(executor, 0, tensor_, memory_), kInvalid);
  EXPECT_EQ(aclSetDynamicTensorAddr(executor, 0, 0, nullptr, memory_), kInvalid);
  ExpectSays("aclSetDynamicTensorAddr", "no live aclOpExecutor");
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
}

TEST_F(OperatorMisuse, MEM_13_AnOffsetDoesNotReachAnotherBlock) {
  void* other = nullptr;
  ASSERT_EQ(aclrtMalloc(&other, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemset(other, 64, 0, 64), ACL_SUCCESS);
  const int64_t near = (static_cast<char*>(other) - static_cast<char*>(memory_)) / 4;
  struct Case {
    int64_t offset, stride;
  };
  // The block of 64 bytes has 96 (MEM-02); the tensor ends with byte 100.
  for (const Case& c :
       {Case{21, 1}, Case{near, 1}, Case{int64_t{1} << 31, 1}, Case{int64_t{1} << 62, 1},
        Case{-4, 1}, Case{0, int64_t{1} << 40}, Case{0, int64_t{1} << 61}}) {
    aclTensor* out = aclCreateTensor(&kFour, 1, ACL_FLOAT, &c.stride, c.offset, ACL_FORMAT_ND,
                                     &kFour, 1, memory_);
    if (out == nullptr) continue;  // refused even earlier
    uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    const aclnnStatus prepared = aclnnNegGetWorkspaceSize(tensor_, out, &bytes, &executor);
    if (prepared != OK) {
      EXPECT_EQ(prepared, kInvalid);
    } else if (Launch(executor) == OK) {
      EXPECT_EQ(aclrtSynchronizeStream(stream_), 507015) << c.offset << ", " << c.stride;
      EXPECT_NE(Message().find("left in its block"), std::string::npos) << c.offset;
      aclrtDestroyStreamForce(stream_);
      ASSERT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
    }
  }
  float values[16];
  ASSERT_EQ(aclrtMemcpy(values, 64, other, 64, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
  for (float value : values) EXPECT_EQ(value, 0);
}

TEST_F(OperatorMisuse, WhatIsNoExecutorIsNotLaunched) {
  for (void* junk : {reinterpret_cast<void*>(0x1234), reinterpret_cast<void*>(0xdeadbeefdeadbeef),
                     memory_, static_cast<void*>(tensor_), static_cast<void*>(stream_)}) {
    EXPECT_EQ(Launch(static_cast<aclOpExecutor*>(junk)), kInvalid);
    ExpectSays("aclnnNeg", "no live aclOpExecutor");
  }
  EXPECT_EQ(Launch(nullptr), 161001);
  ExpectSays("aclnnNeg", "executor is NULL");
  EXPECT_EQ(Launch(reinterpret_cast<aclOpExecutor*>(tensor_)), kInvalid);
  ExpectSays("aclnnNeg", "it is an aclTensor");
}

TEST_F(OperatorMisuse, AnExecutorOfAnotherOperatorIsNotLaunched) {
  aclOpExecutor* executor = Prepare(tensor_);
  EXPECT_EQ(aclnnAdd(nullptr, 0, executor, stream_), kInvalid);
  ExpectSays("aclnnAdd", "the executor was made for aclnnNeg");
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), OK);
}

TEST_F(OperatorMisuse, ObjectsDestroyedAfterTheFirstPhaseDoNotBecomeRepeatable) {
  aclOpExecutor* executor = Prepare(tensor_);
  ASSERT_EQ(aclDestroyTensor(tensor_), OK);
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(executor), kInvalid);
  ExpectSays("aclSetAclOpExecutorRepeatable", "no live aclTensor; it was destroyed");
  EXPECT_EQ(Launch(executor), OK);  // the second phase needs the tensors no longer
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
}

TEST_F(OperatorMisuse, AListEndsItsMembers) {
  aclTensorList* list = aclCreateTensorList(&tensor_, 1);
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(aclDestroyTensorList(list), OK);
  EXPECT_EQ(aclDestroyTensorList(list), kInvalid);
  EXPECT_EQ(aclDestroyTensor(tensor_), kInvalid);
  EXPECT_EQ(aclCreateTensorList(&tensor_, 1), nullptr);
  ExpectSays("aclCreateTensorList", "a member");
}

// Every operator refuses what is no live object, in every argument that is an object.
TEST_F(OperatorMisuse, EveryFirstPhaseRefusesWhatIsNoObject) {
  using acl::ArgKind;
  using acl::ArgValue;
  float one = 1;
  aclScalar* scalar = aclCreateScalar(&one, ACL_FLOAT);
  aclTensor* ended = TensorAt(memory_);
  ASSERT_EQ(aclDestroyTensor(ended), OK);
  // None of these is right for any argument, except the tensor and the scalar for their own kinds.
  const std::array<const void*, 6> wrong = {reinterpret_cast<void*>(0x1234),
                                            reinterpret_cast<void*>(0xdeadbeefdeadbeef),
                                            ended,
                                            memory_,
                                            tensor_,
                                            scalar};
  size_t refused = 0;
  for (uint32_t index = 0; index < acl::OperatorCount(); ++index) {
    const acl::OperatorInfo& op = acl::OperatorAt(index);
    const std::string phase(op.workspace_name);
    void* prepare = dlsym(RTLD_DEFAULT, phase.c_str());
    if (prepare == nullptr) continue;
    for (uint32_t i = 0; i < op.arg_count; ++i) {
      const ArgKind kind = op.args[i].kind;
      if (kind >= ArgKind::kString) continue;
      for (const void* handle : wrong) {
        if (handle == tensor_ && kind == ArgKind::kTensor) continue;
        if (handle == scalar && kind == ArgKind::kScalar) continue;
        std::vector<ArgValue> args(op.arg_count, ArgValue{});
        args[i].pointer = handle;
        uint64_t bytes = 0;
        aclOpExecutor* executor = nullptr;
        ASSERT_EQ(op.prepare(prepare, args.data(), &bytes, &executor), kInvalid)
            << phase << " " << op.args[i].name;
        ExpectSays(phase, std::string(op.args[i].name) + " 0x");
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 1000u);
}

TEST_F(OperatorMisuse, MEM_04_AKernelDoesNotRunOverMemoryThatIsGone) {
  void* freed = nullptr;
  ASSERT_EQ(aclrtMalloc(&freed, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  ASSERT_EQ(aclrtFree(freed), ACL_SUCCESS);
  for (void* address : {freed, reinterpret_cast<void*>(0x1234)}) {
    EXPECT_EQ(Launch(Prepare(TensorAt(address))), OK);  // ERR-03
    EXPECT_EQ(aclrtSynchronizeStream(stream_), 507015);
    const std::string message = Message();
    EXPECT_NE(message.find("aclnnNeg: self"), std::string::npos) << message;
  }
}

TEST_F(OperatorMisuse, CAP_23_AGraphDoesNotRunOverMemoryThatWasFreed) {
  // Large blocks are address ranges, which a free used to take away.
  for (size_t bytes : {size_t{64}, size_t{128} << 20}) {
    void* memory = nullptr;
    ASSERT_EQ(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    ASSERT_EQ(aclrtMemset(memory, bytes, 0, 64), ACL_SUCCESS);
    ASSERT_EQ(aclmdlRICaptureBegin(stream_, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), ACL_SUCCESS);
    ASSERT_EQ(Launch(Prepare(TensorAt(memory))), OK);
    aclmdlRI model = nullptr;
    ASSERT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS);
    for (int replay = 0; replay < 2; ++replay) {
      ASSERT_EQ(aclmdlRIExecuteAsync(model, stream_), ACL_SUCCESS);
      ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS) << Message();
    }
    ASSERT_EQ(aclrtFree(memory), ACL_SUCCESS);
    ASSERT_EQ(aclmdlRIExecuteAsync(model, stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream_), 507011);
    const std::string message = Message();
    EXPECT_NE(message.find("aclnnNeg: self"), std::string::npos) << message;
    EXPECT_NE(message.find("that was freed"), std::string::npos) << message;
    EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  }
}

TEST_F(OperatorMisuse, INIT_01_OperatorsAreRefusedAfterTheEnd) {
  aclOpExecutor* executor = Prepare(tensor_);
  ASSERT_EQ(aclFinalize(), ACL_SUCCESS);
  uint64_t bytes = 0;
  aclOpExecutor* other = nullptr;
  EXPECT_EQ(aclnnNegGetWorkspaceSize(tensor_, tensor_, &bytes, &other), 100001);
  ExpectSays("aclnnNegGetWorkspaceSize", "called after aclFinalize");
  EXPECT_EQ(Launch(executor), 100001);
  ExpectSays("aclnnNeg", "called after aclFinalize");
}

}  // namespace
}  // namespace acltape::opapi
