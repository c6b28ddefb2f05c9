// Ranks of a communicator as threads of the test, each with a device and a stream of its own.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "hccl/hccl.h"
#include "tests/runtime/soft_device_test.h"

namespace acltape::hccl {

struct Rank {
  uint32_t rank = 0, ranks = 0;
  HcclComm comm = nullptr;
  aclrtStream stream = nullptr;

  // Device memory with these bytes; never freed.
  void* Upload(const std::vector<char>& bytes) const {
    void* memory = nullptr;
    EXPECT_OK(aclrtMalloc(&memory, bytes.size() + 1, ACL_MEM_MALLOC_HUGE_FIRST));
    EXPECT_OK(
        aclrtMemcpy(memory, bytes.size(), bytes.data(), bytes.size(), ACL_MEMCPY_HOST_TO_DEVICE));
    return memory;
  }
  template <typename T>
  T* UploadAll(const std::vector<T>& values) const {
    const char* first = reinterpret_cast<const char*>(values.data());
    return static_cast<T*>(Upload({first, first + values.size() * sizeof(T)}));
  }
  template <typename T>
  std::vector<T> Download(const T* memory, size_t count) const {
    std::vector<T> values(count);
    EXPECT_OK(aclrtMemcpy(values.data(), count * sizeof(T), memory, count * sizeof(T),
                          ACL_MEMCPY_DEVICE_TO_HOST));
    return values;
  }
};

// Runs the body as each rank of a new communicator.
inline void OnRanks(uint32_t ranks, const std::function<void(Rank&)>& body) {
  const aclError begun = aclInit(nullptr);
  ASSERT_TRUE(begun == ACL_SUCCESS || begun == ACL_ERROR_REPEAT_INITIALIZE) << begun;
  std::vector<int32_t> devices;
  for (uint32_t i = 0; i < ranks; ++i) devices.push_back(static_cast<int32_t>(i));
  std::vector<HcclComm> comms(ranks);
  ASSERT_EQ(HcclCommInitAll(ranks, devices.data(), comms.data()), HCCL_SUCCESS);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < ranks; ++i) {
    threads.emplace_back([&, i] {
      Rank rank{i, ranks, comms[i], nullptr};
      EXPECT_OK(aclrtSetDevice(static_cast<int32_t>(i)));
      EXPECT_OK(aclrtCreateStream(&rank.stream));
      body(rank);
      EXPECT_OK(aclrtDestroyStream(rank.stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (HcclComm comm : comms) EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
}

// More devices than the soft device has by default. To be called before any other call.
inline void ShowDevices(const char* count) { setenv("ACLTAPE_SOFT_DEVICES", count, 1); }

}  // namespace acltape::hccl
