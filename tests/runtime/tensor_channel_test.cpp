// Channels of tensors (section 32 of the rules).
#include <chrono>
#include <cstring>
#include <numeric>

#include "acl/acl_tdt.h"
#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

class TensorChannel : public SoftDevice {
 protected:
  void SetUp() override {
    SoftDevice::SetUp();
    channel_ = acltdtCreateChannelWithCapacity(0, "test", 2);
    ASSERT_NE(channel_, nullptr);
  }
  void TearDown() override {
    EXPECT_OK(acltdtDestroyChannel(channel_));
    SoftDevice::TearDown();
  }

  // A dataset of one vector over `values`.
  static acltdtDataset* Vector(std::vector<float>& values) {
    const auto count = static_cast<int64_t>(values.size());
    acltdtDataset* dataset = acltdtCreateDataset();
    acltdtDataItem* item = acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, &count, 1, ACL_FLOAT,
                                                values.data(), values.size() * sizeof(float));
    EXPECT_OK(acltdtAddDataItem(dataset, item));
    return dataset;
  }
  static void Destroy(acltdtDataset* dataset) {
    for (size_t i = 0; i < acltdtGetDatasetSize(dataset); ++i) {
      EXPECT_OK(acltdtDestroyDataItem(acltdtGetDataItem(dataset, i)));
    }
    EXPECT_OK(acltdtDestroyDataset(dataset));
  }
  aclError Send(std::vector<float> values, int32_t timeout = 0) {
    acltdtDataset* dataset = Vector(values);
    const aclError code = acltdtSendTensor(channel_, dataset, timeout);
    Destroy(dataset);
    return code;
  }
  std::vector<float> Receive(int32_t timeout = 0) {
    acltdtDataset* dataset = acltdtCreateDataset();
    std::vector<float> values;
    if (acltdtReceiveTensor(channel_, dataset, timeout) == ACL_SUCCESS) {
      acltdtDataItem* item = acltdtGetDataItem(dataset, 0);
      values.resize(acltdtGetDataSizeFromItem(item) / sizeof(float));
      std::memcpy(values.data(), acltdtGetDataAddrFromItem(item), values.size() * sizeof(float));
    }
    EXPECT_OK(acltdtDestroyDataset(dataset));
    return values;
  }
  size_t Size() {
    size_t size = 99;
    EXPECT_OK(acltdtQueryChannelSize(channel_, &size));
    return size;
  }

  acltdtChannelHandle* channel_ = nullptr;
};

TEST_F(TensorChannel, TDT_01_AnItemTellsWhatItWasMadeOf) {
  const int64_t dims[] = {2, 3};
  float data[6] = {};
  acltdtDataItem* item =
      acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, dims, 2, ACL_FLOAT, data, sizeof(data));
  EXPECT_EQ(acltdtGetTensorTypeFromItem(item), ACL_TENSOR_DATA_TENSOR);
  EXPECT_EQ(acltdtGetDataTypeFromItem(item), ACL_FLOAT);
  EXPECT_EQ(acltdtGetDataAddrFromItem(item), data);
  EXPECT_EQ(acltdtGetDataSizeFromItem(item), sizeof(data));
  EXPECT_EQ(acltdtGetDimNumFromItem(item), 2u);
  int64_t told[3] = {};
  EXPECT_OK(acltdtGetDimsFromItem(item, told, 3));
  EXPECT_EQ(told[0], 2);
  EXPECT_EQ(told[1], 3);
  EXPECT_CODE(100000, acltdtGetDimsFromItem(item, told, 1));
  size_t slices = 0, slice = 9;
  EXPECT_OK(acltdtGetSliceInfoFromItem(item, &slices, &slice));
  EXPECT_EQ(slices, 1u);
  EXPECT_EQ(slice, 0u);
  EXPECT_OK(acltdtDestroyDataItem(item));
  EXPECT_CODE(107017, acltdtDestroyDataItem(item));
}

TEST_F(TensorChannel, TDT_01_ItemsThatMakeNoSenseAreRefused) {
  const int64_t dim = 1;
  float data = 0;
  const auto make = [](acltdtTensorType type, const int64_t* dims, size_t count, void* memory) {
    return acltdtCreateDataItem(type, dims, count, ACL_FLOAT, memory, 4);
  };
  EXPECT_EQ(make(ACL_TENSOR_DATA_TENSOR, &dim, 0, &data), nullptr);
  EXPECT_EQ(make(ACL_TENSOR_DATA_TENSOR, nullptr, 1, &data), nullptr);
  EXPECT_EQ(make(ACL_TENSOR_DATA_TENSOR, &dim, 1, nullptr), nullptr);
  EXPECT_EQ(make(ACL_TENSOR_DATA_TENSOR, &dim, 129, &data), nullptr);
  EXPECT_EQ(make(ACL_TENSOR_DATA_END_OF_SEQUENCE, &dim, 1, nullptr), nullptr);
  EXPECT_EQ(make(ACL_TENSOR_DATA_UNDEFINED, nullptr, 0, nullptr), nullptr);
  EXPECT_NE(std::string(aclGetRecentErrMsg()).find("acltdtCreateDataItem"), std::string::npos);
  acltdtDataItem* end = make(ACL_TENSOR_DATA_END_OF_SEQUENCE, nullptr, 0, nullptr);
  ASSERT_NE(end, nullptr);
  EXPECT_OK(acltdtDestroyDataItem(end));
}

TEST_F(TensorChannel, TDT_02_ADatasetRefersToOneKindOfMemory) {
  std::vector<float> values(4);
  acltdtDataset* dataset = Vector(values);
  void* device = nullptr;
  ASSERT_OK(aclrtMalloc(&device, 16, ACL_MEM_MALLOC_HUGE_FIRST));
  const int64_t four = 4;
  acltdtDataItem* other =
      acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, &four, 1, ACL_FLOAT, device, 16);
  EXPECT_CODE(100000, acltdtAddDataItem(dataset, other));
  EXPECT_EQ(acltdtGetDatasetSize(dataset), 1u);
  EXPECT_EQ(acltdtGetDataItem(dataset, 1), nullptr);
  EXPECT_STREQ(acltdtGetDatasetName(dataset), "");
  EXPECT_OK(acltdtDestroyDataItem(other));
  Destroy(dataset);
}

TEST_F(TensorChannel, TDT_03_WhatIsReceivedIsWhatWasSentEvenIfItsMemoryChangedMeanwhile) {
  std::vector<float> values = {1, 2, 3};
  acltdtDataset* sent = Vector(values);
  acltdtDataItem* end =
      acltdtCreateDataItem(ACL_TENSOR_DATA_END_OF_SEQUENCE, nullptr, 0, ACL_FLOAT, nullptr, 0);
  EXPECT_OK(acltdtAddDataItem(sent, end));
  EXPECT_OK(acltdtSendTensor(channel_, sent, -1));
  values = {7, 8, 9};
  Destroy(sent);

  acltdtDataset* received = acltdtCreateDataset();
  EXPECT_OK(acltdtReceiveTensor(channel_, received, -1));
  EXPECT_STREQ(acltdtGetDatasetName(received), "test");
  ASSERT_EQ(acltdtGetDatasetSize(received), 2u);
  acltdtDataItem* item = acltdtGetDataItem(received, 0);
  ASSERT_EQ(acltdtGetDataSizeFromItem(item), 12u);
  const auto* got = static_cast<const float*>(acltdtGetDataAddrFromItem(item));
  EXPECT_EQ(std::vector<float>(got, got + 3), (std::vector<float>{1, 2, 3}));
  int64_t dim = 0;
  EXPECT_OK(acltdtGetDimsFromItem(item, &dim, 1));
  EXPECT_EQ(dim, 3);
  EXPECT_EQ(acltdtGetTensorTypeFromItem(acltdtGetDataItem(received, 1)),
            ACL_TENSOR_DATA_END_OF_SEQUENCE);
  // A received item belongs to its data set.
  EXPECT_CODE(100000, acltdtDestroyDataItem(item));
  EXPECT_CODE(200006, acltdtAddDataItem(received, item));
  EXPECT_CODE(100000, acltdtReceiveTensor(channel_, received, 0));
  EXPECT_OK(acltdtDestroyDataset(received));
  EXPECT_EQ(acltdtGetDataAddrFromItem(item), nullptr);
}

TEST_F(TensorChannel, TDT_03_TensorsOfTheDeviceComeAsBytesOfTheHost) {
  void* device = nullptr;
  ASSERT_OK(aclrtMalloc(&device, 16, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_OK(aclrtMemset(device, 16, 0x11, 16));
  const int64_t four = 4;
  acltdtDataset* dataset = acltdtCreateDataset();
  acltdtDataItem* item =
      acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, &four, 1, ACL_INT32, device, 16);
  EXPECT_OK(acltdtAddDataItem(dataset, item));
  EXPECT_OK(acltdtSendTensor(channel_, dataset, 0));
  ASSERT_OK(aclrtFree(device));
  EXPECT_CODE(107000, acltdtSendTensor(channel_, dataset, 0));
  acltdtDataset* received = acltdtCreateDataset();
  EXPECT_OK(acltdtReceiveTensor(channel_, received, 0));
  const auto* got =
      static_cast<const int32_t*>(acltdtGetDataAddrFromItem(acltdtGetDataItem(received, 0)));
  EXPECT_EQ(got[3], 0x11111111);
  EXPECT_OK(acltdtDestroyDataset(received));
  Destroy(dataset);
}

TEST_F(TensorChannel, TDT_04_AFullChannelAndAnEmptyOneAnswerAtOnceOrInTime) {
  EXPECT_OK(Send({1}));
  EXPECT_EQ(Size(), 1u);
  EXPECT_OK(Send({2}));
  EXPECT_CODE(207014, Send({3}));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_CODE(207014, Send({3}, 30));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
  EXPECT_EQ(Size(), 2u);
  EXPECT_EQ(Receive(), (std::vector<float>{1}));
  EXPECT_EQ(Receive(), (std::vector<float>{2}));
  EXPECT_EQ(Size(), 0u);
  acltdtDataset* dataset = acltdtCreateDataset();
  EXPECT_CODE(207013, acltdtReceiveTensor(channel_, dataset, 0));
  EXPECT_CODE(207013, acltdtReceiveTensor(channel_, dataset, 5));
  EXPECT_CODE(100000, acltdtReceiveTensor(channel_, dataset, -2));
  EXPECT_CODE(100000, acltdtSendTensor(channel_, dataset, 0));  // it is empty
  EXPECT_OK(acltdtDestroyDataset(dataset));
}

TEST_F(TensorChannel, TDT_04_TwoThreadsPassALongSequenceThroughASmallChannel) {
  constexpr int kBatches = 500;
  std::thread sender([this] {
    for (int i = 0; i < kBatches; ++i) {
      std::vector<float> values(8);
      std::iota(values.begin(), values.end(), static_cast<float>(i));
      ASSERT_OK(Send(values, -1));
    }
  });
  for (int i = 0; i < kBatches; ++i) {
    const std::vector<float> values = Receive(-1);
    ASSERT_EQ(values.size(), 8u);
    ASSERT_EQ(values[7], static_cast<float>(i + 7));
  }
  sender.join();
}

TEST_F(TensorChannel, TDT_04_ACleanedChannelIsEmptyAndHasRoomForWhoWaits) {
  EXPECT_OK(Send({1}));
  EXPECT_OK(Send({2}));
  std::thread sender([this] { EXPECT_OK(Send({3}, -1)); });
  EXPECT_OK(acltdtCleanChannel(channel_));
  sender.join();
  EXPECT_EQ(Receive(), (std::vector<float>{3}));
}

TEST_F(TensorChannel, TDT_05_AStoppedChannelWakesWhoWaitsAndKeepsWhatIsIn) {
  std::thread receiver([this] {
    acltdtDataset* dataset = acltdtCreateDataset();
    EXPECT_CODE(207013, acltdtReceiveTensor(channel_, dataset, -1));
    EXPECT_NE(std::string(aclGetRecentErrMsg()).find("was stopped"), std::string::npos);
    EXPECT_OK(acltdtDestroyDataset(dataset));
  });
  EXPECT_OK(acltdtStopChannel(channel_));
  receiver.join();
  EXPECT_OK(Send({4}, -1));
  EXPECT_EQ(Receive(-1), (std::vector<float>{4}));
}

TEST_F(TensorChannel, TDT_06_NamesAndCapacities) {
  EXPECT_EQ(acltdtCreateChannelWithCapacity(0, "test", 2), nullptr);  // the name is in use
  EXPECT_EQ(acltdtCreateChannelWithCapacity(0, "other", 1), nullptr);
  EXPECT_EQ(acltdtCreateChannelWithCapacity(0, "other", 8193), nullptr);
  EXPECT_EQ(acltdtCreateChannelWithCapacity(1, "other", 2), nullptr);  // there is no such device
  EXPECT_EQ(acltdtCreateChannelWithCapacity(0, std::string(128, 'x').c_str(), 2), nullptr);
  acltdtChannelHandle* other = acltdtCreateChannelWithCapacity(0, "other", 8192);
  ASSERT_NE(other, nullptr);
  EXPECT_OK(acltdtDestroyChannel(other));
  other = acltdtCreateChannelWithCapacity(0, "other", 2);  // the name is free again
  ASSERT_NE(other, nullptr);
  EXPECT_OK(acltdtDestroyChannel(other));
  EXPECT_CODE(107017, acltdtStopChannel(other));
}

TEST_F(TensorChannel, TDT_07_AChannelWithoutACapacityHasTwoEnds) {
  acltdtChannelHandle* in = acltdtCreateChannel(0, "pair");
  acltdtChannelHandle* out = acltdtCreateChannel(0, "TF_RECEIVE_pair");
  ASSERT_NE(in, nullptr);
  ASSERT_NE(out, nullptr);
  std::vector<float> values = {5, 6};
  acltdtDataset* sent = Vector(values);
  acltdtDataset* received = acltdtCreateDataset();
  EXPECT_CODE(100000, acltdtSendTensor(in, sent, 0));  // it waits for ever or not at all
  EXPECT_OK(acltdtSendTensor(in, sent, -1));
  EXPECT_CODE(100000, acltdtReceiveTensor(in, received, -1));
  EXPECT_OK(acltdtReceiveTensor(out, received, -1));
  EXPECT_EQ(acltdtGetDatasetSize(received), 1u);
  size_t size = 0;
  EXPECT_CODE(200006, acltdtQueryChannelSize(in, &size));
  EXPECT_CODE(200006, acltdtCleanChannel(in));
  acltdtDataset* nothing = acltdtCreateDataset();
  std::thread receiver([&] { EXPECT_CODE(500001, acltdtReceiveTensor(out, nothing, -1)); });
  EXPECT_OK(acltdtStopChannel(out));
  receiver.join();
  EXPECT_OK(acltdtDestroyDataset(nothing));
  EXPECT_OK(acltdtDestroyDataset(received));
  Destroy(sent);
  EXPECT_OK(acltdtDestroyChannel(in));
  EXPECT_OK(acltdtDestroyChannel(out));
}

}  // namespace
}  // namespace acltape::device
