// Two processes: the child waits on the device for an event that the parent records, by the handle
// that the parent gives it (ACL_EVENT_IPC).
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "sample.h"

namespace {

constexpr int64_t kCount = 256;
constexpr size_t kBytes = kCount * sizeof(float);

// The sum of 2 * x + 1 for x[i] = start + i % 8. An event that is given is waited for in between;
// one that is to be recorded comes last.
double Work(float start, aclrtStream stream, aclrtEvent wait_for, aclrtEvent record) {
  auto* host = static_cast<float*>(MallocPinned(kBytes));
  void* blocks[3];
  aclTensor* tensors[3];
  for (int i = 0; i < 3; ++i) {
    blocks[i] = MallocDevice(kBytes);
    tensors[i] = MakeVector(kCount, blocks[i]);
  }
  aclScalar* one = MakeScalar(1);
  aclScalar* two = MakeScalar(2);
  for (int64_t i = 0; i < kCount; ++i) host[i] = start + static_cast<float>(i % 8);
  CHECK_ACL(aclrtMemcpyAsync(blocks[0], kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  RUN_OP(stream, aclnnMuls, tensors[0], two, tensors[1]);
  if (wait_for != nullptr) CHECK_ACL(aclrtStreamWaitEvent(stream, wait_for));
  RUN_OP(stream, aclnnAdds, tensors[1], one, one, tensors[2]);
  if (record != nullptr) CHECK_ACL(aclrtRecordEvent(record, stream));
  CHECK_ACL(aclrtMemcpyAsync(host, kBytes, blocks[2], kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  double sum = 0;
  for (int64_t i = 0; i < kCount; ++i) sum += host[i];
  for (aclTensor* tensor : tensors) CHECK_ACL(aclDestroyTensor(tensor));
  for (void* block : blocks) CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclDestroyScalar(one));
  CHECK_ACL(aclDestroyScalar(two));
  CHECK_ACL(aclrtFreeHost(host));
  return sum;
}

void Parent(int to_child, pid_t child) {
  aclrtStream stream = nullptr;
  CHECK_ACL(aclrtCreateStream(&stream));
  aclrtEvent event = nullptr;
  CHECK_ACL(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
  aclrtIpcEventHandle handle;
  CHECK_ACL(aclrtIpcGetEventHandle(event, &handle));
  const double sum = Work(1, stream, nullptr, event);
  CHECK(write(to_child, &handle, sizeof handle) == sizeof handle);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  printf("parent: %.0f\n", sum);
  CHECK_ACL(aclrtDestroyEvent(event));
  CHECK_ACL(aclrtDestroyStream(stream));
}

void Child(int from_parent) {
  aclrtStream stream = nullptr;
  CHECK_ACL(aclrtCreateStream(&stream));
  aclrtIpcEventHandle handle;
  CHECK(read(from_parent, &handle, sizeof handle) == sizeof handle);
  aclrtEvent event = nullptr;
  CHECK_ACL(aclrtIpcOpenEventHandle(handle, &event));
  printf("child: %.0f\n", Work(5, stream, event, nullptr));
  CHECK_ACL(aclrtDestroyEvent(event));
  CHECK_ACL(aclrtDestroyStream(stream));
}

}  // namespace

int main() {
  int ends[2];
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  close(ends[child == 0 ? 1 : 0]);  // so that the end of one is seen by the other
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  if (child == 0) {
    Child(ends[0]);
  } else {
    Parent(ends[1], child);
  }
  FreeWorkspaces();
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  if (child != 0) printf("shared_event: passed\n");
  return 0;
}
