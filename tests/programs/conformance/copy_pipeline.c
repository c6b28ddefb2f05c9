/* Two buffers, three streams: copy in, compute, copy out, each a step after the other. */
#include "acl/acl.h"
#include "aclnnop/aclnn_mul.h"
#include "session.h"

enum { kPieces = 6, kCount = 256, kBytes = kCount * 4 };

int main(void) {
  aclrtStream in = StartSession(), work = NULL, out = NULL;
  CHECK_ACL(aclrtCreateStream(&work));
  CHECK_ACL(aclrtCreateStream(&out));
  float* from = (float*)MallocPinned(kPieces * kBytes);
  float* to = (float*)MallocPinned(kPieces * kBytes);
  for (int i = 0; i < kPieces * kCount; ++i) from[i] = (float)(i % 97);
  void* blocks[2];
  aclTensor* tensors[2];
  aclrtEvent copied[2], computed[2], taken[2];
  for (int i = 0; i < 2; ++i) {
    blocks[i] = MallocDevice(kBytes);
    tensors[i] = MakeVector(kCount, blocks[i]);
    aclrtEvent* const events[3] = {&copied[i], &computed[i], &taken[i]};
    for (int k = 0; k < 3; ++k) CHECK_ACL(aclrtCreateEventExWithFlag(events[k], ACL_EVENT_SYNC));
  }
  for (int piece = 0; piece < kPieces; ++piece) {
    const int side = piece % 2;
    CHECK_ACL(aclrtStreamWaitEvent(in, taken[side]));
    CHECK_ACL(aclrtMemcpyAsync(blocks[side], kBytes, from + piece * kCount, kBytes,
                               ACL_MEMCPY_HOST_TO_DEVICE, in));
    CHECK_ACL(aclrtRecordEvent(copied[side], in));
    CHECK_ACL(aclrtStreamWaitEvent(work, copied[side]));
    RUN_OP(work, aclnnInplaceMul, tensors[side], tensors[side]);
    CHECK_ACL(aclrtRecordEvent(computed[side], work));
    CHECK_ACL(aclrtStreamWaitEvent(out, computed[side]));
    CHECK_ACL(aclrtMemcpyAsync(to + piece * kCount, kBytes, blocks[side], kBytes,
                               ACL_MEMCPY_DEVICE_TO_HOST, out));
    CHECK_ACL(aclrtRecordEvent(taken[side], out));
  }
  CHECK_ACL(aclrtSynchronizeStream(out));
  for (int i = 0; i < kPieces * kCount; ++i) CHECK(to[i] == from[i] * from[i]);
  for (int i = 0; i < 2; ++i) {
    CHECK_ACL(aclDestroyTensor(tensors[i]));
    CHECK_ACL(aclrtFree(blocks[i]));
    CHECK_ACL(aclrtDestroyEvent(copied[i]));
    CHECK_ACL(aclrtDestroyEvent(computed[i]));
    CHECK_ACL(aclrtDestroyEvent(taken[i]));
  }
  FreeWorkspaces();
  CHECK_ACL(aclrtFreeHost(from));
  CHECK_ACL(aclrtFreeHost(to));
  CHECK_ACL(aclrtDestroyStream(work));
  CHECK_ACL(aclrtDestroyStream(out));
  return EndSession(in);
}
