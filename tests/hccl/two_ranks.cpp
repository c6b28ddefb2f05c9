// A program of two ranks, each a process: two_ranks [captured | group]. Every kind of collective,
// and work of the device between them; with "group" one group of messages of two communicators.
// Prints the last sums.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "tests/hccl/ranks_program.h"

namespace {

constexpr uint64_t kCount = 1000, kBytes = kCount * sizeof(float);

void Work(uint32_t rank, float* a, float* b, HcclComm comm, aclrtStream stream) {
  constexpr HcclDataType kFloat = HCCL_DATA_TYPE_FP32;
  constexpr HcclReduceOp kSum = HCCL_REDUCE_SUM;
  const uint64_t counts[2] = {400, 600}, places[2] = {0, 400}, same[2] = {500, 500};
  const uint64_t halves[2] = {0, 500};
  CHECK(HcclAllReduce(a, a, kCount, kFloat, kSum, comm, stream));
  CHECK(HcclAllGather(a, b, kCount, kFloat, comm, stream));
  CHECK(aclrtReduceAsync(a, b + kCount / 2, kBytes, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT,
                         stream, nullptr));
  CHECK(HcclReduceScatter(b, a, kCount, kFloat, HCCL_REDUCE_MAX, comm, stream));
  CHECK(HcclBroadcast(a, kCount / 2, kFloat, 1, comm, stream));
  CHECK(HcclReduce(a, a, kCount, kFloat, kSum, 0, comm, stream));
  CHECK(HcclScatter(b, a, kCount, kFloat, 0, comm, stream));
  CHECK(HcclAlltoAll(a, kCount / 2, kFloat, b, kCount / 2, kFloat, comm, stream));
  CHECK(HcclAllGatherV(a, counts[rank], b, counts, places, kFloat, comm, stream));
  CHECK(HcclReduceScatterV(b, counts, places, a, counts[rank], kFloat, kSum, comm, stream));
  CHECK(HcclAlltoAllV(a, same, halves, kFloat, b, same, halves, kFloat, comm, stream));
  // Row i has what rank i sends to each rank.
  uint64_t matrix[4] = {100, 300, 200, 150};
  CHECK(HcclAlltoAllVC(a, matrix, kFloat, b, kFloat, comm, stream));
  const uint32_t other = 1 - rank;
  HcclSendRecvItem items[] = {{HCCL_SEND, a + 400, 300, kFloat, other},
                              {HCCL_RECV, b + 500, 300, kFloat, other},
                              {HCCL_RECV, b + 900, 100, HCCL_DATA_TYPE_INT32, other},
                              {HCCL_SEND, a, 100, HCCL_DATA_TYPE_INT32, other},
                              {HCCL_SEND, a, 0, kFloat, other},
                              {HCCL_RECV, b, 0, kFloat, other}};
  CHECK(HcclBatchSendRecv(items, std::size(items), comm, stream));
  // The same by a group, whose messages begin at its end.
  CHECK(HcclGroupStart());
  CHECK(HcclRecv(b + 700, 50, kFloat, other, comm, stream));
  CHECK(HcclSend(a + 30, 50, kFloat, other, comm, stream));
  CHECK(HcclGroupEnd());
  // The arrays live only during the calls.
  std::fill(std::begin(matrix), std::end(matrix), 7);
  std::fill(std::begin(items), std::end(items), HcclSendRecvItem{});
  if (rank == 0) {
    CHECK(HcclSend(a, kCount, kFloat, 1, comm, stream));
  } else {
    CHECK(HcclRecv(b, kCount, kFloat, 0, comm, stream));
  }
  CHECK(HcclBarrier(comm, stream));
  CHECK(aclrtReduceAsync(b + kCount, a, kBytes, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, stream,
                         nullptr));
}

// A group within a group, whose messages are of two batches. Both begin when the outer one ends.
void Group(const ranks_program::Ranks& ranks, float* a, float* b, HcclComm comm,
           aclrtStream stream) {
  constexpr HcclDataType kFloat = HCCL_DATA_TYPE_FP32;
  const uint32_t other = 1 - ranks.rank;
  HcclComm second = ranks.Join(1);
  aclrtStream second_stream = nullptr;
  CHECK(aclrtCreateStream(&second_stream));
  CHECK(HcclGroupStart());
  CHECK(HcclRecv(b, 100, kFloat, other, comm, stream));
  CHECK(HcclGroupStart());
  CHECK(HcclSend(a, 30, kFloat, other, second, second_stream));
  CHECK(HcclRecv(b + 200, 30, kFloat, other, second, second_stream));
  CHECK(HcclGroupEnd());
  CHECK(HcclSend(a + 50, 20, kFloat, other, second, second_stream));
  CHECK(HcclRecv(b + 300, 20, kFloat, other, second, second_stream));
  CHECK(HcclSend(a + 100, 100, kFloat, other, comm, stream));
  // A message that is refused is none of the group.
  if (HcclSend(a, 10, kFloat, 7, comm, stream) != HCCL_E_PARA) std::exit(1);
  // Nothing has begun yet, so the rank itself may still write what it receives.
  CHECK(aclrtMemsetAsync(b, 400, 0, 400, stream));
  CHECK(HcclGroupEnd());
  CHECK(aclrtSynchronizeStream(second_stream));
  CHECK(aclrtSynchronizeStream(stream));
  CHECK(HcclCommDestroy(second));
}

}  // namespace

int main(int count, char** words) {
  const ranks_program::Ranks ranks;
  const uint32_t rank = ranks.rank;
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));
  HcclComm comm = ranks.Join(0);
  float *a = ranks_program::Allocate(kBytes), *b = ranks_program::Allocate(2 * kBytes);
  std::vector<float> host(kCount);
  for (uint64_t i = 0; i < kCount; ++i) host[i] = static_cast<float>(i % 7 + rank);
  CHECK(aclrtMemcpy(a, kBytes, host.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  if (count > 1 && std::string(words[1]) == "group") {
    Group(ranks, a, b, comm, stream);
  } else if (count > 1) {
    aclmdlRI model = nullptr;
    CHECK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    Work(rank, a, b, comm, stream);
    CHECK(aclmdlRICaptureEnd(stream, &model));
    for (int i = 0; i < 2; ++i) CHECK(aclmdlRIExecuteAsync(model, stream));
    CHECK(aclrtSynchronizeStream(stream));
    CHECK(aclmdlRIDestroy(model));
  } else {
    for (int i = 0; i < 2; ++i) Work(rank, a, b, comm, stream);
    CHECK(aclrtSynchronizeStream(stream));
  }
  host.resize(2 * kCount);
  CHECK(aclrtMemcpy(host.data(), 2 * kBytes, b, 2 * kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  double sum = 0;
  for (const float value : host) sum += static_cast<double>(value);
  CHECK(HcclCommDestroy(comm));
  const int code = ranks.End();
  std::printf("rank %u: %.9g\n", rank, sum);
  return code;
}
