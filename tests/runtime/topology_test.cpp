// Copies by descriptors, the cache, numbers of devices and kinds of memory: rules CPY-14 to CPY-16,
// CMO-01, DEV-18, DEV-19, MEM-15 and OVF-02.
#include <cstring>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

constexpr auto kInner = ACL_MEMCPY_INNER_DEVICE_TO_DEVICE;

class Described : public SoftDevice {
 protected:
  char* Device(size_t bytes, int value) {
    void* memory = nullptr;
    EXPECT_OK(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    EXPECT_OK(aclrtMemset(memory, bytes, value, bytes));
    return static_cast<char*>(memory);
  }
  // Device memory that holds an address.
  void** PlaceOf(void* address) {
    char* place = Device(sizeof(address), 0);
    EXPECT_OK(aclrtMemcpy(place, 8, &address, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    return reinterpret_cast<void**>(place);
  }
};

TEST_F(Described, CPY_14_ADescriptorIsReadWhenTheCopyRuns) {
  size_t bytes = 0;
  ASSERT_OK(aclrtGetMemcpyDescSize(kInner, &bytes));
  char* descriptor = Device(bytes, 0);
  char* one = Device(64, 1);
  char* two = Device(64, 2);
  char* to = Device(64, 0);
  ASSERT_OK(aclrtSetMemcpyDesc(descriptor, kInner, one, to, 64, nullptr));
  Gate gate;
  Launch(stream_, gate);
  ASSERT_OK(aclrtMemcpyAsyncWithDesc(descriptor, kInner, stream_));
  ASSERT_OK(aclrtSetMemcpyDesc(descriptor, kInner, two, to, 32, nullptr));
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(to[0], 2);
  EXPECT_EQ(to[31], 2);
  EXPECT_EQ(to[32], 0);
  // Memory without a descriptor fails the task.
  ASSERT_OK(aclrtMemcpyAsyncWithDesc(one, kInner, stream_));
  EXPECT_CODE(507013, aclrtSynchronizeStream(stream_));
}

TEST_F(Described, CPY_14_Refusals) {
  size_t bytes = 0;
  char* memory = Device(64, 0);
  char host[64];
  EXPECT_CODE(207000, aclrtGetMemcpyDescSize(ACL_MEMCPY_DEVICE_TO_DEVICE, &bytes));
  EXPECT_CODE(207000,
              aclrtSetMemcpyDesc(memory, ACL_MEMCPY_HOST_TO_DEVICE, memory, memory, 8, nullptr));
  EXPECT_CODE(107000, aclrtSetMemcpyDesc(memory, kInner, memory, memory, 0, nullptr));
  EXPECT_CODE(107000, aclrtSetMemcpyDesc(memory, kInner, memory, memory, 8, host));
  EXPECT_CODE(107000, aclrtSetMemcpyDesc(memory, kInner, host, memory, 8, nullptr));
  EXPECT_CODE(107000, aclrtSetMemcpyDesc(memory, kInner, memory, memory, 97, nullptr));
  EXPECT_CODE(107000, aclrtMemcpyAsyncWithDesc(host, kInner, stream_));
}

TEST_F(Described, CPY_15_OffsetsCountFromAddressesInDeviceMemory) {
  char* from = Device(64, 3);
  char* other = Device(64, 4);
  char* to = Device(64, 0);
  void** from_place = PlaceOf(from);
  void** to_place = PlaceOf(to);
  Gate gate;
  Launch(stream_, gate);
  ASSERT_OK(aclrtMemcpyAsyncWithOffset(to_place, 64, 8, const_cast<const void**>(from_place), 16, 4,
                                       kInner, stream_));
  *from_place = other;  // read when the task runs
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(to[7], 0);
  EXPECT_EQ(to[8], 4);
  EXPECT_EQ(to[23], 4);
  EXPECT_EQ(to[24], 0);
  // An address past the block fails the task.
  ASSERT_OK(aclrtMemcpyAsyncWithOffset(to_place, 128, 60, const_cast<const void**>(from_place), 64,
                                       0, kInner, stream_));
  EXPECT_CODE(507013, aclrtSynchronizeStream(stream_));
  EXPECT_CODE(107000,
              aclrtMemcpyAsyncWithOffset(to_place, 8, 0, const_cast<const void**>(from_place), 16,
                                         0, kInner, stream_));
  EXPECT_CODE(207000,
              aclrtMemcpyAsyncWithOffset(to_place, 64, 0, const_cast<const void**>(from_place), 16,
                                         0, ACL_MEMCPY_DEVICE_TO_DEVICE, stream_));
}

TEST_F(Described, CPY_16_TheOlderNameCopiesAsTheOther) {
  char* memory = Device(64, 0);
  char host[64];
  std::memset(host, 5, sizeof(host));
  ASSERT_OK(
      aclrtMemcpyAsyncWithCondition(memory, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE, stream_));
  EXPECT_EQ(memory[63], 5);  // pageable memory: the call returned after the copy
  char* other = Device(64, 0);
  ASSERT_OK(
      aclrtMemcpyAsyncWithCondition(other, 64, memory, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(other[0], 5);
  EXPECT_CODE(207000, aclrtMemcpyAsyncWithCondition(host, 64, host + 32, 32,
                                                    ACL_MEMCPY_HOST_TO_HOST, stream_));
}

TEST_F(Described, CMO_01_PrefetchingChangesNoValue) {
  char* memory = Device(64, 6);
  char* descriptor = Device(64, 0);
  size_t bytes = 0;
  ASSERT_OK(aclrtCmoAsync(memory, 64, ACL_RT_CMO_TYPE_PREFETCH, stream_));
  ASSERT_OK(aclrtCmoGetDescSize(&bytes));
  EXPECT_LE(bytes, 64u);
  ASSERT_OK(aclrtCmoSetDesc(descriptor, memory, 64));
  ASSERT_OK(aclrtCmoAsyncWithDesc(descriptor, ACL_RT_CMO_TYPE_PREFETCH, stream_, nullptr));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(memory[0], 6);
  EXPECT_EQ(memory[63], 6);
  EXPECT_CODE(207000, aclrtCmoAsync(memory, 64, ACL_RT_CMO_TYPE_INVALID, stream_));
  EXPECT_CODE(107000, aclrtCmoAsync(memory, 64, static_cast<aclrtCmoType>(9), stream_));
  EXPECT_CODE(107000, aclrtCmoAsync(memory, 97, ACL_RT_CMO_TYPE_PREFETCH, stream_));
  EXPECT_CODE(107000, aclrtCmoAsync(memory, 0, ACL_RT_CMO_TYPE_PREFETCH, stream_));
  EXPECT_CODE(107000, aclrtCmoAsyncWithDesc(descriptor, ACL_RT_CMO_TYPE_PREFETCH, stream_, memory));
  ASSERT_OK(aclrtCmoAsyncWithDesc(memory, ACL_RT_CMO_TYPE_PREFETCH, stream_, nullptr));
  EXPECT_CODE(507013, aclrtSynchronizeStream(stream_));  // no descriptor
}

TEST_F(Described, DEV_18_AllNumbersOfADeviceAreTheSame) {
  constexpr decltype(&aclrtGetLogicDevIdByPhyDevId) kQuestions[] = {
      aclrtGetLogicDevIdByPhyDevId,  aclrtGetPhyDevIdByLogicDevId, aclrtGetLogicDevIdByUserDevId,
      aclrtGetUserDevIdByLogicDevId, aclrtGetUserDevIdByPhyDevId,  aclrtGetPhyDevIdByUserDevId};
  for (auto* question : kQuestions) {
    int32_t id = -1;
    EXPECT_OK(question(0, &id));
    EXPECT_EQ(id, 0);
    EXPECT_CODE(107001, question(1, &id));
    EXPECT_CODE(107001, question(-1, &id));
  }
  uint64_t topology = 0;
  ASSERT_OK(aclrtGetDevicesTopo(0, 0, &topology));
  EXPECT_EQ(topology, ACL_RT_DEVS_TOPOLOGY_SIO);
  EXPECT_CODE(107001, aclrtGetDevicesTopo(0, 1, &topology));
}

TEST_F(Described, DEV_18_ADeviceIsFoundByItsPlaceOnTheBus) {
  char text[32];
  int32_t id = -1;
  ASSERT_OK(aclrtDeviceGetPCIBusId(0, text, sizeof(text)));
  EXPECT_STREQ(text, "0000:01:00.0");
  ASSERT_OK(aclrtDeviceGetByPCIBusId(text, &id));
  EXPECT_EQ(id, 0);
  EXPECT_CODE(107000, aclrtDeviceGetPCIBusId(0, text, 12));
  EXPECT_CODE(107001, aclrtDeviceGetPCIBusId(1, text, sizeof(text)));
  EXPECT_CODE(107001, aclrtDeviceGetByPCIBusId("0000:02:00.0", &id));
}

TEST_F(Described, DEV_19_TheSchedulerAndTheIntervalOfTimeOuts) {
  EXPECT_OK(aclrtSetTsDevice(ACL_TS_ID_AICORE));
  EXPECT_OK(aclrtSetTsDevice(ACL_TS_ID_AIVECTOR));
  EXPECT_CODE(100000, aclrtSetTsDevice(ACL_TS_ID_RESERVED));
  uint64_t interval = 0;
  ASSERT_OK(aclrtGetOpTimeOutInterval(&interval));
  EXPECT_EQ(254 * interval / 1000000, 1090u);
}

TEST_F(Described, MEM_15_KindsOfMemory) {
  void* reserved = nullptr;
  ASSERT_OK(aclrtReserveMemAddress(&reserved, size_t{2} << 20, 0, nullptr, 0));
  void* list[2] = {Device(64, 0), Device(64, 0)};
  uint32_t result = 9;
  ASSERT_OK(aclrtCheckMemType(list, 2, ACL_RT_MEM_TYPE_DEV, &result, 0));
  EXPECT_EQ(result, 1u);
  ASSERT_OK(aclrtCheckMemType(list, 2, ACL_RT_MEM_TYPE_DVPP, &result, 0));
  EXPECT_EQ(result, 0u);
  list[1] = reserved;
  ASSERT_OK(aclrtCheckMemType(list, 2, ACL_RT_MEM_TYPE_DEV, &result, 0));
  EXPECT_EQ(result, 0u);
  ASSERT_OK(aclrtCheckMemType(list, 2, ACL_RT_MEM_TYPE_DEV | ACL_RT_MEM_TYPE_RSVD, &result, 0));
  EXPECT_EQ(result, 1u);
  EXPECT_CODE(107000, aclrtCheckMemType(list, 0, ACL_RT_MEM_TYPE_DEV, &result, 0));
  EXPECT_CODE(107000, aclrtCheckMemType(list, 2, 1, &result, 0));
  EXPECT_CODE(107000, aclrtCheckMemType(list, 2, ACL_RT_MEM_TYPE_DEV, &result, 1));
}

TEST_F(Described, MEM_15_MemoryInUseAndItsPeak) {
  aclrtMemUsageInfo before{};
  aclrtMemUsageInfo after{};
  size_t count = 0;
  ASSERT_OK(aclrtGetMemUsageInfo(0, &before, 1, &count));
  EXPECT_EQ(count, 1u);
  void* memory = nullptr;
  ASSERT_OK(
      aclrtMallocForTaskScheduler(&memory, size_t{64} << 20, ACL_MEM_MALLOC_HUGE_FIRST, nullptr));
  ASSERT_OK(aclrtGetMemUsageInfo(0, &after, 1, &count));
  EXPECT_EQ(after.curMemSize, before.curMemSize + (size_t{64} << 20) + 32);
  const uint64_t peak = after.memPeakSize;
  EXPECT_GE(peak, after.curMemSize);
  ASSERT_OK(aclrtFree(memory));
  ASSERT_OK(aclrtGetMemUsageInfo(0, &after, 1, &count));
  EXPECT_EQ(after.curMemSize, before.curMemSize);
  EXPECT_EQ(after.memPeakSize, peak);
  EXPECT_STREQ(after.name, "APP");
  EXPECT_CODE(107000, aclrtGetMemUsageInfo(0, &after, 0, &count));
  EXPECT_CODE(107001, aclrtGetMemUsageInfo(1, &after, 1, &count));
}

TEST_F(Described, OVF_02_TheFlagOfAContextIsDeviceMemoryThatStays) {
  void* flag = nullptr;
  void* again = nullptr;
  ASSERT_OK(aclrtCtxGetFloatOverflowAddr(&flag));
  ASSERT_OK(aclrtCtxGetFloatOverflowAddr(&again));
  EXPECT_EQ(flag, again);
  char value[64];
  ASSERT_OK(aclrtMemcpy(value, 64, flag, 64, ACL_MEMCPY_DEVICE_TO_HOST));
  for (char byte : value) EXPECT_EQ(byte, 0);
}

}  // namespace
}  // namespace acltape::device
