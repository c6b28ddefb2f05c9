// Programs in which one call fails: a wait in a capture, an index out of range in eager work and in
// a graph, no memory left, an update with too few kernels. With --right each does the same without
// the mistake. With --handled the program expects the failure of memory and takes less.
//
//   failed_calls capture|gather|graph|memory|update [--right|--handled]
#include <initializer_list>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_index_select.h"
#include "aclnnop/aclnn_mul.h"
#include "sample.h"

namespace {

constexpr int64_t kRows = 8;
constexpr int64_t kColumns = 4;
constexpr size_t kBytes = kRows * kColumns * sizeof(float);

struct Table {
  void* rows = MallocDevice(kBytes);
  void* index = MallocDevice(2 * sizeof(int64_t));
  void* out = MallocDevice(kBytes);
  aclTensor* self = nullptr;
  aclTensor* picked = nullptr;
  aclTensor* indices = nullptr;

  Table() {
    const int64_t sizes[] = {kRows, kColumns}, few[] = {2, kColumns}, two = 2;
    self = MakeTensor(ACL_FLOAT, 2, sizes, rows);
    picked = MakeTensor(ACL_FLOAT, 2, few, out);
    indices = MakeTensor(ACL_INT64, 1, &two, index);
    CHECK_ACL(aclrtMemset(rows, kBytes, 0, kBytes));
  }
  void Index(int64_t second) const {
    const int64_t numbers[] = {1, second};
    CHECK_ACL(
        aclrtMemcpy(index, sizeof(numbers), numbers, sizeof(numbers), ACL_MEMCPY_HOST_TO_DEVICE));
  }
};

void Gather(aclrtStream stream, bool right) {
  const Table table;
  table.Index(right ? 3 : 11);
  RUN_OP(stream, aclnnIndexSelect, table.self, 0, table.indices, table.picked);
  CHECK_ACL(aclrtSynchronizeStream(stream));
}

void GatherInAGraph(aclrtStream stream, bool right) {
  const Table table;
  aclmdlRI model = nullptr;
  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  RUN_OP(stream, aclnnIndexSelect, table.self, 0, table.indices, table.picked);
  CHECK_ACL(aclmdlRICaptureEnd(stream, &model));
  for (const int64_t index : {int64_t{2}, right ? int64_t{3} : int64_t{11}}) {
    table.Index(index);
    CHECK_ACL(aclmdlRIExecuteAsync(model, stream));
    CHECK_ACL(aclrtSynchronizeStream(stream));
  }
}

void WaitInACapture(aclrtStream stream, bool right) {
  void* block = MallocDevice(kBytes);
  aclTensor* tensor = MakeVector(kRows, block);
  aclmdlRI model = nullptr;
  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  RUN_OP(stream, aclnnMul, tensor, tensor, tensor);
  if (!right) CHECK_ACL(aclrtSynchronizeStream(stream));
  CHECK_ACL(aclmdlRICaptureEnd(stream, &model));
  CHECK_ACL(aclmdlRIExecuteAsync(model, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
}

void TakeMemory(aclrtStream stream, bool right, bool handled) {
  size_t available = 0, total = 0;
  CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM, &available, &total));
  void* block = nullptr;
  size_t bytes = right ? kBytes : total + 1;
  if (handled && aclrtMalloc(&block, bytes, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) {
    bytes = kBytes;
  }
  CHECK_ACL(aclrtMalloc(&block, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  aclTensor* tensor = MakeVector(kRows, block);
  RUN_OP(stream, aclnnMul, tensor, tensor, tensor);
  CHECK_ACL(aclrtSynchronizeStream(stream));
}

void Update(aclrtStream stream, bool right) {
  aclrtStream other = nullptr;
  CHECK_ACL(aclrtCreateStream(&other));
  void* block = MallocDevice(kBytes);
  aclTensor* tensor = MakeVector(kRows, block);
  aclScalar* two = MakeScalar(2);
  aclmdlRI model = nullptr;
  aclrtTaskGrp group = nullptr;
  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  CHECK_ACL(aclmdlRICaptureTaskGrpBegin(stream));
  for (int i = 0; i < 2; ++i) RUN_OP(stream, aclnnMuls, tensor, two, tensor);
  CHECK_ACL(aclmdlRICaptureTaskGrpEnd(stream, &group));
  CHECK_ACL(aclmdlRICaptureEnd(stream, &model));
  CHECK_ACL(aclmdlRICaptureTaskUpdateBegin(other, group));
  for (int i = 0; i < (right ? 2 : 1); ++i) RUN_OP(other, aclnnMuls, tensor, two, tensor);
  CHECK_ACL(aclmdlRICaptureTaskUpdateEnd(other));
  CHECK_ACL(aclrtSynchronizeStream(other));
  CHECK_ACL(aclmdlRIExecuteAsync(model, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
}

}  // namespace

int main(int count, char** words) {
  CHECK(count > 1);
  const auto is = [&](int word, const char* text) {
    return word < count && strcmp(words[word], text) == 0;
  };
  const bool right = is(2, "--right");
  aclrtStream stream = nullptr;
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  CHECK_ACL(aclrtCreateStream(&stream));
  if (is(1, "capture")) WaitInACapture(stream, right);
  if (is(1, "gather")) Gather(stream, right);
  if (is(1, "graph")) GatherInAGraph(stream, right);
  if (is(1, "memory")) TakeMemory(stream, right, is(2, "--handled"));
  if (is(1, "update")) Update(stream, right);
  puts("done");
  return 0;
}
