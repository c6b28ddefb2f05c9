// A graph whose kernel gets new arguments between executions: task group and update.
//
// The graph waits, right before the task group, for an external event and resets it. Each step
// starts the graph first, rewrites the group on a second stream and then records the event there.
//
//   task_update
#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "sample.h"

namespace {

constexpr int64_t kCount = 512;
constexpr size_t kBytes = kCount * sizeof(float);

// The task group: scaled = x * factor, shifted = scaled + factor.
void SubmitGroup(aclrtStream stream, float factor, aclTensor* x, aclTensor* scaled,
                 aclTensor* shifted) {
  aclScalar* scalar = MakeScalar(factor);
  aclScalar* one = MakeScalar(1);
  RUN_OP(stream, aclnnMuls, x, scalar, scaled);
  RUN_OP(stream, aclnnAdds, scaled, scalar, one, shifted);
  CHECK_ACL(aclDestroyScalar(scalar));
  CHECK_ACL(aclDestroyScalar(one));
}

}  // namespace

int main() {
  aclrtStream stream = nullptr;
  aclrtStream update_stream = nullptr;
  aclrtEvent updated = nullptr;
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  CHECK_ACL(aclrtCreateStream(&stream));
  CHECK_ACL(aclrtCreateStream(&update_stream));
  CHECK_ACL(aclrtCreateEventWithFlag(&updated, ACL_EVENT_EXTERNAL));

  // Two inputs: an update can also move a kernel to another address.
  float host[kCount];
  void* blocks[5];
  aclTensor* tensors[5];  // two inputs, scaled, shifted, out
  for (int i = 0; i < 5; ++i) {
    blocks[i] = MallocDevice(kBytes);
    tensors[i] = MakeVector(kCount, blocks[i]);
  }
  for (int input = 0; input < 2; ++input) {
    for (int64_t i = 0; i < kCount; ++i) host[i] = static_cast<float>(i % 8 + 10 * input);
    CHECK_ACL(aclrtMemcpy(blocks[input], kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  }

  aclmdlRI model = nullptr;
  aclrtTaskGrp group = nullptr;
  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  CHECK_ACL(aclrtStreamWaitEvent(stream, updated));
  CHECK_ACL(aclrtResetEvent(updated, stream));
  CHECK_ACL(aclmdlRICaptureTaskGrpBegin(stream));
  SubmitGroup(stream, 1, tensors[0], tensors[2], tensors[3]);
  CHECK_ACL(aclmdlRICaptureTaskGrpEnd(stream, &group));
  CHECK(group != nullptr);
  RUN_OP(stream, aclnnMul, tensors[3], tensors[3], tensors[4]);
  CHECK_ACL(aclmdlRICaptureEnd(stream, &model));

  for (int step = 0; step < 5; ++step) {
    CHECK_ACL(aclmdlRIExecuteAsync(model, stream));

    float factor = static_cast<float>(step + 2);
    int input = step % 2;
    CHECK_ACL(aclmdlRICaptureTaskUpdateBegin(update_stream, group));
    SubmitGroup(update_stream, factor, tensors[input], tensors[2], tensors[3]);
    CHECK_ACL(aclmdlRICaptureTaskUpdateEnd(update_stream));
    CHECK_ACL(aclrtRecordEvent(updated, update_stream));

    CHECK_ACL(aclrtSynchronizeStream(stream));
    CHECK_ACL(aclrtMemcpy(host, kBytes, blocks[4], kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
    double sum = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      float shifted = static_cast<float>(i % 8 + 10 * input) * factor + factor;
      CHECK(host[i] == shifted * shifted);
      sum += host[i];
    }
    printf("step %d: %.0f\n", step, sum);
  }

  CHECK_ACL(aclrtSynchronizeStream(update_stream));
  CHECK_ACL(aclmdlRIDestroy(model));
  for (int i = 0; i < 5; ++i) {
    CHECK_ACL(aclDestroyTensor(tensors[i]));
    CHECK_ACL(aclrtFree(blocks[i]));
  }
  FreeWorkspaces();
  CHECK_ACL(aclrtDestroyEvent(updated));
  CHECK_ACL(aclrtDestroyStream(update_stream));
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("task_update: passed\n");
  return 0;
}
