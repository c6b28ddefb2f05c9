// The end of work that a failed replay leaves behind.
#include "replayer/device/device_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "replayer/device/device.h"

namespace acltape::replayer {
namespace {

constexpr int kShortMs = 100;

class DeviceWorkTest : public ::testing::Test {
 protected:
  DeviceWorkTest() : device_(""), memory_(device_, Block::Kind::kDevice, 64) {
    device_.work().Fill(memory_.data(), 64, 0, 64, kNow).Check();
  }
  const DeviceWork& work() const { return device_.work(); }
  // Nobody writes the value.
  void WaitForEver(aclrtStream stream) {
    work().WaitForValue(memory_.data(), 1, ACL_STREAM_WAIT_VALUE_EQ, stream).Check();
  }

  Device device_;
  Block memory_;
};

TEST_F(DeviceWorkTest, AStreamThatWaitsForEverIsEndedAndTakesWorkAgain) {
  const OwnedStream stream = MakeStream(work());
  WaitForEver(stream.get());
  work().Fill(memory_.data() + 8, 8, 7, 8, stream.get()).Check();  // after the wait: dropped
  work().EndStream(stream.get(), kShortMs);
  work().WaitForStream(stream.get(), kShortMs).Check();
  EXPECT_EQ(memory_.data()[8], 0);
  work().Fill(memory_.data() + 8, 8, 9, 8, stream.get()).Check();
  work().WaitForStream(stream.get(), kShortMs).Check();
  EXPECT_EQ(memory_.data()[8], 9);
}

TEST_F(DeviceWorkTest, ADeviceWithSuchStreamsIsEnded) {
  const OwnedStream streams[] = {MakeStream(work()), MakeStream(work())};
  for (const OwnedStream& stream : streams) WaitForEver(stream.get());
  work().EndDevice(kShortMs);
  work().WaitForDevice(kShortMs).Check();
}

std::atomic<bool> host_work_done{false};

TEST_F(DeviceWorkTest, WorkThatEndsInTimeIsWaitedFor) {
  const OwnedStream stream = MakeStream(work());
  const auto slow = [](void*) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    host_work_done = true;
  };
  work().CallHost(slow, stream.get()).Check();
  work().EndStream(stream.get());
  EXPECT_TRUE(host_work_done);
}

}  // namespace
}  // namespace acltape::replayer
