/* Memory pools: allocation and free in the order of a stream, reuse after an event, the bytes that
 * a pool keeps, and a graph over memory of a pool. */
#include "acl/acl.h"
#include "acl/acl_rt_memory_soma.h"
#include "session.h"

enum { kUnit = 2 << 20, kCount = 1024, kBytes = kCount * 4 };

static aclrtMemPool NewPool(size_t bytes) {
  aclrtMemPoolProps properties;
  aclrtMemPool pool = NULL;
  memset(&properties, 0, sizeof(properties));
  properties.allocType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  properties.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  properties.maxSize = bytes;
  CHECK_ACL(aclrtMemPoolCreate(&pool, &properties));
  return pool;
}

static uint64_t Get(aclrtMemPool pool, aclrtMemPoolAttr attribute) {
  uint64_t value = 0;
  CHECK_ACL(aclrtMemPoolGetAttr(pool, attribute, &value));
  return value;
}

static void* Allocate(aclrtMemPool pool, size_t bytes, aclrtStream stream) {
  void* memory = NULL;
  CHECK_ACL(aclrtMemPoolMallocAsync(&memory, bytes, pool, stream));
  return memory;
}

/* A sum of two vectors in memory that lives as long as the work; nobody waits in between. */
static void Iterate(aclrtMemPool pool, aclrtStream stream, float* host, int iteration) {
  void* terms = Allocate(pool, kBytes, stream);
  void* sum = Allocate(pool, kBytes, stream);
  for (int i = 0; i < kCount; ++i) host[i] = (float)(iteration + i);
  CHECK_ACL(aclrtMemsetAsync(sum, kBytes, 0, kBytes, stream));
  CHECK_ACL(aclrtMemcpyAsync(terms, kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  for (int i = 0; i < 3; ++i) {
    CHECK_ACL(aclrtReduceAsync(sum, terms, kBytes, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT,
                               stream, NULL));
  }
  CHECK_ACL(aclrtMemPoolFreeAsync(terms, stream));
  CHECK_ACL(aclrtMemcpyAsync(host, kBytes, sum, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  CHECK_ACL(aclrtMemPoolFreeAsync(sum, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  for (int i = 0; i < kCount; ++i) CHECK(host[i] == 3 * (float)(iteration + i));
}

/* One stream gives its memory to another one, which an event orders after it. */
static void PassOn(aclrtMemPool pool, aclrtStream stream) {
  aclrtStream other = NULL;
  aclrtEvent event = NULL;
  CHECK_ACL(aclrtCreateStream(&other));
  CHECK_ACL(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
  void* first = Allocate(pool, kBytes, stream);
  CHECK_ACL(aclrtMemsetAsync(first, kBytes, 1, kBytes, stream));
  CHECK_ACL(aclrtMemPoolFreeAsync(first, stream));
  CHECK_ACL(aclrtRecordEvent(event, stream));
  CHECK_ACL(aclrtStreamWaitEvent(other, event));
  void* second = Allocate(pool, kBytes, other);
  CHECK(second == first);
  CHECK_ACL(aclrtMemsetAsync(second, kBytes, 2, kBytes, other));
  CheckFilled(second, kBytes, 2, other);
  CHECK_ACL(aclrtMemPoolFreeAsync(second, other));
  CHECK_ACL(aclrtSynchronizeStream(other));
  CHECK_ACL(aclrtDestroyEvent(event));
  CHECK_ACL(aclrtDestroyStream(other));
}

/* A graph over memory that was allocated before its capture. */
static void Capture(aclrtMemPool pool, aclrtStream stream) {
  aclmdlRI graph = NULL;
  void* memory = Allocate(pool, kBytes, stream);
  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
  CHECK_ACL(aclrtMemsetAsync(memory, kBytes, 7, kBytes, stream));
  CHECK_ACL(aclmdlRICaptureEnd(stream, &graph));
  CHECK_ACL(aclmdlRIExecuteAsync(graph, stream));
  CheckFilled(memory, kBytes, 7, stream);
  CHECK_ACL(aclmdlRIDestroy(graph));
  CHECK_ACL(aclrtMemPoolFreeAsync(memory, stream));
}

int main(void) {
  aclrtStream stream = StartSession();
  void* host = NULL;
  CHECK_ACL(aclrtMallocHost(&host, kBytes));
  aclrtMemPool pool = NewPool((size_t)16 * kUnit);
  uint64_t threshold = (uint64_t)4 * kUnit;
  CHECK_ACL(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, &threshold));
  CHECK(Get(pool, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD) == threshold);

  for (int i = 0; i < 20; ++i) Iterate(pool, stream, (float*)host, i);
  CHECK(Get(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT) == 0);
  CHECK(Get(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH) == 2 * (uint64_t)kUnit);
  CHECK(Get(pool, ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH) == 2 * (uint64_t)kUnit);

  PassOn(pool, stream);
  Capture(pool, stream);
  void* large = Allocate(pool, (size_t)8 * kUnit, stream);
  CHECK_ACL(aclrtMemPoolFreeAsync(large, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  CHECK(Get(pool, ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT) == threshold);
  CHECK_ACL(aclrtMemPoolTrimTo(pool, 0));
  CHECK(Get(pool, ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT) == 0);

  /* Memory from aclrtMalloc is freed in the order of the stream, too. */
  void* plain = MallocDevice(kBytes);
  CHECK_ACL(aclrtMemsetAsync(plain, kBytes, 3, kBytes, stream));
  CHECK_ACL(aclrtMemPoolFreeAsync(plain, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  CHECK_ACL(aclrtMemPoolDestroy(pool));
  CHECK_ACL(aclrtFreeHost(host));
  return EndSession(stream);
}
