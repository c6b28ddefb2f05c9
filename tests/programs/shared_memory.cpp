// Two processes share device memory: the parent computes into a block whose key the child imports.
// The child goes on in the same block. Two notifies order what the devices of both do.
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "sample.h"

namespace {

constexpr int64_t kCount = 256;
constexpr size_t kBytes = kCount * sizeof(float);
constexpr size_t kKeyBytes = 65;

struct Keys {
  char memory[kKeyBytes];
  char ready[kKeyBytes];  // the parent's part is done
  char done[kKeyBytes];   // the child's part is done
};

template <typename T>
void Send(int to, const T& value) {
  CHECK(write(to, &value, sizeof value) == sizeof value);
}

template <typename T>
T Receive(int from) {
  T value;
  CHECK(read(from, &value, sizeof value) == sizeof value);
  return value;
}

double Sum(void* block, aclrtStream stream) {
  auto* host = static_cast<float*>(MallocPinned(kBytes));
  CHECK_ACL(aclrtMemcpyAsync(host, kBytes, block, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  double sum = 0;
  for (int64_t i = 0; i < kCount; ++i) sum += host[i];
  CHECK_ACL(aclrtFreeHost(host));
  return sum;
}

aclrtNotify ExportedNotify(int32_t reader, char* key) {
  aclrtNotify notify = nullptr;
  CHECK_ACL(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT));
  CHECK_ACL(aclrtNotifyGetExportKey(notify, key, kKeyBytes, ACL_RT_NOTIFY_EXPORT_FLAG_DEFAULT));
  CHECK_ACL(aclrtNotifySetImportPid(notify, &reader, 1));
  return notify;
}

void Parent(aclrtStream stream, int from, int to) {
  auto child = Receive<int32_t>(from);
  Keys keys;
  void* block = MallocDevice(kBytes);
  void* input = MallocDevice(kBytes);
  CHECK_ACL(aclrtIpcMemGetExportKey(block, kBytes, keys.memory, kKeyBytes,
                                    ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT));
  CHECK_ACL(aclrtIpcMemSetImportPid(keys.memory, &child, 1));
  aclrtNotify ready = ExportedNotify(child, keys.ready);
  aclrtNotify done = ExportedNotify(child, keys.done);

  auto* host = static_cast<float*>(MallocPinned(kBytes));
  for (int64_t i = 0; i < kCount; ++i) host[i] = static_cast<float>(1 + i % 8);
  CHECK_ACL(aclrtMemcpyAsync(input, kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  aclTensor* x = MakeVector(kCount, input);
  aclTensor* y = MakeVector(kCount, block);
  aclScalar* two = MakeScalar(2);
  RUN_OP(stream, aclnnMuls, x, two, y);
  CHECK_ACL(aclrtRecordNotify(ready, stream));
  CHECK_ACL(aclrtWaitAndResetNotify(done, stream, 0));
  Send(to, keys);
  printf("parent: %.0f\n", Sum(block, stream));
  fflush(stdout);
  Send(to, char{1});
  CHECK(Receive<char>(from) == 2);  // the child has closed it
  CHECK_ACL(aclrtIpcMemClose(keys.memory));

  CHECK_ACL(aclDestroyTensor(x));
  CHECK_ACL(aclDestroyTensor(y));
  CHECK_ACL(aclDestroyScalar(two));
  CHECK_ACL(aclrtFreeHost(host));
  CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtFree(input));
  CHECK_ACL(aclrtDestroyNotify(ready));
  CHECK_ACL(aclrtDestroyNotify(done));
}

void Child(aclrtStream stream, int from, int to) {
  int32_t own = 0;
  CHECK_ACL(aclrtDeviceGetBareTgid(&own));
  Send(to, own);
  const auto keys = Receive<Keys>(from);
  void* shared = nullptr;
  aclrtNotify ready = nullptr;
  aclrtNotify done = nullptr;
  CHECK_ACL(aclrtIpcMemImportByKey(&shared, keys.memory, ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT));
  CHECK_ACL(aclrtNotifyImportByKey(&ready, keys.ready, ACL_RT_NOTIFY_IMPORT_FLAG_DEFAULT));
  CHECK_ACL(aclrtNotifyImportByKey(&done, keys.done, ACL_RT_NOTIFY_IMPORT_FLAG_DEFAULT));

  void* block = MallocDevice(kBytes);
  aclTensor* x = MakeVector(kCount, shared);
  aclTensor* y = MakeVector(kCount, block);
  aclScalar* one = MakeScalar(1);
  CHECK_ACL(aclrtWaitAndResetNotify(ready, stream, 0));
  RUN_OP(stream, aclnnAdds, x, one, one, y);
  CHECK_ACL(aclrtMemcpyAsync(shared, kBytes, block, kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
  CHECK_ACL(aclrtRecordNotify(done, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  CHECK(Receive<char>(from) == 1);  // the parent has read its sum
  printf("child: %.0f\n", Sum(block, stream));
  fflush(stdout);
  CHECK_ACL(aclrtIpcMemClose(keys.memory));
  Send(to, char{2});

  CHECK_ACL(aclDestroyTensor(x));
  CHECK_ACL(aclDestroyTensor(y));
  CHECK_ACL(aclDestroyScalar(one));
  CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtDestroyNotify(ready));
  CHECK_ACL(aclrtDestroyNotify(done));
}

}  // namespace

int main() {
  int to_child[2];
  int to_parent[2];
  CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0);
  const pid_t child = fork();
  close(to_child[child == 0 ? 1 : 0]);  // so that the end of one is seen by the other
  close(to_parent[child == 0 ? 0 : 1]);
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK_ACL(aclrtCreateStream(&stream));
  if (child == 0) {
    Child(stream, to_child[0], to_parent[1]);
  } else {
    Parent(stream, to_parent[0], to_child[1]);
    fflush(stdout);
  }
  FreeWorkspaces();
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  if (child == 0) return 0;
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  printf("shared_memory: passed\n");
  return 0;
}
