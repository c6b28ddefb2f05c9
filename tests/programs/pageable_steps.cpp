// Six steps of three operators. A step copies its input from plain memory of the program, which the
// interface did not allocate, and waits for the stream:
//
//   total += |input x scale|
//
//   pageable_steps
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_abs.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "sample.h"

namespace {

constexpr int64_t kCount = 256;
constexpr size_t kBytes = kCount * sizeof(float);
constexpr int kSteps = 6;

enum Block { kInput, kScale, kTotal, kBlocks };

}  // namespace

int main() {
  aclrtStream stream = nullptr;
  void* blocks[kBlocks];
  aclTensor* tensors[kBlocks];
  std::vector<float> host(kCount);

  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  CHECK_ACL(aclrtCreateStream(&stream));
  for (int i = 0; i < kBlocks; ++i) {
    blocks[i] = MallocDevice(kBytes);
    tensors[i] = MakeVector(kCount, blocks[i]);
  }
  for (int64_t i = 0; i < kCount; ++i) host[i] = static_cast<float>(i % 3 + 1);
  CHECK_ACL(aclrtMemcpy(blocks[kScale], kBytes, host.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK_ACL(aclrtMemset(blocks[kTotal], kBytes, 0, kBytes));
  aclScalar* one = MakeScalar(1);

  for (int step = 0; step < kSteps; ++step) {
    for (int64_t i = 0; i < kCount; ++i) host[i] = static_cast<float>((i + step) % 7 - 3);
    CHECK_ACL(aclrtMemcpy(blocks[kInput], kBytes, host.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
    RUN_OP(stream, aclnnInplaceMul, tensors[kInput], tensors[kScale]);
    RUN_OP(stream, aclnnAbs, tensors[kInput], tensors[kInput]);
    RUN_OP(stream, aclnnInplaceAdd, tensors[kTotal], tensors[kInput], one);
    CHECK_ACL(aclrtSynchronizeStream(stream));
  }
  CHECK_ACL(aclrtMemcpy(host.data(), kBytes, blocks[kTotal], kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  float sum = 0;
  for (const float value : host) sum += value;
  printf("sum: %.0f\n", sum);

  CHECK_ACL(aclDestroyScalar(one));
  for (int i = 0; i < kBlocks; ++i) {
    CHECK_ACL(aclDestroyTensor(tensors[i]));
    CHECK_ACL(aclrtFree(blocks[i]));
  }
  FreeWorkspaces();
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("pageable_steps: passed\n");
  return 0;
}
