// A program of two ranks, each a process, with operators that communicate:
// fused_ranks [captured | unnamed | given]. With "unnamed" and "given" no collective of HCCL runs
// on the group. With "given" the program chooses the group's name, so it does not ask for it.
// Prints the sums of what the operators wrote last.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "aclnnop/aclnn_all_gather_matmul.h"
#include "aclnnop/aclnn_matmul_all_reduce.h"
#include "aclnnop/aclnn_matmul_reduce_scatter.h"
#include "tests/hccl/ranks_program.h"

namespace {

constexpr int64_t kSide = 16, kAll = 2 * kSide;

struct Matrix {
  int64_t sizes[2], strides[2];
  void* memory = nullptr;
  aclTensor* tensor = nullptr;

  Matrix(int64_t rows, int64_t columns) : sizes{rows, columns}, strides{columns, 1} {
    memory = ranks_program::Allocate(Bytes());
    tensor = aclCreateTensor(sizes, 2, ACL_FLOAT16, strides, 0, ACL_FORMAT_ND, sizes, 2, memory);
  }
  uint64_t Bytes() const { return static_cast<uint64_t>(sizes[0] * sizes[1]) * 2; }
  void Fill(uint32_t rank) const {
    std::vector<aclFloat16> host(Bytes() / 2);
    for (size_t i = 0; i < host.size(); ++i) {
      host[i] = aclFloatToFloat16(static_cast<float>(i % 5 + rank) / 8);
    }
    CHECK(aclrtMemcpy(memory, Bytes(), host.data(), Bytes(), ACL_MEMCPY_HOST_TO_DEVICE));
  }
  double Sum() const {
    std::vector<aclFloat16> host(Bytes() / 2);
    CHECK(aclrtMemcpy(host.data(), Bytes(), memory, Bytes(), ACL_MEMCPY_DEVICE_TO_HOST));
    double sum = 0;
    for (const aclFloat16 value : host) sum += static_cast<double>(aclFloat16ToFloat(value));
    return sum;
  }
};

// Each of the operators here asks for no workspace.
#define RUN(op, stream, ...)                                     \
  do {                                                           \
    uint64_t bytes = 0;                                          \
    aclOpExecutor* executor = nullptr;                           \
    CHECK(op##GetWorkspaceSize(__VA_ARGS__, &bytes, &executor)); \
    CHECK(op(nullptr, bytes, executor, stream));                 \
  } while (false)

}  // namespace

int main(int count, char** words) {
  const std::string how = count > 1 ? words[1] : "";
  const ranks_program::Ranks ranks;
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));
  char group[COMM_NAME_MAX_LENGTH] = {};
  HcclComm comm = nullptr;
  if (how == "given") {
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    std::strcpy(group, "chosen");
    std::strcpy(config.hcclCommName, group);
    CHECK(HcclCommInitRootInfoConfig(2, &ranks.board->roots[0], ranks.rank, &config, &comm));
  } else {
    comm = ranks.Join(0);
    CHECK(HcclGetCommName(comm, group));
  }
  const Matrix x(kSide, kSide), weight(kSide, kSide), sum(kSide, kSide), rows(kAll, kSide);
  const Matrix product(kAll, kSide), part(kSide / 2, kSide);
  x.Fill(ranks.rank);
  weight.Fill(ranks.rank + 1);
  if (how != "unnamed" && how != "given") {
    CHECK(HcclAllReduce(x.memory, x.memory, x.Bytes() / 2, HCCL_DATA_TYPE_FP16, HCCL_REDUCE_SUM,
                        comm, stream));
  }
  aclmdlRI model = nullptr;
  if (how == "captured") CHECK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
  RUN(aclnnMatmulAllReduce, stream, x.tensor, weight.tensor, nullptr, group, "sum", 0, 1,
      sum.tensor);
  RUN(aclnnAllGatherMatmul, stream, sum.tensor, weight.tensor, nullptr, group, 0, 0, 1,
      product.tensor, rows.tensor);
  RUN(aclnnMatmulReduceScatter, stream, x.tensor, weight.tensor, nullptr, group, "sum", 0, 1,
      part.tensor);
  // Work of this rank alone reads what an operator received.
  CHECK(aclrtMemcpyAsync(x.memory, part.Bytes(), part.memory, part.Bytes(),
                         ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
  if (how == "captured") {
    CHECK(aclmdlRICaptureEnd(stream, &model));
    for (int i = 0; i < 2; ++i) CHECK(aclmdlRIExecuteAsync(model, stream));
  }
  CHECK(aclrtSynchronizeStream(stream));
  const double sums[] = {sum.Sum(), product.Sum(), rows.Sum(), part.Sum(), x.Sum()};
  if (model != nullptr) CHECK(aclmdlRIDestroy(model));
  CHECK(HcclCommDestroy(comm));
  const uint32_t rank = ranks.rank;
  const int code = ranks.End();
  std::printf("rank %u: %.3f %.3f %.3f %.3f %.3f\n", rank, sums[0], sums[1], sums[2], sums[3],
              sums[4]);
  return code;
}
