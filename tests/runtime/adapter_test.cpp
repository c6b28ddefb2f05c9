// Functions that adapters of frameworks call besides the runtime: operators by name, tensor
// descriptions, options, versions.
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl_op_compiler.h"
#include "acl/acl_prof.h"
#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

class Adapter : public SoftDevice {
 protected:
  // A tensor of floats in device memory with what an operator by name wants of it.
  struct Tensor {
    aclTensorDesc* desc;
    aclDataBuffer* buffer;
    float* memory;
    size_t count;
  };
  Tensor Make(std::vector<int64_t> shape, aclFormat format, std::vector<int64_t> storage,
              float value) {
    Tensor tensor{};
    tensor.count = 1;
    for (int64_t dim : storage) tensor.count *= static_cast<size_t>(dim);
    void* memory = nullptr;
    EXPECT_OK(aclrtMalloc(&memory, tensor.count * 4, ACL_MEM_MALLOC_HUGE_FIRST));
    tensor.memory = static_cast<float*>(memory);
    for (size_t i = 0; i < tensor.count; ++i) {
      tensor.memory[i] = value + static_cast<float>(i);
    }
    tensor.desc =
        aclCreateTensorDesc(ACL_FLOAT, static_cast<int>(shape.size()), shape.data(), ACL_FORMAT_ND);
    EXPECT_OK(aclSetTensorFormat(tensor.desc, format));
    EXPECT_OK(aclSetTensorShape(tensor.desc, static_cast<int>(storage.size()), storage.data()));
    tensor.buffer = aclCreateDataBuffer(memory, tensor.count * 4);
    return tensor;
  }
  void Free(const Tensor& tensor) {
    aclDestroyTensorDesc(tensor.desc);
    EXPECT_OK(aclDestroyDataBuffer(tensor.buffer));
    EXPECT_OK(aclrtFree(tensor.memory));
  }
  aclError Run(const char* name, const Tensor& from, const Tensor& to) {
    return aclopCompileAndExecute(name, 1, &from.desc, &from.buffer, 1, &to.desc, &to.buffer,
                                  nullptr, ACL_ENGINE_SYS, ACL_COMPILE_SYS, nullptr, stream_);
  }
  // As the task queue of torch_npu does it: another thread than the one that described the tensors.
  aclError RunFromAQueue(const char* name, const Tensor& from, const Tensor& to) {
    aclError code = ACL_SUCCESS;
    std::thread([&] {
      EXPECT_OK(aclrtSetDevice(0));
      code = Run(name, from, to);
    }).join();
    return code;
  }
};

TEST_F(Adapter, AFormatCastKeepsTheElementsAndFillsUpWithZeros) {
  for (const char* name : {"Identity", "TransData"}) {
    Tensor plain = Make({3, 5}, ACL_FORMAT_ND, {3, 5}, 1.0f);
    Tensor blocked = Make({3, 5}, ACL_FORMAT_NC1HWC0, {1, 1, 16, 16}, 100.0f);
    Tensor again = Make({3, 5}, ACL_FORMAT_ND, {3, 5}, 200.0f);
    ASSERT_OK(Run(name, plain, blocked));
    ASSERT_OK(Run(name, blocked, again));
    ASSERT_OK(aclrtSynchronizeStream(stream_));
    for (size_t i = 0; i < 15; ++i) EXPECT_EQ(again.memory[i], plain.memory[i]) << name << i;
    for (size_t i = 15; i < 256; ++i) EXPECT_EQ(blocked.memory[i], 0.0f) << name << i;
    for (const Tensor& tensor : {plain, blocked, again}) Free(tensor);
  }
}

TEST_F(Adapter, AnOperatorByNameThatIsMissingFailsAtTheCallWithItsName) {
  Tensor from = Make({4}, ACL_FORMAT_ND, {4}, 1.0f);
  Tensor to = Make({4}, ACL_FORMAT_ND, {4}, 2.0f);
  EXPECT_CODE(507015, Run("NoSuchOperator", from, to));
  EXPECT_NE(std::string(aclGetRecentErrMsg()).find("NoSuchOperator"), std::string::npos);
  EXPECT_CODE(507015, aclopCompileAndExecuteV2("NoSuchOperator", 1, &from.desc, &from.buffer, 1,
                                               &to.desc, &to.buffer, nullptr, ACL_ENGINE_SYS,
                                               ACL_COMPILE_SYS, nullptr, stream_));
  EXPECT_NE(std::string(aclGetRecentErrMsg()).find("NoSuchOperator"), std::string::npos);
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  for (const Tensor& tensor : {from, to}) Free(tensor);
}

TEST_F(Adapter, AnOperatorByNameThatATaskQueueCallsFailsAtTheSynchronisationWithWhoAskedForIt) {
  Tensor from = Make({4}, ACL_FORMAT_ND, {4}, 1.0f);
  Tensor to = Make({4}, ACL_FORMAT_ND, {4}, 2.0f);
  ASSERT_OK(aclrtSetStreamFailureMode(stream_, ACL_STOP_ON_FAILURE));  // as torch_npu does
  EXPECT_OK(RunFromAQueue("NoSuchOperator", from, to));
  EXPECT_CODE(507015, aclrtSynchronizeStream(stream_));
  const std::string told = aclGetRecentErrMsg();
  EXPECT_NE(told.find("no operator NoSuchOperator by name"), std::string::npos) << told;
  EXPECT_NE(told.find("prepared by thread " + std::to_string(gettid())), std::string::npos) << told;
  EXPECT_OK(Run("Identity", from, to));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(to.memory[3], from.memory[3]) << "the process goes on";
  for (const Tensor& tensor : {from, to}) Free(tensor);
}

TEST_F(Adapter, AThreadWithoutAMessageOfItsOwnIsToldTheFailedTaskOnce) {
  Tensor from = Make({4}, ACL_FORMAT_ND, {4}, 1.0f);
  Tensor to = Make({4}, ACL_FORMAT_ND, {4}, 2.0f);
  aclGetRecentErrMsg();
  ASSERT_OK(RunFromAQueue("NoSuchOperator", from, to));
  std::string told;
  std::thread([&] {
    while (told.empty()) {  // until the task has run
      const char* message = aclGetRecentErrMsg();
      if (message != nullptr) told = message;
      std::this_thread::yield();
    }
    EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  }).join();
  EXPECT_NE(told.find("task NoSuchOperator, prepared by thread"), std::string::npos) << told;
  EXPECT_NE(told.find("failed with 507015"), std::string::npos) << told;
  EXPECT_CODE(507015, aclrtSynchronizeStream(stream_));
  std::thread([] { EXPECT_EQ(aclGetRecentErrMsg(), nullptr); }).join();  // reported by the call
  for (const Tensor& tensor : {from, to}) Free(tensor);
}

TEST_F(Adapter, TensorDescriptionsTellWhatTheyWereGiven) {
  const int64_t shape[] = {2, 3};
  const int64_t storage[] = {1, 1, 16, 16};
  aclTensorDesc* desc = aclCreateTensorDesc(ACL_FLOAT16, 2, shape, ACL_FORMAT_ND);
  ASSERT_NE(desc, nullptr);
  EXPECT_EQ(aclGetTensorDescType(desc), ACL_FLOAT16);
  EXPECT_EQ(aclGetTensorDescFormat(desc), ACL_FORMAT_ND);
  EXPECT_EQ(aclGetTensorDescNumDims(desc), 2u);
  EXPECT_EQ(aclGetTensorDescSize(desc), 12u);
  aclSetTensorDescName(desc, "x1");
  EXPECT_STREQ(aclGetTensorDescName(desc), "x1");
  ASSERT_OK(aclSetTensorFormat(desc, ACL_FORMAT_FRACTAL_NZ));
  ASSERT_OK(aclSetTensorShape(desc, 4, storage));
  EXPECT_EQ(aclGetTensorDescFormat(desc), ACL_FORMAT_FRACTAL_NZ);
  EXPECT_EQ(aclGetTensorDescElementCount(desc), 256u);
  int64_t dim = 0;
  EXPECT_OK(aclGetTensorDescDimV2(desc, 2, &dim));
  EXPECT_EQ(dim, 16);
  EXPECT_CODE(100000, aclGetTensorDescDimV2(desc, 4, &dim));
  EXPECT_OK(aclSetTensorPlaceMent(desc, ACL_MEMTYPE_HOST));
  EXPECT_CODE(100000, aclSetTensorShape(desc, 2, nullptr));
  aclDestroyTensorDesc(desc);
  EXPECT_EQ(aclCreateTensorDesc(ACL_FLOAT, -1, shape, ACL_FORMAT_ND), nullptr);
}

TEST_F(Adapter, AttributesOfEveryKindAreTaken) {
  aclopAttr* attr = aclopCreateAttr();
  const int64_t ints[] = {1, 2};
  const int64_t* lists[] = {ints, ints};
  const int lengths[] = {1, 2};
  const float floats[] = {1.5f};
  const uint8_t bools[] = {1, 0};
  EXPECT_OK(aclopSetAttrBool(attr, "b", 1));
  EXPECT_OK(aclopSetAttrInt(attr, "i", -1));
  EXPECT_OK(aclopSetAttrFloat(attr, "f", 0.5f));
  EXPECT_OK(aclopSetAttrString(attr, "s", "text"));
  EXPECT_OK(aclopSetAttrDataType(attr, "d", ACL_BF16));
  EXPECT_OK(aclopSetAttrListInt(attr, "li", 2, ints));
  EXPECT_OK(aclopSetAttrListFloat(attr, "lf", 1, floats));
  EXPECT_OK(aclopSetAttrListBool(attr, "lb", 2, bools));
  EXPECT_OK(aclopSetAttrListListInt(attr, "ll", 2, lengths, lists));
  EXPECT_CODE(100000, aclopSetAttrInt(nullptr, "i", 0));
  EXPECT_CODE(100000, aclopSetAttrListInt(attr, "li", 2, nullptr));
  aclopDestroyAttr(attr);
}

TEST_F(Adapter, CompileOptionsAreToldAgainAndNeverEmpty) {
  char text[16];
  ASSERT_EQ(aclGetCompileoptSize(ACL_OP_JIT_COMPILE), sizeof("disable"));
  ASSERT_OK(aclGetCompileopt(ACL_OP_JIT_COMPILE, text, sizeof(text)));
  EXPECT_STREQ(text, "disable");
  ASSERT_OK(aclSetCompileopt(ACL_OP_JIT_COMPILE, "enable"));
  ASSERT_OK(aclGetCompileopt(ACL_OP_JIT_COMPILE, text, sizeof(text)));
  EXPECT_STREQ(text, "enable");
  EXPECT_CODE(100000, aclGetCompileopt(ACL_OP_JIT_COMPILE, text, 3));
  ASSERT_OK(aclSetCompileopt(ACL_OP_JIT_COMPILE, "disable"));
}

TEST_F(Adapter, OptionsOfTheProcessBeginAtZero) {
  int64_t value = -1;
  ASSERT_OK(aclrtGetSysParamOpt(ACL_OPT_STRONG_CONSISTENCY, &value));
  EXPECT_EQ(value, 0);
  ASSERT_OK(aclrtSetSysParamOpt(ACL_OPT_STRONG_CONSISTENCY, 1));
  ASSERT_OK(aclrtGetSysParamOpt(ACL_OPT_STRONG_CONSISTENCY, &value));
  EXPECT_EQ(value, 1);
  ASSERT_OK(aclrtSetSysParamOpt(ACL_OPT_STRONG_CONSISTENCY, 0));
}

TEST_F(Adapter, TimeOutsOfKernelsAreTakenAsAsked) {
  uint64_t actual = 0;
  EXPECT_OK(aclrtSetOpExecuteTimeOutV2(547000000, &actual));
  EXPECT_EQ(actual, 547000000u);
  uint32_t timeout_ms = 0;
  EXPECT_OK(aclrtGetOpExecuteTimeout(&timeout_ms));
  EXPECT_EQ(timeout_ms, 547000u);
  EXPECT_OK(aclrtSetOpExecuteTimeOut(10));
}

TEST_F(Adapter, NumbersOverflowToInfinityUnlessTheDeviceSaturates) {
  aclrtFloatOverflowMode mode = ACL_RT_OVERFLOW_MODE_UNDEF;
  EXPECT_OK(aclrtGetDeviceSatMode(&mode));
  EXPECT_EQ(mode, ACL_RT_OVERFLOW_MODE_INFNAN);
  EXPECT_OK(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION));
  EXPECT_OK(aclrtGetDeviceSatMode(&mode));
  EXPECT_EQ(mode, ACL_RT_OVERFLOW_MODE_SATURATION);
  EXPECT_OK(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN));
  EXPECT_CODE(107000, aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_UNDEF));
  void* status = nullptr;
  ASSERT_OK(aclrtMalloc(&status, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  std::memset(status, 1, 64);
  ASSERT_OK(aclrtGetOverflowStatus(status, 64, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(*static_cast<int64_t*>(status), 0);
  EXPECT_OK(aclrtResetOverflowStatus(stream_));
  EXPECT_OK(aclrtFree(status));
}

TEST_F(Adapter, TheProductSaysItsVersionAndItsAbilities) {
  aclCANNPackageVersion version;
  ASSERT_OK(aclsysGetCANNVersion(ACL_PKG_NAME_RUNTIME, &version));
  EXPECT_STREQ(version.version, "9.0.0");
  EXPECT_STREQ(version.minorVersion, "0");
  char name[] = "ops_math";
  char text[128];
  ASSERT_OK(aclsysGetVersionStr(name, text));
  EXPECT_STREQ(text, "9.0.0");
  int64_t cores = 0;
  ASSERT_OK(aclGetDeviceCapability(0, ACL_DEVICE_INFO_VECTOR_CORE_NUM, &cores));
  EXPECT_EQ(cores, 48);
  EXPECT_CODE(107001, aclGetDeviceCapability(99, ACL_DEVICE_INFO_L2_SIZE, &cores));
  int32_t available = 0;
  ASSERT_OK(aclGetCannAttribute(ACL_CANN_ATTR_INF_NAN, &available));
  EXPECT_EQ(available, 1);
  const aclCannAttr* attributes = nullptr;
  size_t count = 0;
  ASSERT_OK(aclGetCannAttributeList(&attributes, &count));
  EXPECT_EQ(count, 3u);
}

TEST_F(Adapter, AProfilerMayStartAndStop) {
  uint32_t device = 0;
  ASSERT_OK(aclprofInit("/tmp", 4));
  aclprofConfig* config = aclprofCreateConfig(&device, 1, ACL_AICORE_ARITHMETIC_UTILIZATION,
                                              nullptr, /*dataTypeConfig=*/1);
  ASSERT_NE(config, nullptr);
  EXPECT_OK(aclprofStart(config));
  EXPECT_OK(aclprofStop(config));
  EXPECT_CODE(100000, aclprofStart(nullptr));
  EXPECT_OK(aclprofDestroyConfig(config));
  EXPECT_OK(aclprofFinalize());
}

// The ranges nest by thread, or have numbers and end in any order.
TEST_F(Adapter, PROF_01_RangesAndMarksOfAProgramAreTaken) {
  void* stamp = aclprofCreateStamp();
  ASSERT_NE(stamp, nullptr);
  EXPECT_OK(aclprofSetStampTraceMessage(stamp, "message", 7));
  EXPECT_OK(aclprofMark(stamp));
  EXPECT_OK(aclprofMarkEx("message", 7, stream_));
  EXPECT_OK(aclprofPush(stamp));
  EXPECT_OK(aclprofPop());
  EXPECT_CODE(100000, aclprofPop());
  uint32_t first = 0;
  uint32_t second = 0;
  EXPECT_OK(aclprofRangeStart(stamp, &first));
  EXPECT_OK(aclprofRangeStart(stamp, &second));
  EXPECT_NE(first, second);
  EXPECT_OK(aclprofRangeStop(first));
  EXPECT_OK(aclprofRangeStop(second));
  EXPECT_CODE(100000, aclprofRangeStop(second));
  aclprofDestroyStamp(stamp);
  EXPECT_CODE(107017, aclprofPush(stamp));
  EXPECT_EQ(aclprofStr2Id("aclnnAdd"), aclprofStr2Id("aclnnAdd"));
  EXPECT_NE(aclprofStr2Id("aclnnAdd"), aclprofStr2Id("aclnnMul"));
  EXPECT_OK(aclprofSetConfig(ACL_PROF_SYS_HARDWARE_MEM_FREQ, "15", 2));
  EXPECT_CODE(100000, aclprofSetConfig(ACL_PROF_ARGS_MAX, "15", 2));
}

}  // namespace
}  // namespace acltape::device
