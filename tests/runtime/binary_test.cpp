// Binaries of a program's own kernels: rules KRN-01 to KRN-05.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

const std::filesystem::path kFolder = ACLTAPE_HOST_KERNELS;

struct ScaleArgs {
  const float* from;
  float* to;
  int64_t count;
  const float* factor;
};

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Binaries : public SoftDevice {
 protected:
  void SetUp() override {
    SoftDevice::SetUp();
    void* memory = nullptr;
    ASSERT_OK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    from_ = static_cast<float*>(memory);
    ASSERT_OK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    to_ = static_cast<float*>(memory);
    for (int i = 0; i < 16; ++i) from_[i] = static_cast<float>(i);
    ASSERT_OK(aclrtMemset(to_, 64, 0, 64));
  }

  void TearDown() override {
    for (aclrtBinHandle binary : loaded_) aclrtBinaryUnLoad(binary);  // unless a test has done it
    SoftDevice::TearDown();
  }

  aclrtBinHandle LoadFile() {
    aclrtBinHandle binary = nullptr;
    EXPECT_OK(aclrtBinaryLoadFromFile((kFolder / "host_kernels.json").c_str(), nullptr, &binary));
    loaded_.push_back(binary);
    return binary;
  }
  aclrtFuncHandle Kernel(aclrtBinHandle binary, const char* name) {
    aclrtFuncHandle function = nullptr;
    EXPECT_OK(aclrtBinaryGetFunction(binary, name, &function));
    return function;
  }
  // Appends the four arguments; the last is a placeholder, of which this is the memory.
  float* Fill(aclrtArgsHandle args) {
    aclrtParamHandle parameter = nullptr;
    aclrtParamHandle factor = nullptr;
    int64_t count = 16;
    void* buffer = nullptr;
    EXPECT_OK(aclrtKernelArgsAppend(args, &from_, sizeof(from_), &parameter));
    EXPECT_OK(aclrtKernelArgsAppend(args, &to_, sizeof(to_), &to_parameter_));
    EXPECT_OK(aclrtKernelArgsAppend(args, &count, sizeof(count), &parameter));
    EXPECT_OK(aclrtKernelArgsAppendPlaceHolder(args, &factor));
    EXPECT_OK(aclrtKernelArgsGetPlaceHolderBuffer(args, factor, sizeof(float), &buffer));
    return static_cast<float*>(buffer);
  }
  float Last() {
    EXPECT_OK(aclrtSynchronizeStream(stream_));
    return to_[15];
  }

  std::vector<aclrtBinHandle> loaded_;
  float* from_ = nullptr;
  float* to_ = nullptr;
  aclrtParamHandle to_parameter_ = nullptr;
};

TEST_F(Binaries, KRN_01_AFileOfKernelsNamesThemAndTheirFunctions) {
  aclrtBinHandle binary = LoadFile();
  aclrtFuncHandle scale = Kernel(binary, "Scale");
  aclrtFuncHandle again = Kernel(binary, "Scale");
  EXPECT_EQ(scale, again);
  char name[16];
  ASSERT_OK(aclrtGetFunctionName(scale, sizeof(name), name));
  EXPECT_STREQ(name, "Scale");
  EXPECT_CODE(507027, aclrtBinaryGetFunction(binary, "Unknown", &again));
  EXPECT_CODE(507027, aclrtBinaryGetFunction(binary, "Missing", &again));  // not in the library
  aclrtBinHandle owner = nullptr;
  ASSERT_OK(aclrtFunctionGetBinary(scale, &owner));
  EXPECT_EQ(owner, binary);
  int64_t kind = 0;
  ASSERT_OK(aclrtGetFunctionAttribute(scale, ACL_FUNC_ATTR_KERNEL_TYPE, &kind));
  EXPECT_EQ(kind, ACL_KERNEL_TYPE_AICPU);
  void* cube = from_;
  void* vector = from_;
  size_t sizes[2] = {1, 1};
  ASSERT_OK(aclrtGetFunctionAddr(scale, &cube, &vector));
  ASSERT_OK(aclrtGetFunctionSize(scale, &sizes[0], &sizes[1]));
  EXPECT_EQ(cube, nullptr);
  EXPECT_EQ(vector, nullptr);
  EXPECT_EQ(sizes[0] + sizes[1], 0u);
  ASSERT_OK(aclrtBinaryUnLoad(binary));
  EXPECT_CODE(107017, aclrtBinaryUnLoad(binary));
  EXPECT_CODE(107017, aclrtFunctionGetBinary(scale, &owner));
}

TEST_F(Binaries, KRN_02_ALibraryInMemoryGetsItsKernelsRegistered) {
  const std::string image = ReadAll(kFolder / "host_kernels.so");
  aclrtBinaryLoadOption option{};
  option.type = ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE;
  option.value.cpuKernelMode = 2;
  aclrtBinaryLoadOptions options{&option, 1};
  aclrtBinHandle binary = nullptr;
  ASSERT_OK(aclrtBinaryLoadFromData(image.data(), image.size(), &options, &binary));
  aclrtFuncHandle function = nullptr;
  EXPECT_CODE(507027, aclrtBinaryGetFunction(binary, "Scale", &function));  // not registered
  EXPECT_CODE(507027, aclrtRegisterCpuFunc(binary, "RunMissing", "Scale", &function));
  ASSERT_OK(aclrtRegisterCpuFunc(binary, "RunScale", "Scale", &function));
  EXPECT_EQ(Kernel(binary, "Scale"), function);
  // The image lies in device memory, and variables of the library are found.
  void* address = nullptr;
  size_t bytes = 0;
  ASSERT_OK(aclrtBinaryGetDevAddress(binary, &address, &bytes));
  EXPECT_EQ(bytes, image.size());
  EXPECT_EQ(std::memcmp(address, image.data(), bytes), 0);
  ASSERT_OK(aclrtBinaryGetGlobal(binary, "launches", &address, &bytes));
  EXPECT_EQ(bytes, 4u);
  EXPECT_EQ(*static_cast<int32_t*>(address), 0);
  EXPECT_CODE(107042, aclrtBinaryGetGlobal(binary, "RunScale", &address, &bytes));
  EXPECT_CODE(107042, aclrtBinaryGetGlobal(binary, "nothing", &address, &bytes));
  EXPECT_CODE(100000, aclrtBinaryGetGlobal(binary, "launches", nullptr, nullptr));
  // Kernels of a file are not registered.
  EXPECT_CODE(107000, aclrtRegisterCpuFunc(LoadFile(), "RunScale", "Scale", &function));
}

TEST_F(Binaries, KRN_03_CodeOfTheDeviceIsRefusedAndThatIsSaidOnce) {
  const std::string image = ReadAll(kFolder / "host_kernels.so");
  aclrtBinHandle binary = nullptr;
  testing::internal::CaptureStderr();
  EXPECT_CODE(207000, aclrtBinaryLoadFromData(image.data(), image.size(), nullptr, &binary));
  EXPECT_CODE(207000,
              aclrtBinaryLoadFromFile((kFolder / "host_kernels.so").c_str(), nullptr, &binary));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(said.find("cannot run here") == said.rfind("cannot run here")) << said;
  EXPECT_CODE(107009, aclrtBinaryLoadFromFile("/nowhere/a.o", nullptr, &binary));
  aclrtBinary data = aclrtCreateBinary(image.data(), image.size());
  ASSERT_NE(data, nullptr);
  EXPECT_CODE(207000, aclrtBinaryLoad(data, &binary));
  EXPECT_OK(aclrtDestroyBinary(data));
  EXPECT_CODE(107017, aclrtDestroyBinary(data));
  EXPECT_EQ(aclrtCreateBinary(nullptr, 4), nullptr);
  // Built-in kernels there are none, and a mode goes with files or with data.
  aclrtBinaryLoadOption option{};
  option.type = ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE;
  aclrtBinaryLoadOptions options{&option, 1};
  const std::string json = kFolder / "host_kernels.json";
  EXPECT_CODE(207000, aclrtBinaryLoadFromFile(json.c_str(), &options, &binary));
  option.value.cpuKernelMode = 2;
  EXPECT_CODE(107000, aclrtBinaryLoadFromFile(json.c_str(), &options, &binary));
  EXPECT_CODE(107000, aclrtBinaryLoadFromData("no library", 10, &options, &binary));
  option.value.cpuKernelMode = 1;
  EXPECT_CODE(107000, aclrtBinaryLoadFromData(image.data(), image.size(), &options, &binary));
}

TEST_F(Binaries, KRN_04_AListOfArgumentsWithAPlaceholder) {
  aclrtFuncHandle scale = Kernel(LoadFile(), "Scale");
  aclrtArgsHandle args = nullptr;
  ASSERT_OK(aclrtKernelArgsInit(scale, &args));
  float* factor = Fill(args);
  *factor = 3;
  EXPECT_CODE(107000, aclrtLaunchKernelWithConfig(scale, 1, stream_, nullptr, args, nullptr));
  ASSERT_OK(aclrtKernelArgsFinalize(args));
  ASSERT_OK(aclrtLaunchKernelWithConfig(scale, 1, stream_, nullptr, args, nullptr));
  *factor = 5;  // the launch has a copy
  EXPECT_EQ(Last(), 45);
  ASSERT_OK(aclrtLaunchKernelWithConfig(scale, 8, stream_, nullptr, args, nullptr));
  EXPECT_EQ(Last(), 75);
  // A value is updated, and the list finalized again.
  float* other = from_;
  ASSERT_OK(aclrtKernelArgsParaUpdate(args, to_parameter_, &other, sizeof(other)));
  EXPECT_CODE(107000, aclrtLaunchKernelWithConfig(scale, 1, stream_, nullptr, args, nullptr));
  ASSERT_OK(aclrtKernelArgsFinalize(args));
  ASSERT_OK(aclrtLaunchKernelWithConfig(scale, 1, stream_, nullptr, args, nullptr));
  EXPECT_EQ(Last(), 75);
  EXPECT_EQ(from_[15], 75);
}

TEST_F(Binaries, KRN_04_AListInTheProgramsOwnMemory) {
  aclrtFuncHandle scale = Kernel(LoadFile(), "Scale");
  size_t handle_bytes = 0;
  size_t block_bytes = 0;
  ASSERT_OK(aclrtKernelArgsGetHandleMemSize(scale, &handle_bytes));
  ASSERT_OK(aclrtKernelArgsGetMemSize(scale, sizeof(ScaleArgs) + 8, &block_bytes));
  std::vector<char> handle(handle_bytes);
  std::vector<char> block(block_bytes);
  ASSERT_OK(aclrtKernelArgsInitByUserMem(scale, handle.data(), block.data(), block.size()));
  float* factor = Fill(handle.data());
  EXPECT_GE(reinterpret_cast<char*>(factor), block.data());
  EXPECT_LT(reinterpret_cast<char*>(factor), block.data() + block.size());
  *factor = 2;
  ASSERT_OK(aclrtKernelArgsFinalize(handle.data()));
  ASSERT_OK(aclrtLaunchKernelWithConfig(scale, 1, stream_, nullptr, handle.data(), nullptr));
  EXPECT_EQ(Last(), 30);
  // The block is full.
  ASSERT_OK(aclrtKernelArgsInitByUserMem(scale, handle.data(), block.data(), 12));
  aclrtParamHandle parameter = nullptr;
  int64_t value = 0;
  ASSERT_OK(aclrtKernelArgsAppend(handle.data(), &value, 8, &parameter));
  EXPECT_CODE(107000, aclrtKernelArgsAppend(handle.data(), &value, 8, &parameter));
}

TEST_F(Binaries, KRN_04_BlocksOfTheHostAndOfTheDevice) {
  aclrtFuncHandle scale = Kernel(LoadFile(), "Scale");
  struct {
    ScaleArgs args;
    float factor;
  } block{{from_, to_, 16, nullptr}, 4};
  aclrtPlaceHolderInfo place{offsetof(ScaleArgs, factor), sizeof(ScaleArgs)};
  ASSERT_OK(
      aclrtLaunchKernelWithHostArgs(scale, 1, stream_, nullptr, &block, sizeof(block), &place, 1));
  EXPECT_EQ(Last(), 60);
  EXPECT_EQ(block.args.factor, nullptr);  // the copy was changed, not the program's block
  place.addrOffset = sizeof(block);
  EXPECT_CODE(107000, aclrtLaunchKernelWithHostArgs(scale, 1, stream_, nullptr, &block,
                                                    sizeof(block), &place, 1));
  void* memory = nullptr;
  ASSERT_OK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  block.args.factor = from_ + 2;
  ASSERT_OK(aclrtMemcpy(memory, 64, &block.args, sizeof(block.args), ACL_MEMCPY_HOST_TO_DEVICE));
  ASSERT_OK(aclrtLaunchKernel(scale, 1, memory, sizeof(ScaleArgs), stream_));
  EXPECT_EQ(Last(), 30);
  aclrtLaunchKernelAttr attribute{};
  attribute.id = ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT;
  aclrtLaunchKernelCfg config{&attribute, 1};
  ASSERT_OK(aclrtLaunchKernelV2(scale, 1, memory, sizeof(ScaleArgs), &config, stream_));
  EXPECT_EQ(Last(), 30);
  attribute.id = static_cast<aclrtLaunchKernelAttrId>(77);
  EXPECT_CODE(107000, aclrtLaunchKernelV2(scale, 1, memory, sizeof(ScaleArgs), &config, stream_));
  EXPECT_CODE(107000, aclrtLaunchKernel(scale, 0, memory, sizeof(ScaleArgs), stream_));
  // In a capture the kernel is a task of the graph.
  ASSERT_OK(aclrtMemset(to_, 64, 0, 64));
  Begin(stream_);
  ASSERT_OK(aclrtLaunchKernel(scale, 1, memory, sizeof(ScaleArgs), stream_));
  aclmdlRI model = End(stream_);
  EXPECT_EQ(to_[15], 0);
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  EXPECT_EQ(Last(), 30);
}

TEST_F(Binaries, KRN_05_TheBinaryIsToldOfAKernelThatFailed) {
  struct Told {
    int calls = 0;
    aclrtFuncHandle function = nullptr;
    uint32_t bytes = 0;
  } told;
  aclrtBinHandle binary = LoadFile();
  aclrtFuncHandle broken = Kernel(binary, "Broken");
  ASSERT_OK(aclrtBinarySetExceptionCallback(
      binary,
      [](aclrtExceptionInfo* info, void* data) {
        auto* seen = static_cast<Told*>(data);
        void* args = nullptr;
        ++seen->calls;
        aclrtGetFuncHandleFromExceptionInfo(info, &seen->function);
        aclrtGetArgsFromExceptionInfo(info, &args, &seen->bytes);
      },
      &told));
  int64_t block[3] = {};
  ASSERT_OK(
      aclrtLaunchKernelWithHostArgs(broken, 1, stream_, nullptr, block, sizeof(block), nullptr, 0));
  EXPECT_CODE(507018, aclrtSynchronizeStream(stream_));
  EXPECT_EQ(told.calls, 1);
  EXPECT_EQ(told.function, broken);
  EXPECT_EQ(told.bytes, sizeof(block));
  // It does not hear about another binary's kernels.
  Log log;
  Launch(stream_, log, "a", 507015);
  EXPECT_CODE(507015, aclrtSynchronizeStream(stream_));
  EXPECT_EQ(told.calls, 1);
}

}  // namespace
}  // namespace acltape::device
