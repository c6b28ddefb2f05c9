// A range of 64 GiB of addresses of which two pieces get memory, far apart; one more piece comes
// when it is needed, after the first, so that a tensor lies in two pieces.
#include <initializer_list>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "sample.h"

namespace {

constexpr size_t kReserved = size_t{64} << 30;
constexpr size_t kFar = size_t{40} << 30;

struct Piece {
  aclrtDrvMemHandle handle = nullptr;
  char* address = nullptr;
};

Piece Map(char* address, size_t bytes) {
  aclrtPhysicalMemProp prop = {};
  prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = 0;
  Piece piece;
  piece.address = address;
  CHECK_ACL(aclrtMallocPhysical(&piece.handle, bytes, &prop, 0));
  CHECK_ACL(aclrtMapMem(address, bytes, 0, piece.handle, 0));
  return piece;
}

void Unmap(const Piece& piece) {
  CHECK_ACL(aclrtUnmapMem(piece.address));
  CHECK_ACL(aclrtFreePhysical(piece.handle));
}

double Sum(const void* from, int64_t count, aclrtStream stream) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  auto* host = static_cast<float*>(MallocPinned(bytes));
  CHECK_ACL(aclrtMemcpyAsync(host, bytes, from, bytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += host[i];
  CHECK_ACL(aclrtFreeHost(host));
  return sum;
}

}  // namespace

int main() {
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK_ACL(aclrtCreateStream(&stream));
  aclrtPhysicalMemProp prop = {};
  prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  size_t piece = 0;
  CHECK_ACL(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &piece));
  void* reserved = nullptr;
  CHECK_ACL(aclrtReserveMemAddress(&reserved, kReserved, 0, nullptr, 0));
  char* near = static_cast<char*>(reserved);
  char* far = near + kFar;
  const Piece first = Map(near, piece);
  const Piece second = Map(far, piece);

  constexpr int64_t kCount = 1024;
  constexpr size_t kBytes = kCount * sizeof(float);
  float host[kCount];
  for (int64_t i = 0; i < kCount; ++i) host[i] = static_cast<float>(i % 16);
  CHECK_ACL(aclrtMemcpy(near, kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  aclTensor* x = MakeVector(kCount, near);
  aclTensor* y = MakeVector(kCount, far);
  aclScalar* three = MakeScalar(3);
  aclScalar* one = MakeScalar(1);
  RUN_OP(stream, aclnnMuls, x, three, y);
  printf("far: %.0f\n", Sum(far, kCount, stream));

  // The first piece grows. The vector at its end lies in both pieces.
  const Piece third = Map(near + piece, piece);
  char* middle = near + piece - kBytes / 2;
  aclTensor* z = MakeVector(kCount, middle);
  RUN_OP(stream, aclnnAdds, y, one, one, z);
  printf("middle: %.0f\n", Sum(middle, kCount, stream));

  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  RUN_OP(stream, aclnnMuls, z, three, x);
  RUN_OP(stream, aclnnAdds, x, one, one, z);
  aclmdlRI graph = nullptr;
  CHECK_ACL(aclmdlRICaptureEnd(stream, &graph));
  for (int i = 0; i < 3; ++i) CHECK_ACL(aclmdlRIExecuteAsync(graph, stream));
  printf("middle after a graph: %.0f\n", Sum(middle, kCount, stream));
  CHECK_ACL(aclmdlRIDestroy(graph));

  for (aclTensor* tensor : {x, y, z}) CHECK_ACL(aclDestroyTensor(tensor));
  for (aclScalar* scalar : {three, one}) CHECK_ACL(aclDestroyScalar(scalar));
  for (const Piece& mapped : {first, second, third}) Unmap(mapped);
  CHECK_ACL(aclrtReleaseMemAddress(reserved));
  FreeWorkspaces();
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("virtual_memory: passed\n");
  return 0;
}
