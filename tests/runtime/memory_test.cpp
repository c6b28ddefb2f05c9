// Memory, copies and fills: rules MEM and CPY.
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

class Memory : public SoftDevice {
 protected:
  void* Device(size_t bytes) {
    void* memory = nullptr;
    EXPECT_OK(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    return memory;
  }
  void* Pinned(size_t bytes) {
    void* memory = nullptr;
    EXPECT_OK(aclrtMallocHost(&memory, bytes));
    return memory;
  }
  int32_t Read(const void* device) {
    int32_t value = 0;
    EXPECT_OK(aclrtMemcpy(&value, 4, device, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    return value;
  }
};

TEST_F(Memory, MEM_01_MEM_02_Allocation) {
  void* memory = reinterpret_cast<void*>(1);
  EXPECT_CODE(100000, aclrtMalloc(&memory, 0, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_CODE(100000, aclrtMalloc(nullptr, 8, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_CODE(207001, aclrtMalloc(&memory, size_t{1} << 40, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_EQ(memory, nullptr);
  EXPECT_CODE(207001, aclrtMalloc(&memory, SIZE_MAX - 8, ACL_MEM_MALLOC_HUGE_FIRST));
  for (size_t bytes : {1, 31, 33, 1000, 100000}) {
    memory = Device(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 512, 0u);
    EXPECT_OK(aclrtFree(memory));
  }
}

TEST_F(Memory, MEM_02_MEM_09_AccountingOfPadding) {
  size_t before = 0;
  size_t after = 0;
  size_t total = 0;
  ASSERT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total));
  void* padded = Device(33);
  ASSERT_OK(aclrtGetMemInfo(ACL_DDR_MEM, &after, &total));  // the other kind answers too
  EXPECT_EQ(before - after, 96u);                           // 64 rounded up, 32 added
  void* aligned = nullptr;
  ASSERT_OK(aclrtMallocAlign32(&aligned, 33, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total));
  EXPECT_EQ(before - after, 160u);
  ASSERT_OK(aclrtFree(padded));
  ASSERT_OK(aclrtFree(aligned));
  ASSERT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total));
  EXPECT_EQ(before, after);
}

TEST_F(Memory, MEM_04_MEM_05_MEM_06_Free) {
  EXPECT_CODE(100000, aclrtFree(nullptr));
  EXPECT_CODE(100000, aclrtFreeHost(nullptr));
  void* device = Device(64);
  void* pinned = Pinned(64);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pinned) % 64, 0u);
  EXPECT_CODE(107000, aclrtFree(pinned));
  EXPECT_CODE(107000, aclrtFreeHost(device));
  EXPECT_CODE(107000, aclrtFree(static_cast<char*>(device) + 8));
  std::thread([&] { EXPECT_OK(aclrtFree(device)); }).join();  // a thread without context
  EXPECT_CODE(107000, aclrtFree(device));
  EXPECT_OK(aclrtFreeHost(pinned));
  void* memory = nullptr;
  EXPECT_CODE(100000, aclrtMallocHost(&memory, 0));
}

TEST_F(Memory, MEM_04_FreeWithDeviceSynchronisationWaits) {
  static std::atomic<bool> ran;
  ran = false;
  void* device = Device(64);
  ASSERT_OK(SoftLaunchKernel(
      stream_, "slow",
      [](void*) -> aclError {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        ran = true;
        return 0;
      },
      nullptr, nullptr));
  EXPECT_OK(aclrtFreeWithDevSync(device));
  EXPECT_TRUE(ran);
}

TEST_F(Memory, MEM_07_HostRegistration) {
  std::vector<char> host(4096);
  void* view = nullptr;
  EXPECT_CODE(507911, aclrtHostUnregister(host.data()));
  EXPECT_OK(aclrtHostRegister(host.data(), host.size(), ACL_HOST_REGISTER_MAPPED, &view));
  EXPECT_EQ(view, host.data());
  EXPECT_CODE(507910, aclrtHostRegister(host.data() + 8, 8, ACL_HOST_REGISTER_MAPPED, &view));
  EXPECT_CODE(507910, aclrtHostRegisterV2(host.data(), host.size(), ACL_HOST_REG_MAPPED));
  // Registered memory counts as pinned: the copy is a stream task.
  void* device = Device(8);
  Gate gate;
  Launch(stream_, gate);
  ASSERT_OK(aclrtMemcpyAsync(device, 8, host.data(), 8, ACL_MEMCPY_HOST_TO_DEVICE, stream_));
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_OK(aclrtHostUnregister(host.data()));
  ASSERT_OK(aclrtFree(device));
}

// Frameworks register what aclrtMallocHost gave, from the first whole page on.
TEST_F(Memory, MEM_07_PinnedMemoryIsRegisteredInParts) {
  void* host = nullptr;
  void* view = nullptr;
  ASSERT_OK(aclrtMallocHost(&host, 8192));
  char* part = static_cast<char*>(host) + 1024;
  EXPECT_OK(aclrtHostRegister(part, 4096, ACL_HOST_REGISTER_MAPPED, &view));
  EXPECT_EQ(view, part);
  EXPECT_CODE(507910, aclrtHostRegister(part, 4096, ACL_HOST_REGISTER_MAPPED, &view));
  EXPECT_CODE(507910, aclrtHostRegister(part + 4088, 16, ACL_HOST_REGISTER_MAPPED, &view));
  EXPECT_CODE(507910, aclrtHostRegister(part - 8, 16, ACL_HOST_REGISTER_MAPPED, &view));
  EXPECT_OK(aclrtHostRegister(part + 4096, 16, ACL_HOST_REGISTER_MAPPED, &view));
  // Beyond the block it lies across pinned memory.
  EXPECT_CODE(507910, aclrtHostRegister(part + 7160, 16, ACL_HOST_REGISTER_MAPPED, &view));
  EXPECT_OK(aclrtHostUnregister(part));
  EXPECT_CODE(507911, aclrtHostUnregister(part));
  EXPECT_OK(aclrtHostRegister(part, 4096, ACL_HOST_REGISTER_MAPPED, &view));
  ASSERT_OK(aclrtFreeHost(host));
  EXPECT_CODE(507911, aclrtHostUnregister(part));  // it went with its block
}

TEST_F(Memory, MEM_16_WhichUnitsReachRegisteredMemory) {
  for (int unit = ACL_RT_HAC_TYPE_STARS; unit <= ACL_RT_HAC_TYPE_CCU; ++unit) {
    auto told = static_cast<aclrtHostMemMapCapability>(9);
    ASSERT_OK(aclrtHostMemMapCapabilities(0, static_cast<aclrtHacType>(unit), &told));
    EXPECT_EQ(told, unit < ACL_RT_HAC_TYPE_UDMA ? ACL_RT_HOST_MEM_MAP_SUPPORTED
                                                : ACL_RT_HOST_MEM_MAP_NOT_SUPPORTED)
        << unit;
  }
  aclrtHostMemMapCapability told{};
  EXPECT_CODE(100000, aclrtHostMemMapCapabilities(0, ACL_RT_HAC_TYPE_AIC, nullptr));
  EXPECT_CODE(107001, aclrtHostMemMapCapabilities(99, ACL_RT_HAC_TYPE_AIC, &told));
  EXPECT_CODE(107000, aclrtHostMemMapCapabilities(0, static_cast<aclrtHacType>(10), &told));
}

TEST_F(Memory, MEM_17_ManagedMemoryIsRefusedAsOnTheProduct) {
  void* memory = nullptr;
  EXPECT_CODE(100000, aclrtMemAllocManaged(nullptr, 64, 1));
  EXPECT_CODE(100000, aclrtMemAllocManaged(&memory, 64, 0));
  EXPECT_CODE(207000, aclrtMemAllocManaged(&memory, 64, 1));
  EXPECT_EQ(memory, nullptr);
  EXPECT_NE(std::string(aclGetRecentErrMsg()).find("use aclrtMalloc or"), std::string::npos);
  const aclrtMemManagedLocation here{ACL_MEM_LOCATIONTYPE_DEVICE, 0};
  void* device = Device(64);
  EXPECT_CODE(207000, aclrtMemManagedAdvise(device, 64, ACL_MEM_ADVISE_SET_READ_MOSTLY, here));
  int32_t told = 0;
  EXPECT_CODE(207000, aclrtMemManagedGetAttr(ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, device, 64, &told,
                                             sizeof told));
  EXPECT_CODE(207000, aclrtMemManagedGetAttrs(nullptr, 0, device, 64, nullptr, nullptr));
  EXPECT_CODE(207000, aclrtMemManagedPrefetchAsync(device, 64, here, 0, stream_));
  EXPECT_CODE(207000, aclrtMemManagedPrefetchBatchAsync(nullptr, nullptr, 0, nullptr, nullptr, 0, 0,
                                                        stream_));
  ASSERT_OK(aclrtFree(device));
}

TEST_F(Memory, MEM_08_VirtualMemory) {
  aclrtPhysicalMemProp prop{};
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  prop.memAttr = ACL_HBM_MEM_HUGE;
  size_t unit = 0;
  ASSERT_OK(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &unit));
  void* range = nullptr;
  aclrtDrvMemHandle handle = nullptr;
  ASSERT_OK(aclrtReserveMemAddress(&range, 4 * unit, 0, nullptr, 0));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(range) % unit, 0u);
  ASSERT_OK(aclrtMallocPhysical(&handle, unit, &prop, 0));
  char* first = static_cast<char*>(range);
  char* second = first + 2 * unit;
  ASSERT_OK(aclrtMapMem(first, unit, 0, handle, 0));
  ASSERT_OK(aclrtMapMem(second, unit, 0, handle, 0));
  EXPECT_CODE(107000, aclrtMapMem(first, unit, 0, handle, 0));
  EXPECT_CODE(107000, aclrtReleaseMemAddress(range));
  EXPECT_CODE(107000, aclrtFree(first));
  int32_t value = 77;
  ASSERT_OK(aclrtMemcpy(first, 4, &value, 4, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_EQ(Read(second), 77);  // both map the same memory
  ASSERT_OK(aclrtUnmapMem(first));
  EXPECT_CODE(107000, aclrtUnmapMem(first));
  ASSERT_OK(aclrtUnmapMem(second));
  ASSERT_OK(aclrtFreePhysical(handle));
  EXPECT_CODE(107017, aclrtFreePhysical(handle));
  EXPECT_OK(aclrtReleaseMemAddress(range));
  EXPECT_CODE(107000, aclrtReleaseMemAddress(range));
}

// The interface layer refuses what no device of any product has.
TEST_F(Memory, GEN_12_MEM_08_PropertiesThatDoNotExistGive100000) {
  aclrtPhysicalMemProp right{};
  right.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  right.memAttr = ACL_HBM_MEM_HUGE;
  constexpr size_t kUnit = size_t{2} << 20;
  void* range = nullptr;
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_CODE(100000, aclrtReserveMemAddress(&range, 0, 0, nullptr, 0));
  EXPECT_CODE(100000, aclrtReserveMemAddress(&range, kUnit, 0, nullptr, 2));
  EXPECT_CODE(100000, aclrtMallocPhysical(&handle, 0, &right, 0));
  EXPECT_CODE(100000, aclrtMallocPhysical(&handle, kUnit, &right, 1));
  struct Row {
    const char* what;
    void (*change)(aclrtPhysicalMemProp& prop);
    bool granularity;  // asking for the granularity is refused too
  };
  constexpr Row kRows[] = {
      {"DDR", [](aclrtPhysicalMemProp& p) { p.memAttr = ACL_DDR_MEM_HUGE; }, true},
      {"HBM P2P", [](aclrtPhysicalMemProp& p) { p.memAttr = ACL_HBM_MEM_P2P_HUGE; }, true},
      {"no kind", [](aclrtPhysicalMemProp& p) { p.memAttr = static_cast<aclrtMemAttr>(99); }, true},
      {"no handle type",
       [](aclrtPhysicalMemProp& p) { p.handleType = static_cast<aclrtMemHandleType>(77); }, false},
      {"no allocation type",
       [](aclrtPhysicalMemProp& p) { p.allocationType = static_cast<aclrtMemAllocationType>(9); },
       false},
      {"managed", [](aclrtPhysicalMemProp& p) { p.location.type = ACL_MEM_LOCATION_TYPE_MANAGED; },
       false},
  };
  for (const Row& row : kRows) {
    aclrtPhysicalMemProp prop = right;
    row.change(prop);
    EXPECT_CODE(100000, aclrtMallocPhysical(&handle, kUnit, &prop, 0)) << row.what;
    size_t unit = 0;
    EXPECT_CODE(
        row.granularity ? 100000 : 0,
        aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &unit))
        << row.what;
  }
}

TEST_F(Memory, ReservedSizesAreRoundedUp) {
  void* range = nullptr;
  ASSERT_OK(aclrtReserveMemAddress(&range, 512, 0, nullptr, 0));  // adapters try this first
  EXPECT_OK(aclrtReleaseMemAddress(range));
}

TEST_F(Memory, LargeBlocksTakePagesOfTheHostAsTheyAreUsed) {
  void* half = nullptr;
  ASSERT_OK(aclrtMalloc(&half, size_t{32} << 30, ACL_MEM_MALLOC_HUGE_FIRST));
  int32_t value = 7;
  char* last = static_cast<char*>(half) + (size_t{32} << 30) - sizeof(value);
  ASSERT_OK(aclrtMemcpy(last, 4, &value, 4, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_EQ(Read(last), 7);
  EXPECT_OK(aclrtFree(half));
}

TEST_F(Memory, SmallUnalignedBlocksOfTheHostCanBeRegistered) {
  std::vector<float> host(257);
  void* view = nullptr;
  ASSERT_OK(
      aclrtHostRegister(host.data() + 1, 256 * sizeof(float), ACL_HOST_REGISTER_MAPPED, &view));
  EXPECT_EQ(view, host.data() + 1);
  EXPECT_OK(aclrtHostUnregister(host.data() + 1));
}

TEST_F(Memory, MEM_12_RegisteredAllocatorsAreKept) {
  aclrtAllocatorDesc desc = aclrtAllocatorCreateDesc();
  aclrtAllocator object = nullptr;
  aclrtAllocatorAllocFunc allocate = nullptr;
  EXPECT_CODE(100000, aclrtAllocatorGetByStream(stream_, &desc, &object, nullptr, nullptr, nullptr,
                                                nullptr));
  int owner = 0;
  auto malloc_function = [](aclrtAllocator, size_t size) { return std::malloc(size); };
  ASSERT_OK(aclrtAllocatorSetObjToDesc(desc, &owner));
  ASSERT_OK(aclrtAllocatorSetAllocFuncToDesc(desc, malloc_function));
  ASSERT_OK(aclrtAllocatorRegister(stream_, desc));
  ASSERT_OK(
      aclrtAllocatorGetByStream(stream_, nullptr, &object, &allocate, nullptr, nullptr, nullptr));
  EXPECT_EQ(object, &owner);
  EXPECT_EQ(allocate, +malloc_function);
  EXPECT_OK(aclrtAllocatorUnregister(stream_));
  EXPECT_CODE(100000, aclrtAllocatorUnregister(stream_));
  EXPECT_OK(aclrtAllocatorDestroyDesc(desc));
}

TEST_F(Memory, PointerAttributesTellDevicePinnedAndPageable) {
  int on_stack = 0;
  void* device = Device(64);
  void* pinned = Pinned(64);
  aclrtPtrAttributes attributes;
  ASSERT_OK(aclrtPointerGetAttributes(static_cast<char*>(device) + 63, &attributes));
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  ASSERT_OK(aclrtPointerGetAttributes(pinned, &attributes));
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_HOST);
  ASSERT_OK(aclrtPointerGetAttributes(&on_stack, &attributes));
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  ASSERT_OK(aclrtFree(device));
  ASSERT_OK(aclrtFreeHost(pinned));
}

TEST_F(Memory, CPY_01_CPY_03_ArgumentsOfCopies) {
  void* device = Device(16);
  char host[16] = {};
  auto kind = [](int value) { return static_cast<aclrtMemcpyKind>(value); };
  for (int value = 0; value <= 5; ++value) {
    EXPECT_OK(aclrtMemcpy(device, 16, host, 16, kind(value))) << value;
  }
  for (int value : {6, 7, 8}) {
    EXPECT_CODE(100000, aclrtMemcpy(device, 16, host, 16, kind(value))) << value;
    EXPECT_CODE(100000, aclrtMemcpyAsync(device, 16, host, 16, kind(value), stream_)) << value;
  }
  EXPECT_OK(aclrtMemcpy(nullptr, 0, nullptr, 0, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_CODE(100000, aclrtMemcpy(nullptr, 16, host, 16, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_CODE(107000, aclrtMemcpy(device, 8, host, 16, ACL_MEMCPY_HOST_TO_DEVICE));
  char more[65] = {};  // a block of 16 bytes has 64 (MEM-02)
  EXPECT_CODE(107000, aclrtMemcpy(device, 65, more, 65, ACL_MEMCPY_HOST_TO_DEVICE));
  ASSERT_OK(aclrtFree(device));
}

TEST_F(Memory, CPY_04_ASynchronousCopyIsNotOrderedAfterQueuedTasks) {
  void* device = Device(4);
  int32_t value = 5;
  Gate gate;
  Launch(stream_, gate);
  ASSERT_OK(aclrtMemcpy(device, 4, &value, 4, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_EQ(Read(device), 5);
  gate.Open();
  ASSERT_OK(aclrtFree(device));
}

TEST_F(Memory, CPY_05_CPY_06_PinnedCopiesAreTasksAndPageableOnesWait) {
  void* device = Device(4);
  auto* pinned = static_cast<int32_t*>(Pinned(4));
  ASSERT_OK(aclrtMemset(device, 4, 0, 4));
  *pinned = 1;
  Gate gate;
  Launch(stream_, gate);
  ASSERT_OK(aclrtMemcpyAsync(device, 4, pinned, 4, ACL_MEMCPY_HOST_TO_DEVICE, stream_));
  EXPECT_EQ(Read(device), 0);
  *pinned = 2;  // read when the task runs
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(Read(device), 2);
  int32_t pageable = 3;
  Log log;
  Launch(stream_, log, "before");
  ASSERT_OK(aclrtMemcpyAsync(device, 4, &pageable, 4, ACL_MEMCPY_HOST_TO_DEVICE, stream_));
  EXPECT_EQ(log.text(), "before");
  EXPECT_EQ(Read(device), 3);
  ASSERT_OK(aclrtFree(device));
  ASSERT_OK(aclrtFreeHost(pinned));
}

TEST_F(Memory, CPY_07_HostToHostAndEqualAddresses) {
  char a[8];
  char b[8];
  void* pinned = Pinned(8);
  void* device = Device(8);
  EXPECT_CODE(207000, aclrtMemcpyAsync(a, 8, b, 8, ACL_MEMCPY_HOST_TO_HOST, stream_));
  EXPECT_CODE(207000, aclrtMemcpyAsync(pinned, 8, b, 8, ACL_MEMCPY_DEFAULT, stream_));
  EXPECT_OK(aclrtMemcpyAsync(device, 8, device, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, stream_));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  ASSERT_OK(aclrtFree(device));
  ASSERT_OK(aclrtFreeHost(pinned));
}

TEST_F(Memory, CPY_08_TwoDimensionalCopies) {
  auto* device = static_cast<char*>(Device(64));
  auto* pinned = static_cast<char*>(Pinned(64));
  std::iota(pinned, pinned + 64, 0);
  ASSERT_OK(aclrtMemset(device, 64, 0, 64));
  ASSERT_OK(aclrtMemcpy2d(device, 16, pinned, 8, 4, 3, ACL_MEMCPY_HOST_TO_DEVICE));
  char read[64];
  ASSERT_OK(aclrtMemcpy(read, 64, device, 64, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(std::string(read, 4), std::string("\0\1\2\3", 4));
  EXPECT_EQ(std::string(read + 32, 4), std::string("\x10\x11\x12\x13", 4));
  EXPECT_EQ(read[4], 0);
  ASSERT_OK(aclrtMemcpy2dAsync(device, 16, pinned, 16, 16, 4, ACL_MEMCPY_DEFAULT, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  ASSERT_OK(aclrtMemcpy(read, 64, device, 64, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(std::memcmp(read, pinned, 64), 0);
  EXPECT_OK(aclrtMemcpy2d(nullptr, 0, nullptr, 0, 0, 3, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_CODE(100000, aclrtMemcpy2d(device, 4, pinned, 8, 8, 1, ACL_MEMCPY_HOST_TO_DEVICE));
  constexpr size_t kFar = size_t{1} << 63;  // twice that is 0 again
  EXPECT_CODE(107000, aclrtMemcpy2d(device, kFar, pinned, 8, 8, 3, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_CODE(107000, aclrtMemcpy2d(device, 8, pinned, kFar, 8, 3, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_CODE(107000, aclrtMemcpy2d(pinned, kFar, pinned, kFar, 8, 3, ACL_MEMCPY_HOST_TO_HOST));
  EXPECT_CODE(107000, aclrtMemcpy2dAsync(device, kFar, pinned, kFar, 8, 3,
                                         ACL_MEMCPY_HOST_TO_DEVICE, stream_));
  EXPECT_CODE(100000,
              aclrtMemcpy2dAsync(device, 8, pinned, 8, 8, 1, ACL_MEMCPY_HOST_TO_HOST, stream_));
  ASSERT_OK(aclrtFree(device));
  ASSERT_OK(aclrtFreeHost(pinned));
}

TEST_F(Memory, CPY_09_CPY_10_Fills) {
  void* device = Device(16);
  EXPECT_OK(aclrtMemset(nullptr, 0, 0, 0));
  EXPECT_CODE(100000, aclrtMemset(nullptr, 16, 0, 16));
  EXPECT_CODE(107000, aclrtMemset(device, 8, 0, 16));
  EXPECT_CODE(107000, aclrtMemsetAsync(device, 8, 0, 16, stream_));
  EXPECT_OK(aclrtMemset(device, 16, 0x11, 16));
  EXPECT_EQ(Read(device), 0x11111111);
  EXPECT_OK(aclrtMemsetAsync(device, 16, 0x22, 16, stream_));
  EXPECT_OK(aclrtMemsetD32Async(static_cast<char*>(device) + 4, 12, 0x12345678, 3, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(Read(device), 0x22222222);
  EXPECT_EQ(Read(static_cast<char*>(device) + 12), 0x12345678);
  EXPECT_CODE(100000, aclrtMemsetD32(static_cast<char*>(device) + 2, 12, 0, 3));
  EXPECT_CODE(100000, aclrtMemsetD32(device, 16, 0, 5));
  ASSERT_OK(aclrtFree(device));
}

TEST_F(Memory, CPY_11_Batches) {
  auto* device = static_cast<char*>(Device(64));
  auto* pinned = static_cast<char*>(Pinned(64));
  std::iota(pinned, pinned + 64, 0);
  void* to[] = {device, device + 8};
  void* from[] = {pinned + 16, pinned};
  size_t room[] = {8, 8};
  size_t bytes[] = {8, 4};
  aclrtMemcpyBatchAttr attribute{};
  attribute.dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  attribute.srcLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
  size_t index = 0;
  size_t failed = 9;
  EXPECT_OK(
      aclrtMemcpyBatchAsync(to, room, from, bytes, 2, &attribute, &index, 1, &failed, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  char read[12];
  ASSERT_OK(aclrtMemcpy(read, 12, device, 12, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(read[0], 16);
  EXPECT_EQ(read[8], 0);
  EXPECT_EQ(read[11], 3);
  bytes[1] = 9;
  EXPECT_CODE(107000, aclrtMemcpyBatch(to, room, from, bytes, 2, &attribute, &index, 1, &failed));
  EXPECT_EQ(failed, 1u);
  bytes[1] = 4;
  size_t wrong = 1;
  EXPECT_CODE(107000, aclrtMemcpyBatchV2(to, room, from, bytes, 2, &attribute, &wrong, 1));
  char pageable[8];
  from[0] = pageable;
  Begin(stream_, kRelaxed);
  EXPECT_CODE(107000,
              aclrtMemcpyBatchAsyncV2(to, room, from, bytes, 2, &attribute, &index, 1, stream_));
  EXPECT_NE(End(stream_), nullptr);
  ASSERT_OK(aclrtFree(device));
  ASSERT_OK(aclrtFreeHost(pinned));
}

TEST_F(Memory, Float16ConversionsAgreeOverAllBitPatterns) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto half = static_cast<aclFloat16>(bits);
    float value = aclFloat16ToFloat(half);
    _Float16 expected;
    std::memcpy(&expected, &half, 2);
    if (value != value) {
      EXPECT_NE(static_cast<float>(expected), static_cast<float>(expected));
      continue;
    }
    ASSERT_EQ(value, static_cast<float>(expected)) << bits;
    ASSERT_EQ(aclFloatToFloat16(value), half) << bits;
    // Between two neighbours: rounding to even, as the compiler does it.
    float between = value * 1.0003f;
    _Float16 rounded = static_cast<_Float16>(between);
    aclFloat16 rounded_bits;
    std::memcpy(&rounded_bits, &rounded, 2);
    ASSERT_EQ(aclFloatToFloat16(between), rounded_bits) << bits;
  }
  EXPECT_EQ(aclDataTypeSize(ACL_COMPLEX128), 16u);
  EXPECT_EQ(aclDataTypeSize(ACL_DT_UNDEFINED), 0u);
}

TEST_F(Memory, MEM_02_GigabytePagesAreNotPadded) {
  size_t before = 0;
  size_t after = 0;
  size_t total = 0;
  void* memory = nullptr;
  ASSERT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total));
  ASSERT_OK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE1G_ONLY));
  ASSERT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total));
  EXPECT_EQ(before - after, 64u);
  ASSERT_OK(aclrtFree(memory));
}

TEST_F(Memory, MEM_03_AllocationAndFreeDoNotSynchronise) {
  Gate gate;
  Launch(stream_, gate);
  gate.WaitUntilEntered();
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(Device(1000));
  for (void* block : blocks) ASSERT_OK(aclrtFree(block));
  void* pinned = Pinned(64);
  ASSERT_OK(aclrtFreeHost(pinned));
  aclrtStreamStatus status;
  ASSERT_OK(aclrtStreamQuery(stream_, &status));
  EXPECT_EQ(status, ACL_STREAM_STATUS_NOT_READY);  // nobody waited for the gate
  gate.Open();
}

TEST_F(Memory, MEM_06_PinnedMemoryIsFreedByItsOwnCallOnly) {
  void* pinned = Pinned(100);
  EXPECT_CODE(107000, aclrtFree(pinned));
  EXPECT_CODE(507911, aclrtHostUnregister(pinned));
  EXPECT_OK(aclrtFreeHost(pinned));
  EXPECT_CODE(107000, aclrtFreeHost(pinned));
}

TEST_F(Memory, MEM_11_AnEventCellInMemory) {
  void* cell = nullptr;
  Log log;
  Begin(stream_, kGlobal);
  ASSERT_OK(aclrtMallocAlign32(&cell, 8, ACL_MEM_MALLOC_HUGE_FIRST));
  auto mode = kRelaxed;
  ASSERT_OK(aclmdlRICaptureThreadExchangeMode(&mode));
  ASSERT_OK(aclrtMemset(cell, 8, 0, 8));
  ASSERT_OK(aclmdlRICaptureThreadExchangeMode(&mode));
  // Inside: wait for the cell and take it back. Outside: write it.
  ASSERT_OK(aclrtValueWait(cell, 1, ACL_STREAM_WAIT_VALUE_EQ, stream_));
  ASSERT_OK(aclrtValueWrite(cell, 0, 0, stream_));
  Launch(stream_, log, "in");
  aclmdlRI model = End(stream_);
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
    EXPECT_CODE(507046, aclrtSynchronizeStreamWithTimeout(stream_, 20));
    Launch(other_, log, "out");
    ASSERT_OK(aclrtValueWrite(cell, 1, 0, other_));
    ASSERT_OK(aclrtSynchronizeStream(stream_));
  }
  EXPECT_EQ(log.text(), "outinoutin");
  ASSERT_OK(aclrtFree(cell));
}

TEST_F(Memory, CPY_02_TheAddressesDecideTheDirection) {
  void* device = Device(4);
  int32_t value = 41;
  int32_t back = 0;
  for (int kind = 0; kind <= 5; ++kind) {  // whatever the hint says
    auto hint = static_cast<aclrtMemcpyKind>(kind);
    value = 41 + kind;
    ASSERT_OK(aclrtMemcpy(device, 4, &value, 4, hint)) << kind;
    ASSERT_OK(aclrtMemcpy(&back, 4, device, 4, hint)) << kind;
    EXPECT_EQ(back, value);
  }
  ASSERT_OK(aclrtFree(device));
}

TEST_F(Memory, CPY_08_LIM_04_LimitsOfAsynchronousTwoDimensionalCopies) {
  // Rows of pitch 0 cannot be: the limits are reached by the smallest other side.
  void* device = Device(6000000);
  void* pinned = Pinned(6000000);
  EXPECT_OK(aclrtMemcpy2dAsync(device, 5000000, pinned, 5000000, 5000000, 1,
                               ACL_MEMCPY_HOST_TO_DEVICE, stream_));
  EXPECT_CODE(107000, aclrtMemcpy2dAsync(device, 5000001, pinned, 5000001, 5000001, 1,
                                         ACL_MEMCPY_HOST_TO_DEVICE, stream_));
  EXPECT_OK(
      aclrtMemcpy2dAsync(device, 1, pinned, 1, 1, 5242880, ACL_MEMCPY_HOST_TO_DEVICE, stream_));
  EXPECT_CODE(107000, aclrtMemcpy2dAsync(device, 1, pinned, 1, 1, 5242881,
                                         ACL_MEMCPY_HOST_TO_DEVICE, stream_));
  EXPECT_OK(aclrtMemcpy2dAsync(device, 1, pinned, 1, 0, 5242881, ACL_MEMCPY_DEFAULT, stream_));
  EXPECT_CODE(100000, aclrtMemcpy2dAsync(device, 8, pinned, 8, 8, 1,
                                         static_cast<aclrtMemcpyKind>(5), stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  ASSERT_OK(aclrtFree(device));
  ASSERT_OK(aclrtFreeHost(pinned));
}

TEST_F(Memory, CPY_13_CopiesDuringACapture) {
  // Pinned and device memory: captured. Pageable memory: refused in every mode, without harm.
  void* device = Device(8);
  auto* pinned = static_cast<int32_t*>(Pinned(8));
  int32_t pageable = 9;
  ASSERT_OK(aclrtMemset(device, 8, 0, 8));
  for (auto mode : {kGlobal, kThreadLocal, kRelaxed}) {
    *pinned = 7 + static_cast<int32_t>(mode);
    Begin(stream_, mode);
    ASSERT_OK(aclrtMemcpyAsync(device, 4, pinned, 4, ACL_MEMCPY_HOST_TO_DEVICE, stream_));
    EXPECT_CODE(107000,
                aclrtMemcpyAsync(device, 4, &pageable, 4, ACL_MEMCPY_HOST_TO_DEVICE, stream_));
    ASSERT_OK(aclrtMemsetAsync(static_cast<char*>(device) + 4, 4, 1, 4, stream_));
    aclmdlRI model = End(stream_);
    ASSERT_OK(aclrtMemset(device, 8, 0, 8));
    EXPECT_EQ(Read(device), 0);
    ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
    ASSERT_OK(aclrtSynchronizeStream(stream_));
    EXPECT_EQ(Read(device), *pinned);
    EXPECT_EQ(Read(static_cast<char*>(device) + 4), 0x01010101);
  }
  ASSERT_OK(aclrtFree(device));
  ASSERT_OK(aclrtFreeHost(pinned));
}

TEST_F(Memory, CPY_01_KindsOfAsynchronousCopies) {
  void* device = Device(4);
  auto* pinned = static_cast<int32_t*>(Pinned(4));
  for (int kind = 1; kind <= 5; ++kind) {
    *pinned = 10 + kind;
    EXPECT_OK(aclrtMemcpyAsync(device, 4, pinned, 4, static_cast<aclrtMemcpyKind>(kind), stream_));
    ASSERT_OK(aclrtSynchronizeStream(stream_));
    EXPECT_EQ(Read(device), 10 + kind);
  }
  EXPECT_CODE(207000,  // host to host is a kind, but not of asynchronous copies (CPY-07)
              aclrtMemcpyAsync(device, 4, pinned, 4, ACL_MEMCPY_HOST_TO_HOST, stream_));
  EXPECT_OK(aclrtMemcpyAsync(nullptr, 0, nullptr, 0, ACL_MEMCPY_DEFAULT, stream_));
  ASSERT_OK(aclrtFree(device));
  ASSERT_OK(aclrtFreeHost(pinned));
}

}  // namespace
}  // namespace acltape::device
