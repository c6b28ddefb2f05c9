// The small libraries of the SDK that adapters bind: their functions, and what each brings along.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "mstx/ms_tools_ext.h"
#include "securec.h"

namespace {

template <typename F>
F* Function(const char* library, const char* name) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
  void* found = handle != nullptr ? dlsym(handle, name) : nullptr;
  EXPECT_NE(found, nullptr) << name;
  return reinterpret_cast<F*>(found);
}

TEST(Compat, EachLibraryThatAnAdapterNamesCanBeLoaded) {
  for (const char* library :
       {"libhccl.so", "libge_runner.so", "libgraph.so", "libacl_tdt_channel.so", "libruntime.so",
        "libprofapi.so", "libfmk_parser.so", "libascend_protobuf.so", "libacl_op_compiler.so",
        "libmsprofiler.so", "libascend_hal.so", "libc_sec.so", "libms_tools_ext.so"}) {
    EXPECT_NE(dlopen(library, RTLD_NOW | RTLD_LOCAL), nullptr) << dlerror();
  }
}

TEST(Compat, FunctionsOfTheOperatorCompilerAreFoundThroughItsLibrary) {
  auto* size = Function<size_t(int)>("libacl_op_compiler.so", "aclGetCompileoptSize");
  EXPECT_GT(size(10), 0u);
}

TEST(Compat, FunctionsOfChannelsQueuesDumpsAndTheChipAreFoundThroughTheirLibraries) {
  auto* number = Function<size_t(const void*)>("libacl_tdt_channel.so", "acltdtGetDatasetSize");
  EXPECT_EQ(number(nullptr), 0u);
  number = Function<size_t(const void*)>("libacl_tdt_queue.so", "acltdtGetQueueRouteNum");
  EXPECT_EQ(number(nullptr), 0u);
  EXPECT_EQ(Function<const char*(int)>("libascend_dump.so", "acldumpGetPath")(4), nullptr);
  char text[16] = {};
  EXPECT_EQ(Function<int(int, char*, uint32_t)>("libplatform.so", "aclplatformGetDeviceInfo")(
                0, text, sizeof(text)),
            0);
  EXPECT_STREQ(text, "24");
}

TEST(Compat, AdaptersFindTheRuntimeAndTheProfilerThroughWhatTheyName) {
  EXPECT_NE(Function<int()>("libhccl.so", "rtKernelLaunch"), nullptr);
  EXPECT_NE(Function<int()>("libgraph.so", "MsprofReportApi"), nullptr);
  auto* set = Function<int(int, int32_t)>("libhccl.so", "HcclSetConfig");
  EXPECT_EQ(set(0, 1), 0);
}

TEST(Compat, AKernelOfADeviceIsRegisteredAndNotLaunched) {
  void* handle = nullptr;
  auto* enter = Function<int(const void*, void**)>("libruntime.so", "rtDevBinaryRegister");
  EXPECT_EQ(enter(nullptr, &handle), 0);
  EXPECT_NE(handle, nullptr);
  auto* launch = Function<int(const void*, uint32_t, void*, uint32_t, void*, void*)>(
      "libruntime.so", "rtKernelLaunch");
  EXPECT_EQ(launch(nullptr, 1, nullptr, 0, nullptr, nullptr), 207000);
  EXPECT_NE(std::string(aclGetRecentErrMsg()).find("rtKernelLaunch"), std::string::npos);
}

// Programs name these libraries beside libascendcl.so, or alone. There is one device in the
// process.
TEST(Compat, SDK_02_FurtherNamesAreTheSameLibrary) {
  void* first = dlopen("libascendcl.so", RTLD_NOW | RTLD_LOCAL);
  for (const char* name : {"libacl_rt.so", "libacl_rt_impl.so"}) {
    EXPECT_EQ(dlopen(name, RTLD_NOW | RTLD_LOCAL), first) << name;
  }
}

TEST(Compat, SDK_03_BoundedCopiesKeepWithinTheirDestination) {
  auto* append = Function<decltype(strcat_s)>("libc_sec.so", "strcat_s");
  auto* append_some = Function<decltype(strncat_s)>("libc_sec.so", "strncat_s");
  auto* copy_some = Function<decltype(strncpy_s)>("libc_sec.so", "strncpy_s");
  auto* move = Function<decltype(memmove_s)>("libc_sec.so", "memmove_s");
  auto* split = Function<decltype(strtok_s)>("libc_sec.so", "strtok_s");
  char text[8] = "ab";
  EXPECT_EQ(append(text, sizeof(text), "cd"), EOK);
  EXPECT_EQ(append_some(text, sizeof(text), "efgh", 2), EOK);
  EXPECT_STREQ(text, "abcdef");
  EXPECT_EQ(append(text, sizeof(text), "gh"), ERANGE_AND_RESET);
  EXPECT_STREQ(text, "");
  EXPECT_EQ(copy_some(text, sizeof(text), "abcdefghijk", 3), EOK);
  EXPECT_STREQ(text, "abc");
  EXPECT_EQ(copy_some(text, sizeof(text), nullptr, 3), EINVAL_AND_RESET);
  char bytes[8] = "1234567";
  EXPECT_EQ(move(bytes + 2, 6, bytes, 5), EOK);  // both overlap
  EXPECT_STREQ(bytes, "1212345");
  char list[] = "a,b";
  char* rest = nullptr;
  EXPECT_STREQ(split(list, ",", &rest), "a");
  EXPECT_STREQ(split(nullptr, ",", &rest), "b");
  EXPECT_EQ(split(nullptr, ",", &rest), nullptr);
}

// The header looks its library up, so this program links nothing for it.
TEST(Compat, SDK_04_RangesHaveNumbersAndMarksAreTaken) {
  const mstxRangeId first = mstxRangeStartA("first", nullptr);
  const mstxRangeId second = mstxRangeStartA("second", nullptr);
  EXPECT_NE(first, uint64_t{MSTX_INVALID_ID});
  EXPECT_NE(first, second);
  EXPECT_EQ(mstxRangeStartA(nullptr, nullptr), uint64_t{MSTX_INVALID_ID});
  mstxMarkA("mark", nullptr);
  mstxDomainHandle_t domain = mstxDomainCreateA("domain");
  ASSERT_NE(domain, nullptr);
  const mstxRangeId inside = mstxDomainRangeStartA(domain, "inside", nullptr);
  EXPECT_NE(inside, second);
  mstxDomainMarkA(domain, "mark", nullptr);
  mstxDomainRangeEnd(domain, inside);
  mstxDomainDestroy(domain);
  mstxRangeEnd(second);
  mstxRangeEnd(first);
}

TEST(Compat, TheDriverCountsDevices) {
  uint32_t count = 0;
  EXPECT_EQ(Function<int(uint32_t*)>("libascend_hal.so", "drvGetDevNum")(&count), 0);
  EXPECT_EQ(count, 1u);
}

TEST(Compat, BoundedTextsSayWhatDidNotFit) {
  auto* print = Function<int(char*, size_t, size_t, const char*, ...)>("libc_sec.so", "snprintf_s");
  auto* copy = Function<int(char*, size_t, const char*)>("libc_sec.so", "strcpy_s");
  auto* move = Function<int(void*, size_t, const void*, size_t)>("libc_sec.so", "memcpy_s");
  char text[8];
  EXPECT_EQ(print(text, sizeof(text), 7, "%d", 42), 2);
  EXPECT_STREQ(text, "42");
  EXPECT_EQ(print(text, sizeof(text), 3, "%s", "abcdef"), -1);  // shortened to what was asked for
  EXPECT_STREQ(text, "abc");
  EXPECT_EQ(print(text, sizeof(text), 20, "%s", "abcdefghijkl"), -1);
  EXPECT_STREQ(text, "");
  EXPECT_EQ(copy(text, sizeof(text), "1234567"), 0);
  EXPECT_STREQ(text, "1234567");
  EXPECT_EQ(copy(text, sizeof(text), "12345678"), ERANGE | 0x80);
  EXPECT_STREQ(text, "");
  EXPECT_EQ(copy(nullptr, sizeof(text), "1"), EINVAL);
  EXPECT_EQ(move(text, sizeof(text), "abc", 4), 0);
  EXPECT_STREQ(text, "abc");
  EXPECT_EQ(move(text, 2, "abc", 4), ERANGE | 0x80);
}

}  // namespace
