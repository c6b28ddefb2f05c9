/*
 * Device, pinned and pageable memory; copies at once, in stream order and of rectangles; fills.
 *
 *   memory_copies
 */
#include "acl/acl.h"
#include "sample.h"

enum { kCount = 1024 };
static const size_t kBytes = kCount * sizeof(int32_t);

static void Fill(int32_t* values, int32_t first) {
  for (int i = 0; i < kCount; ++i) values[i] = first + i;
}

static int64_t Sum(const int32_t* values) {
  int64_t sum = 0;
  for (int i = 0; i < kCount; ++i) sum += values[i];
  return sum;
}

/* Pageable memory to the device, from there to another block, and back. */
static void SynchronousCopies(void) {
  int32_t* host = (int32_t*)malloc(kBytes);
  void* first = MallocDevice(kBytes);
  void* second = MallocDevice(kBytes);
  Fill(host, 5);
  CHECK_ACL(aclrtMemcpy(first, kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK_ACL(aclrtMemcpy(second, kBytes, first, kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE));
  memset(host, 0, kBytes);
  CHECK_ACL(aclrtMemcpy(host, kBytes, second, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  printf("synchronous: %" PRId64 "\n", Sum(host));
  CHECK(host[0] == 5 && host[kCount - 1] == 5 + kCount - 1);

  /* The direction follows from the addresses, whatever the kind says. */
  CHECK_ACL(aclrtMemcpy(first, kBytes, host, kBytes, ACL_MEMCPY_DEFAULT));
  /* Part of a block, to an address inside another one. */
  CHECK_ACL(aclrtMemcpy((char*)second + 40, kBytes - 40, first, 20, ACL_MEMCPY_DEVICE_TO_DEVICE));
  CHECK_ACL(aclrtMemcpy(host, kBytes, second, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  printf("part: %d %d %d\n", host[9], host[10], host[15]);
  CHECK(host[9] == 14 && host[10] == 5 && host[14] == 9 && host[15] == 20);
  CHECK_ACL(aclrtFree(first));
  CHECK_ACL(aclrtFree(second));
  free(host);
}

static void AsynchronousCopies(aclrtStream stream) {
  int32_t* from = (int32_t*)MallocPinned(kBytes);
  int32_t* to = (int32_t*)MallocPinned(kBytes);
  int32_t* pageable = (int32_t*)malloc(kBytes);
  void* first = MallocDevice(kBytes);
  void* second = MallocDevice(kBytes);
  Fill(from, 1000);
  CHECK_ACL(aclrtMemcpyAsync(first, kBytes, from, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  CHECK_ACL(aclrtMemcpyAsync(second, kBytes, first, kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
  CHECK_ACL(aclrtMemcpyAsync(to, kBytes, second, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  printf("asynchronous: %" PRId64 "\n", Sum(to));
  CHECK(memcmp(from, to, kBytes) == 0);

  /* With pageable memory the call waits: the buffer may be reused at once. */
  Fill(pageable, -500);
  CHECK_ACL(aclrtMemcpyAsync(first, kBytes, pageable, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  memset(pageable, 0, kBytes);
  CHECK_ACL(aclrtMemcpyAsync(to, kBytes, first, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  printf("pageable: %" PRId64 "\n", Sum(to));
  CHECK(to[0] == -500 && to[kCount - 1] == -500 + kCount - 1);

  /* Once registered, memory of malloc is pinned. */
  void* view = NULL;
  CHECK_ACL(aclrtHostRegister(pageable, kBytes, ACL_HOST_REGISTER_MAPPED, &view));
  CHECK_ACL(aclrtMemcpyAsync(pageable, kBytes, first, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  CHECK(memcmp(pageable, to, kBytes) == 0);
  CHECK_ACL(aclrtHostUnregister(pageable));

  CHECK_ACL(aclrtFree(first));
  CHECK_ACL(aclrtFree(second));
  CHECK_ACL(aclrtFreeHost(from));
  CHECK_ACL(aclrtFreeHost(to));
  free(pageable);
}

/* A rectangle of 4 rows of 6 numbers, cut out of rows of 16. */
static void Rectangles(aclrtStream stream) {
  enum { kPitch = 16, kWidth = 6, kHeight = 4 };
  const size_t number = sizeof(int32_t);
  int32_t* host = (int32_t*)MallocPinned(kPitch * kHeight * number);
  int32_t* cut = (int32_t*)MallocPinned(kWidth * kHeight * number);
  void* device = MallocDevice(kPitch * kHeight * number);
  void* dense = MallocDevice(kWidth * kHeight * number);
  int64_t sum = 0;
  for (int i = 0; i < kPitch * kHeight; ++i) host[i] = i;

  CHECK_ACL(aclrtMemcpy2d(device, kPitch * number, host, kPitch * number, kPitch * number, kHeight,
                          ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK_ACL(aclrtMemcpy2dAsync(dense, kWidth * number, (char*)device + 2 * number, kPitch * number,
                               kWidth * number, kHeight, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
  CHECK_ACL(aclrtMemcpyAsync(cut, kWidth * kHeight * number, dense, kWidth * kHeight * number,
                             ACL_MEMCPY_DEVICE_TO_HOST, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  for (int row = 0; row < kHeight; ++row) {
    for (int column = 0; column < kWidth; ++column) {
      CHECK(cut[row * kWidth + column] == row * kPitch + column + 2);
      sum += cut[row * kWidth + column];
    }
  }
  printf("rectangle: %" PRId64 "\n", sum);
  CHECK_ACL(aclrtFree(device));
  CHECK_ACL(aclrtFree(dense));
  CHECK_ACL(aclrtFreeHost(host));
  CHECK_ACL(aclrtFreeHost(cut));
}

static void Fills(aclrtStream stream) {
  int32_t* host = (int32_t*)MallocPinned(kBytes);
  void* device = MallocDevice(kBytes);
  CHECK_ACL(aclrtMemset(device, kBytes, 0x11, kBytes));
  CHECK_ACL(aclrtMemsetAsync((char*)device + 4, kBytes - 4, 0, 8, stream));
  CHECK_ACL(aclrtMemcpyAsync(host, kBytes, device, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  printf("fill: %d %d %d %d\n", host[0], host[1], host[2], host[3]);
  CHECK(host[0] == 0x11111111 && host[1] == 0 && host[2] == 0 && host[3] == 0x11111111);
  CHECK_ACL(aclrtFree(device));
  CHECK_ACL(aclrtFreeHost(host));
}

/* Where an address lies, and how much memory is left. */
static void Questions(void) {
  size_t before = 0, during = 0, total = 0;
  CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total));
  void* device = MallocDevice(1 << 20);
  CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM, &during, &total));
  CHECK(before - during >= (1 << 20) && during <= total);
  CHECK((uintptr_t)device % 64 == 0);

  aclrtPtrAttributes attributes;
  int on_stack = 0;
  CHECK_ACL(aclrtPointerGetAttributes(device, &attributes));
  CHECK(attributes.location.type == ACL_MEM_LOCATION_TYPE_DEVICE);
  CHECK_ACL(aclrtPointerGetAttributes(&on_stack, &attributes));
  CHECK(attributes.location.type == ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  CHECK_ACL(aclrtFree(device));
  CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM, &during, &total));
  CHECK(before == during);
  printf("questions: answered\n");
}

int main(void) {
  aclrtStream stream = NULL;
  CHECK_ACL(aclInit(NULL));
  CHECK_ACL(aclrtSetDevice(0));
  CHECK_ACL(aclrtCreateStream(&stream));
  SynchronousCopies();
  AsynchronousCopies(stream);
  Rectangles(stream);
  Fills(stream);
  Questions();
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("memory_copies: passed\n");
  return 0;
}
