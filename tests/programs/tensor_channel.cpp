// A tensor channel between two threads: one prepares batches on the host, the other computes with
// them on the device, until the end of the sequence.
//
//   tensor_channel
#include <cstring>

#include "acl/acl.h"
#include "acl/acl_tdt.h"
#include "aclnnop/aclnn_mul.h"
#include "sample.h"

namespace {

constexpr int kBatches = 6;
constexpr int64_t kRows = 16;
constexpr int64_t kColumns = 8;
constexpr size_t kBytes = kRows * kColumns * sizeof(float);

void* Produce(void* argument) {
  acltdtChannelHandle* channel = (acltdtChannelHandle*)argument;
  static float values[kRows * kColumns];
  const int64_t dims[] = {kRows, kColumns};
  for (int batch = 0; batch < kBatches; ++batch) {
    for (int64_t i = 0; i < kRows * kColumns; ++i) values[i] = (float)(batch + i % 5);
    acltdtDataset* dataset = acltdtCreateDataset();
    acltdtDataItem* item =
        acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, dims, 2, ACL_FLOAT, values, kBytes);
    CHECK(dataset != nullptr && item != nullptr);
    CHECK_ACL(acltdtAddDataItem(dataset, item));
    CHECK_ACL(acltdtSendTensor(channel, dataset, -1));
    CHECK_ACL(acltdtDestroyDataItem(item));
    CHECK_ACL(acltdtDestroyDataset(dataset));
  }
  acltdtDataset* last = acltdtCreateDataset();
  acltdtDataItem* end = acltdtCreateDataItem(ACL_TENSOR_DATA_END_OF_SEQUENCE, nullptr, 0,
                                             ACL_DT_UNDEFINED, nullptr, 0);
  CHECK_ACL(acltdtAddDataItem(last, end));
  CHECK_ACL(acltdtSendTensor(channel, last, -1));
  CHECK_ACL(acltdtDestroyDataItem(end));
  CHECK_ACL(acltdtDestroyDataset(last));
  return nullptr;
}

// The squares of the batch on the device; false at the end of the sequence.
bool Consume(acltdtChannelHandle* channel, aclrtStream stream, void* in, void* out, float* host,
             int batch) {
  acltdtDataset* dataset = acltdtCreateDataset();
  CHECK_ACL(acltdtReceiveTensor(channel, dataset, -1));
  CHECK(acltdtGetDatasetSize(dataset) == 1);
  acltdtDataItem* item = acltdtGetDataItem(dataset, 0);
  const bool is_tensor = acltdtGetTensorTypeFromItem(item) == ACL_TENSOR_DATA_TENSOR;
  if (is_tensor) {
    int64_t dims[2];
    CHECK(acltdtGetDataTypeFromItem(item) == ACL_FLOAT);
    CHECK(acltdtGetDimNumFromItem(item) == 2);
    CHECK_ACL(acltdtGetDimsFromItem(item, dims, 2));
    CHECK(dims[0] == kRows && dims[1] == kColumns);
    CHECK(acltdtGetDataSizeFromItem(item) == kBytes);
    memcpy(host, acltdtGetDataAddrFromItem(item), kBytes);
    aclTensor* input = MakeTensor(ACL_FLOAT, 2, dims, in);
    aclTensor* output = MakeTensor(ACL_FLOAT, 2, dims, out);
    CHECK_ACL(aclrtMemcpyAsync(in, kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    RUN_OP(stream, aclnnMul, input, input, output);
    CHECK_ACL(aclrtMemcpyAsync(host, kBytes, out, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    CHECK_ACL(aclrtSynchronizeStream(stream));
    double sum = 0;
    for (int64_t i = 0; i < kRows * kColumns; ++i) sum += host[i];
    printf("batch %d: %.0f\n", batch, sum);
    CHECK_ACL(aclDestroyTensor(input));
    CHECK_ACL(aclDestroyTensor(output));
  }
  CHECK_ACL(acltdtDestroyDataset(dataset));
  return is_tensor;
}

}  // namespace

int main() {
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK_ACL(aclrtCreateStream(&stream));
  acltdtChannelHandle* channel = acltdtCreateChannelWithCapacity(0, "batches", 2);
  CHECK(channel != nullptr);
  float* host = (float*)MallocPinned(kBytes);
  void* in = MallocDevice(kBytes);
  void* out = MallocDevice(kBytes);

  pthread_t producer;
  CHECK(pthread_create(&producer, nullptr, Produce, channel) == 0);
  int batch = 0;
  while (Consume(channel, stream, in, out, host, batch)) ++batch;
  CHECK(pthread_join(producer, nullptr) == 0);
  CHECK(batch == kBatches);

  size_t left = 1;
  CHECK_ACL(acltdtQueryChannelSize(channel, &left));
  CHECK(left == 0);
  acltdtDataset* nothing = acltdtCreateDataset();
  CHECK(acltdtReceiveTensor(channel, nothing, 0) == ACL_ERROR_RT_QUEUE_EMPTY);
  CHECK_ACL(acltdtDestroyDataset(nothing));
  CHECK_ACL(acltdtStopChannel(channel));
  CHECK_ACL(acltdtDestroyChannel(channel));
  FreeWorkspaces();
  CHECK_ACL(aclrtFree(in));
  CHECK_ACL(aclrtFree(out));
  CHECK_ACL(aclrtFreeHost(host));
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("tensor_channel: passed\n");
  return 0;
}
