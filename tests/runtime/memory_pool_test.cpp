// Memory pools: rules POOL.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

#include "acl/acl_rt_memory_soma.h"
#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

constexpr size_t kUnit = size_t{2} << 20;

class MemoryPools : public SoftDevice {
 protected:
  void SetUp() override {
    SoftDevice::SetUp();
    pool_ = Create(64 * kUnit);
  }
  void TearDown() override {
    if (pool_ != nullptr) {
      EXPECT_OK(aclrtMemPoolDestroy(pool_));
    }
    SoftDevice::TearDown();
  }

  static aclrtMemPoolProps Properties(size_t most) {
    aclrtMemPoolProps properties{};
    properties.allocType = ACL_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
    properties.maxSize = most;
    return properties;
  }
  static aclrtMemPool Create(size_t most) {
    const aclrtMemPoolProps properties = Properties(most);
    aclrtMemPool pool = nullptr;
    EXPECT_OK(aclrtMemPoolCreate(&pool, &properties));
    return pool;
  }
  char* Allocate(size_t bytes, aclrtStream stream) {
    void* memory = nullptr;
    EXPECT_OK(aclrtMemPoolMallocAsync(&memory, bytes, pool_, stream));
    return static_cast<char*>(memory);
  }
  char* Allocate(size_t bytes) { return Allocate(bytes, stream_); }
  void Free(void* memory, aclrtStream stream) { EXPECT_OK(aclrtMemPoolFreeAsync(memory, stream)); }
  void Free(void* memory) { Free(memory, stream_); }

  uint64_t Get(aclrtMemPoolAttr attribute) {
    uint64_t value = 0;
    EXPECT_OK(aclrtMemPoolGetAttr(pool_, attribute, &value));
    return value;
  }
  // In units.
  uint64_t Reserved() { return Get(ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT) / kUnit; }
  uint64_t ReservedHigh() { return Get(ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH) / kUnit; }
  uint64_t Used() { return Get(ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT) / kUnit; }
  uint64_t UsedHigh() { return Get(ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH) / kUnit; }
  void Keep(uint64_t units) {
    uint64_t bytes = units * kUnit;
    ASSERT_OK(aclrtMemPoolSetAttr(pool_, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, &bytes));
  }
  void Switch(aclrtMemPoolAttr attribute, uint32_t on) {
    ASSERT_OK(aclrtMemPoolSetAttr(pool_, attribute, &on));
  }
  // Says which memory of other streams may be reused.
  void AllowReuse(bool events, bool opportunistic, bool internal) {
    Switch(ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES, events);
    Switch(ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC, opportunistic);
    Switch(ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES, internal);
  }
  static size_t FreeOfDevice() {
    size_t free = 0;
    size_t total = 0;
    EXPECT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
    return free;
  }
  void Fill(void* memory, int value, size_t bytes, aclrtStream stream) {
    ASSERT_OK(aclrtMemsetAsync(memory, bytes, value, bytes, stream));
  }
  static std::string Message() {
    const char* message = aclGetRecentErrMsg();
    return message != nullptr ? message : "";
  }

  aclrtMemPool pool_ = nullptr;
};

TEST_F(MemoryPools, POOL_01_PropertiesOfAPool) {
  aclrtMemPool pool = nullptr;
  const aclrtMemPoolProps good = Properties(3 * kUnit);
  EXPECT_CODE(100000, aclrtMemPoolCreate(nullptr, &good));
  EXPECT_CODE(100000, aclrtMemPoolCreate(&pool, nullptr));
  aclrtMemPoolProps bad = good;
  bad.location.type = ACL_MEM_LOCATION_TYPE_HOST;
  EXPECT_CODE(100000, aclrtMemPoolCreate(&pool, &bad));
  bad = good;
  bad.allocType = static_cast<aclrtMemAllocationType>(1);
  EXPECT_CODE(100000, aclrtMemPoolCreate(&pool, &bad));
  bad = good;
  bad.reserved[31] = 1;
  EXPECT_CODE(100000, aclrtMemPoolCreate(&pool, &bad));
  bad = good;
  bad.handleType = static_cast<aclrtMemHandleType>(1);
  EXPECT_CODE(107000, aclrtMemPoolCreate(&pool, &bad));
  bad = good;
  bad.location.id = 99;
  EXPECT_CODE(107001, aclrtMemPoolCreate(&pool, &bad));
  bad = good;
  bad.maxSize = (size_t{64} << 30) + 1;
  EXPECT_CODE(107000, aclrtMemPoolCreate(&pool, &bad));
}

TEST_F(MemoryPools, POOL_01_TheSizeIsRoundedUpAndZeroMeansTheWholeDevice) {
  const size_t before = FreeOfDevice();
  aclrtMemPool small = Create(1);
  aclrtMemPool whole = Create(0);
  EXPECT_EQ(FreeOfDevice(), before) << "a pool without allocations takes nothing";
  void* memory = nullptr;
  void* second = nullptr;
  ASSERT_OK(aclrtMemPoolMallocAsync(&memory, kUnit, small, stream_));
  EXPECT_CODE(207001, aclrtMemPoolMallocAsync(&second, 1, small, stream_));
  Free(memory);
  ASSERT_OK(aclrtMemPoolMallocAsync(&memory, size_t{40} << 30, whole, stream_));
  EXPECT_EQ(before - FreeOfDevice(), (size_t{40} << 30) + kUnit);
  EXPECT_CODE(207001, aclrtMemPoolMallocAsync(&second, size_t{40} << 30, whole, stream_));
  Free(memory);
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(FreeOfDevice(), before);
  EXPECT_OK(aclrtMemPoolDestroy(small));
  EXPECT_OK(aclrtMemPoolDestroy(whole));
}

TEST_F(MemoryPools, POOL_02_MemoryIsThereForWhatComesLaterInTheStream) {
  Gate gate;
  Launch(stream_, gate);
  char* memory = Allocate(1000);
  ASSERT_NE(memory, nullptr) << "the call does not wait for the stream";
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 512, 0u);
  Fill(memory, 7, 1000, stream_);
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  char bytes[1000] = {};
  ASSERT_OK(aclrtMemcpy(bytes, 1000, memory, 1000, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(bytes[999], 7);
  void* begin = nullptr;
  size_t size = 0;
  ASSERT_OK(aclrtMemGetAddressRange(memory + 5, &begin, &size));
  EXPECT_EQ(begin, memory);
  EXPECT_EQ(size, 1000u);
  aclrtPtrAttributes attributes{};
  ASSERT_OK(aclrtPointerGetAttributes(memory, &attributes));
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  Free(memory);
}

TEST_F(MemoryPools, POOL_02_ArgumentsOfAnAllocation) {
  void* memory = this;
  EXPECT_CODE(100000, aclrtMemPoolMallocAsync(nullptr, 8, pool_, stream_));
  EXPECT_CODE(100000, aclrtMemPoolMallocAsync(&memory, 8, nullptr, stream_));
  EXPECT_CODE(100000, aclrtMemPoolMallocAsync(&memory, 8, pool_, nullptr));
  EXPECT_CODE(107017, aclrtMemPoolMallocAsync(&memory, 8, stream_, stream_));
  EXPECT_OK(aclrtMemPoolMallocAsync(&memory, 0, pool_, stream_));
  EXPECT_EQ(memory, this) << "no bytes are no memory";
  EXPECT_CODE(207001, aclrtMemPoolMallocAsync(&memory, 65 * kUnit, pool_, stream_));
  EXPECT_CODE(207001, aclrtMemPoolMallocAsync(&memory, SIZE_MAX - 8, pool_, stream_));
  EXPECT_EQ(Used(), 0u);
}

TEST_F(MemoryPools, POOL_03_WorkBeforeTheFreeHasTheMemoryAndWorkAfterItHasNot) {
  char* memory = Allocate(4096);
  Gate gate;
  Launch(stream_, gate);
  Fill(memory, 3, 4096, stream_);
  Free(memory);
  // The program has given it away, although the stream has not got there.
  EXPECT_CODE(107000, aclrtMemsetAsync(memory, 4096, 0, 4096, stream_));
  EXPECT_NE(Message().find("memory of a pool that is not allocated, or was freed"),
            std::string::npos)
      << Message();
  EXPECT_CODE(107000, aclrtMemPoolFreeAsync(memory, stream_)) << "a second free";
  EXPECT_CODE(107000, aclrtFree(memory));
  gate.Open();
  EXPECT_OK(aclrtSynchronizeStream(stream_)) << "what came before the free had it";
  EXPECT_CODE(107000, aclrtMemPoolFreeAsync(memory, stream_));
}

TEST_F(MemoryPools, POOL_03_ArgumentsOfAFree) {
  char* memory = Allocate(4096);
  EXPECT_CODE(100000, aclrtMemPoolFreeAsync(nullptr, stream_));
  EXPECT_CODE(100000, aclrtMemPoolFreeAsync(memory, nullptr));
  EXPECT_CODE(107000, aclrtMemPoolFreeAsync(memory + 8, stream_));
  int mine = 0;
  EXPECT_CODE(107000, aclrtMemPoolFreeAsync(&mine, stream_));
  Free(memory, other_);  // any stream may free
  EXPECT_OK(aclrtSynchronizeStream(other_));
}

TEST_F(MemoryPools, POOL_04_AStreamReusesItsMemoryBeforeItHasReachedTheFree) {
  Keep(64);
  Gate gate;
  Launch(stream_, gate);
  char* first = Allocate(kUnit);
  Fill(first, 1, kUnit, stream_);
  void* pinned = nullptr;
  ASSERT_OK(aclrtMallocHost(&pinned, 32));
  ASSERT_OK(aclrtMemcpyAsync(pinned, 16, first, 16, ACL_MEMCPY_DEVICE_TO_HOST, stream_));
  Free(first);
  char* second = Allocate(100);
  EXPECT_EQ(second, first);
  Fill(second, 2, 100, stream_);
  ASSERT_OK(aclrtMemcpyAsync(static_cast<char*>(pinned) + 16, 16, second, 16,
                             ACL_MEMCPY_DEVICE_TO_HOST, stream_));
  EXPECT_EQ(Reserved(), 1u);
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(static_cast<char*>(pinned)[0], 1);
  EXPECT_EQ(static_cast<char*>(pinned)[16], 2);
  Free(second);
  ASSERT_OK(aclrtFreeHost(pinned));
}

TEST_F(MemoryPools, POOL_04_TheSmallestPartThatFitsIsReusedAndLargerOnesAreCut) {
  Keep(64);
  char* eight = Allocate(8 * kUnit);
  char* between = Allocate(1);  // keeps the two apart
  char* three = Allocate(3 * kUnit);
  char* last = Allocate(1);
  Free(eight);
  Free(three);
  EXPECT_EQ(Allocate(2 * kUnit), three);
  char* cut = Allocate(2 * kUnit);
  EXPECT_EQ(cut, eight);
  EXPECT_EQ(Reserved(), 13u);
  EXPECT_EQ(Used(), 6u);
  // The rest of the eight is one part, and with the two it is the eight again.
  Free(cut);
  EXPECT_EQ(Allocate(8 * kUnit), eight);
  EXPECT_EQ(Reserved(), 13u);
  for (char* memory : {eight, between, three, last}) Free(memory);
  EXPECT_EQ(Used(), 0u);
  EXPECT_EQ(UsedHigh(), 13u);
}

TEST_F(MemoryPools, POOL_05_EventsPassMemoryOn) {
  Keep(64);
  AllowReuse(/*events=*/true, /*opportunistic=*/false, /*internal=*/false);
  aclrtStream third = nullptr;
  ASSERT_OK(aclrtCreateStream(&third));
  Gate gate;
  Launch(stream_, gate);
  char* memory = Allocate(kUnit);
  Free(memory);
  EXPECT_NE(Allocate(kUnit, other_), memory) << "nothing orders the two streams";
  aclrtEvent event = CreateEx();
  aclrtEvent second = CreateEx();
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, event));
  ASSERT_OK(aclrtRecordEvent(second, other_));
  ASSERT_OK(aclrtStreamWaitEvent(third, second));
  EXPECT_EQ(Allocate(kUnit, third), memory) << "in the order of a chain of events";
  char* later = Allocate(kUnit);
  Free(later);
  EXPECT_NE(Allocate(kUnit, third), later) << "that free came after the record";
  gate.Open();
  ASSERT_OK(aclrtSynchronizeDevice());
  ASSERT_OK(aclrtDestroyEvent(event));
  ASSERT_OK(aclrtDestroyEvent(second));
}

TEST_F(MemoryPools, POOL_05_MemoryThatIsFreeAlreadyIsReusedByAnyStream) {
  Keep(64);
  AllowReuse(/*events=*/false, /*opportunistic=*/true, /*internal=*/false);
  char* memory = Allocate(kUnit);
  Gate gate;
  Launch(stream_, gate);
  Free(memory);
  EXPECT_NE(Allocate(kUnit, other_), memory);
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(Allocate(kUnit, other_), memory);
  char* mine = Allocate(kUnit, other_);
  Switch(ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC, 0);
  Free(mine, other_);
  ASSERT_OK(aclrtSynchronizeStream(other_));
  EXPECT_NE(Allocate(kUnit), mine) << "it may not look";
}

TEST_F(MemoryPools, POOL_05_AStreamWaitsForAnothersMemoryWhenThereIsNoOther) {
  Keep(64);
  AllowReuse(/*events=*/false, /*opportunistic=*/false, /*internal=*/true);
  char* memory = Allocate(60 * kUnit);
  Gate gate;
  Launch(stream_, gate);
  Fill(memory, 1, 16, stream_);
  Free(memory);
  char* small = Allocate(kUnit, other_);
  EXPECT_NE(small, memory) << "there is other memory";
  char* large = Allocate(50 * kUnit, other_);
  EXPECT_EQ(large, memory);
  Log log;
  Fill(large, 2, 16, other_);
  Launch(other_, log, "b");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(log.text(), "") << "the other stream waits for the free";
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(log.text(), "b");
  EXPECT_EQ(large[0], 2);
  Switch(ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
  Gate second;
  Launch(other_, second);
  Free(large, other_);
  void* none = nullptr;
  EXPECT_CODE(207001, aclrtMemPoolMallocAsync(&none, 60 * kUnit, pool_, stream_));
}

TEST_F(MemoryPools, POOL_06_MemoryOfAPoolIsFreedAtOnceByTheCallForOtherMemory) {
  Keep(64);
  char* memory = Allocate(3 * kUnit);
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_OK(aclrtFree(memory));
  EXPECT_EQ(Used(), 0u);
  EXPECT_EQ(Reserved(), 0u) << "its memory belongs to the device again";
  EXPECT_CODE(107000, aclrtFree(memory));
  EXPECT_CODE(107000, aclrtMemPoolFreeAsync(memory, stream_));
  Gate gate;
  Launch(stream_, gate);
  char* never = Allocate(kUnit);
  EXPECT_OK(aclrtFree(never)) << "even before the stream has reached the allocation";
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  char* synchronised = Allocate(kUnit);
  EXPECT_OK(aclrtFreeWithDevSync(synchronised));
}

TEST_F(MemoryPools, POOL_06_OtherDeviceMemoryIsFreedInStreamOrder) {
  const size_t before = FreeOfDevice();
  void* memory = nullptr;
  ASSERT_OK(aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
  Gate gate;
  Launch(stream_, gate);
  Fill(memory, 1, 4096, stream_);
  EXPECT_OK(aclrtMemPoolFreeAsync(memory, stream_));
  EXPECT_LT(FreeOfDevice(), before);
  EXPECT_CODE(107000, aclrtMemPoolFreeAsync(memory, stream_));
  EXPECT_CODE(107000, aclrtFree(memory));
  EXPECT_CODE(107000, aclrtMemsetAsync(memory, 4096, 0, 4096, stream_));
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(FreeOfDevice(), before);
  void* pinned = nullptr;
  ASSERT_OK(aclrtMallocHost(&pinned, 64));
  EXPECT_CODE(107000, aclrtMemPoolFreeAsync(pinned, stream_));
  ASSERT_OK(aclrtFreeHost(pinned));
}

TEST_F(MemoryPools, POOL_07_WaitingForTheDeviceGivesBackWhatIsBeyondTheThreshold) {
  const struct {
    const char* name;
    std::function<void()> wait;
  } kWaits[] = {
      {"stream", [&] { ASSERT_OK(aclrtSynchronizeStream(stream_)); }},
      {"stream with time-out",
       [&] { ASSERT_OK(aclrtSynchronizeStreamWithTimeout(stream_, 5000)); }},
      {"device", [&] { ASSERT_OK(aclrtSynchronizeDevice()); }},
      {"device with time-out", [&] { ASSERT_OK(aclrtSynchronizeDeviceWithTimeout(5000)); }},
      {"event",
       [&] {
         aclrtEvent event = CreateEx();
         ASSERT_OK(aclrtRecordEvent(event, stream_));
         ASSERT_OK(aclrtSynchronizeEvent(event));
         ASSERT_OK(aclrtDestroyEvent(event));
       }},
  };
  for (const auto& wait : kWaits) {
    SCOPED_TRACE(wait.name);
    const size_t before = FreeOfDevice();
    char* held = Allocate(2 * kUnit);
    for (const uint64_t threshold : {4u, 0u}) {
      Keep(threshold);
      char* memory = Allocate(5 * kUnit);
      Free(memory);
      EXPECT_GE(Reserved(), 7u) << "a free alone gives nothing back";
      wait.wait();
      EXPECT_EQ(Reserved(), std::max<uint64_t>(threshold, 2)) << "what is in use stays";
      EXPECT_EQ(before - FreeOfDevice(), Reserved() * kUnit);
    }
    Free(held);
    wait.wait();
    EXPECT_EQ(Reserved(), 0u);
  }
}

TEST_F(MemoryPools, POOL_07_WhatAStreamHasNotReachedIsNotGivenBack) {
  char* memory = Allocate(kUnit);
  Gate gate;
  Launch(stream_, gate);
  Free(memory);
  ASSERT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(Reserved(), 1u);
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(Reserved(), 0u);
}

TEST_F(MemoryPools, POOL_07_TrimmingKeepsSoManyBytesAndWhatIsInUse) {
  Keep(64);
  char* held = Allocate(2 * kUnit);
  char* memory = Allocate(8 * kUnit);
  Free(memory);
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_CODE(100000, aclrtMemPoolTrimTo(nullptr, 0));
  EXPECT_CODE(107000, aclrtMemPoolTrimTo(pool_, 65 * kUnit));
  EXPECT_OK(aclrtMemPoolTrimTo(pool_, 20 * kUnit));
  EXPECT_EQ(Reserved(), 10u);
  EXPECT_OK(aclrtMemPoolTrimTo(pool_, 5 * kUnit + 1));
  EXPECT_EQ(Reserved(), 6u) << "at least so many bytes";
  EXPECT_OK(aclrtMemPoolTrimTo(pool_, 0));
  EXPECT_EQ(Reserved(), 2u);
  EXPECT_EQ(ReservedHigh(), 10u);
  Free(held);
}

TEST_F(MemoryPools, POOL_07_WhatAPoolKeepsIsThereForOtherAllocations) {
  aclrtMemPool whole = Create(0);
  uint64_t all = uint64_t{40} << 30;
  ASSERT_OK(aclrtMemPoolSetAttr(whole, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, &all));
  void* memory = nullptr;
  ASSERT_OK(aclrtMemPoolMallocAsync(&memory, size_t{40} << 30, whole, stream_));
  void* plain = nullptr;
  EXPECT_CODE(207001, aclrtMalloc(&plain, size_t{40} << 30, ACL_MEM_MALLOC_HUGE_FIRST));
  Free(memory);
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_OK(aclrtMalloc(&plain, size_t{40} << 30, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_OK(aclrtFree(plain));
  EXPECT_OK(aclrtMemPoolDestroy(whole));
}

TEST_F(MemoryPools, POOL_08_SizesAndPeaks) {
  Keep(64);
  EXPECT_EQ(Get(ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD), 64 * kUnit);
  char* small = Allocate(1);
  char* large = Allocate(4 * kUnit + 1);
  EXPECT_EQ(Used(), 6u);
  EXPECT_EQ(Reserved(), 6u);
  Free(large);
  EXPECT_EQ(Used(), 1u);
  EXPECT_EQ(Reserved(), 6u);
  Free(small);
  EXPECT_EQ(Used(), 0u);
  EXPECT_EQ(UsedHigh(), 6u);
  EXPECT_EQ(ReservedHigh(), 6u);
  uint64_t zero = 0;
  EXPECT_OK(aclrtMemPoolSetAttr(pool_, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, &zero));
  EXPECT_OK(aclrtMemPoolSetAttr(pool_, ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH, &zero));
  EXPECT_EQ(UsedHigh(), 0u);
  EXPECT_EQ(ReservedHigh(), 0u);
  Free(Allocate(2 * kUnit));
  EXPECT_EQ(UsedHigh(), 2u);
}

TEST_F(MemoryPools, POOL_09_WhatAnAttributeCanBeSetTo) {
  uint64_t value = 1;
  uint32_t on = 7;
  EXPECT_CODE(100000, aclrtMemPoolSetAttr(nullptr, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, &value));
  EXPECT_CODE(100000, aclrtMemPoolSetAttr(pool_, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, nullptr));
  EXPECT_CODE(100000, aclrtMemPoolGetAttr(pool_, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, nullptr));
  const auto none = static_cast<aclrtMemPoolAttr>(9);
  EXPECT_CODE(107000, aclrtMemPoolSetAttr(pool_, none, &value));
  EXPECT_CODE(107000, aclrtMemPoolGetAttr(pool_, none, &value));
  for (auto peak : {ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH}) {
    EXPECT_CODE(107000, aclrtMemPoolSetAttr(pool_, peak, &value)) << "a peak can only be cleared";
  }
  value = 0;
  for (auto size :
       {ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT, ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT}) {
    EXPECT_CODE(107000, aclrtMemPoolSetAttr(pool_, size, &value)) << "a size can only be read";
  }
  value = 65 * kUnit;
  EXPECT_CODE(107000, aclrtMemPoolSetAttr(pool_, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, &value));
  for (auto reuse :
       {ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES, ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC,
        ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES}) {
    uint32_t told[2] = {9, 9};
    ASSERT_OK(aclrtMemPoolGetAttr(pool_, reuse, told));
    EXPECT_EQ(told[0], 1u) << "allowed at first";
    EXPECT_EQ(told[1], 9u) << "the value has four bytes";
    on = 0;
    ASSERT_OK(aclrtMemPoolSetAttr(pool_, reuse, &on));
    ASSERT_OK(aclrtMemPoolGetAttr(pool_, reuse, told));
    EXPECT_EQ(told[0], 0u);
    on = 7;
    ASSERT_OK(aclrtMemPoolSetAttr(pool_, reuse, &on));
    ASSERT_OK(aclrtMemPoolGetAttr(pool_, reuse, told));
    EXPECT_EQ(told[0], 1u);
  }
}

TEST_F(MemoryPools, POOL_10_MemoryOutlivesThePoolUntilItIsFreed) {
  const size_t before = FreeOfDevice();
  char* memory = Allocate(kUnit);
  char* kept = Allocate(kUnit);
  Gate gate;
  Launch(stream_, gate);
  Free(kept);
  EXPECT_OK(aclrtMemPoolDestroy(pool_));
  EXPECT_CODE(107017, aclrtMemPoolDestroy(pool_));
  void* none = nullptr;
  EXPECT_CODE(107017, aclrtMemPoolMallocAsync(&none, 8, pool_, stream_));
  EXPECT_CODE(107017, aclrtMemPoolTrimTo(pool_, 0));
  Fill(memory, 5, 64, stream_);
  Free(memory);
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  // The worker lets the last allocation go after its task has run.
  for (int i = 0; i < 1000 && FreeOfDevice() != before; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(FreeOfDevice(), before);
  EXPECT_CODE(107000, aclrtMemsetAsync(memory, 8, 0, 8, stream_)) << "its addresses are known";
  pool_ = nullptr;
}

TEST_F(MemoryPools, POOL_11_StreamsThatKeepTheirTasksRefuseMemoryOfPools) {
  char* memory = Allocate(kUnit);
  void* none = nullptr;
  Begin(stream_);
  EXPECT_CODE(107027, aclrtMemPoolMallocAsync(&none, 8, pool_, stream_));
  EXPECT_CODE(107027, aclrtMemPoolFreeAsync(memory, stream_));
  Log log;
  Launch(stream_, log, "a");
  aclmdlRI model = End(stream_);  // the capture took no harm
  ASSERT_OK(aclmdlRIDestroy(model));

  aclrtStream persistent = nullptr;
  ASSERT_OK(aclrtCreateStreamWithConfig(&persistent, 0, ACL_STREAM_PERSISTENT));
  EXPECT_CODE(107005, aclrtMemPoolMallocAsync(&none, 8, pool_, persistent));
  EXPECT_CODE(107005, aclrtMemPoolFreeAsync(memory, persistent));

  Begin(stream_);
  ASSERT_OK(aclmdlRICaptureTaskGrpBegin(stream_));
  Launch(stream_, log, "a");
  aclrtTaskGrp group = nullptr;
  ASSERT_OK(aclmdlRICaptureTaskGrpEnd(stream_, &group));
  model = End(stream_);
  ASSERT_OK(aclmdlRICaptureTaskUpdateBegin(other_, group));
  EXPECT_CODE(107033, aclrtMemPoolMallocAsync(&none, 8, pool_, other_));
  EXPECT_CODE(107033, aclrtMemPoolFreeAsync(memory, other_));
  Launch(other_, log, "b");
  ASSERT_OK(aclmdlRICaptureTaskUpdateEnd(other_));
  ASSERT_OK(aclmdlRIDestroy(model));
  Free(memory);
}

TEST_F(MemoryPools, POOL_11_GraphsUseMemoryThatWasAllocatedOutside) {
  char* memory = Allocate(16);
  Begin(stream_);
  Fill(memory, 9, 16, stream_);
  aclmdlRI model = End(stream_);
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(memory[15], 9);
  Free(memory);
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  EXPECT_CODE(507013, aclrtSynchronizeStream(stream_)) << "after the free there is no memory";
  ASSERT_OK(aclmdlRIDestroy(model));
}

TEST_F(MemoryPools, POOL_12_WorkThatIsNotOrderedAfterTheAllocationFails) {
  Gate gate;
  Launch(stream_, gate);
  char* memory = Allocate(64);
  Fill(memory, 1, 64, other_);
  EXPECT_CODE(507013, aclrtSynchronizeStream(other_));
  EXPECT_NE(Message().find("lies in a pool where no stream has memory allocated now"),
            std::string::npos)
      << Message();
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  Fill(memory, 1, 64, other_);
  EXPECT_OK(aclrtSynchronizeStream(other_));
  Gate second;
  Launch(other_, second);
  Fill(memory, 2, 64, other_);
  Free(memory);
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  second.Open();
  EXPECT_CODE(507013, aclrtSynchronizeStream(other_)) << "the free came before that work";
}

TEST_F(MemoryPools, POOL_12_ManyStreamsShareAPool) {
  Keep(64);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      ASSERT_OK(aclrtSetDevice(0));
      aclrtStream stream = nullptr;
      ASSERT_OK(aclrtCreateStream(&stream));
      void* pinned = nullptr;
      ASSERT_OK(aclrtMallocHost(&pinned, 64));
      for (int i = 0; i < 200; ++i) {
        const size_t bytes = static_cast<size_t>(1 + (i * 7 + thread) % 5) * kUnit - 13;
        char* memory = Allocate(bytes, stream);
        const int value = thread * 50 + i % 50;
        Fill(memory, value, 64, stream);
        Fill(memory + bytes - 64, value, 64, stream);
        ASSERT_OK(aclrtMemcpyAsync(pinned, 64, memory + bytes - 64, 64, ACL_MEMCPY_DEVICE_TO_HOST,
                                   stream));
        Free(memory, stream);
        if (i % 3 != 0) continue;
        ASSERT_OK(aclrtSynchronizeStream(stream));
        if (static_cast<unsigned char*>(pinned)[63] != value) wrong.fetch_add(1);
      }
      ASSERT_OK(aclrtSynchronizeStream(stream));
      ASSERT_OK(aclrtFreeHost(pinned));
      ASSERT_OK(aclrtDestroyStream(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(Used(), 0u);
  EXPECT_LE(ReservedHigh(), 64u);
}

}  // namespace
}  // namespace acltape::device
