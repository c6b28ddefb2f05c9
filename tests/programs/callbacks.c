/*
 * Host functions in stream order: by the runtime's own thread (aclrtLaunchHostFunc) and by a
 * service thread of the program (aclrtSubscribeReport, aclrtProcessReport, aclrtLaunchCallback).
 *
 *   callbacks
 */
#include <stdatomic.h>
#include <unistd.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "sample.h"

enum { kCount = 64, kRounds = 5 };
static const size_t kBytes = kCount * sizeof(float);

/* A callback sees a pinned buffer that the copy before it has filled. */
typedef struct {
  float* values;
  float sum;
  pthread_t thread;
} Seen;

static void Sum(void* user_data) {
  Seen* seen = (Seen*)user_data;
  seen->sum = 0;
  for (int i = 0; i < kCount; ++i) seen->sum += seen->values[i];
  seen->thread = pthread_self();
}

/* Makes room for the values that a later copy reads. */
static void Overwrite(void* user_data) {
  Seen* seen = (Seen*)user_data;
  for (int i = 0; i < kCount; ++i) seen->values[i] = -1;
}

typedef struct {
  void* device;
  aclTensor* tensor;
  aclScalar* one;
} Counter;

/* Adds one to every element. */
static void Increment(aclrtStream stream, const Counter* counter) {
  RUN_OP(stream, aclnnInplaceAdds, counter->tensor, counter->one, counter->one);
}

static void CopyBack(aclrtStream stream, const Counter* counter, float* to) {
  CHECK_ACL(
      aclrtMemcpyAsync(to, kBytes, counter->device, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
}

static void HostFunctions(aclrtStream stream, const Counter* counter) {
  Seen seen[kRounds];
  for (int round = 0; round < kRounds; ++round) {
    seen[round].values = (float*)MallocPinned(kBytes);
    Increment(stream, counter);
    CopyBack(stream, counter, seen[round].values);
    CHECK_ACL(aclrtLaunchHostFunc(stream, Sum, &seen[round]));
    CHECK_ACL(aclrtLaunchHostFunc(stream, Overwrite, &seen[round]));
  }
  CHECK_ACL(aclrtSynchronizeStream(stream));
  for (int round = 0; round < kRounds; ++round) {
    printf("host function %d: %g\n", round, seen[round].sum);
    CHECK(seen[round].sum == (float)(kCount * (round + 1)));
    CHECK(seen[round].values[0] == -1);
    CHECK(!pthread_equal(seen[round].thread, pthread_self()));
    CHECK(pthread_equal(seen[round].thread, seen[0].thread));
    CHECK_ACL(aclrtFreeHost(seen[round].values));
  }
}

typedef struct {
  aclrtContext context;
  atomic_int stop;
} Service;

static void* Serve(void* argument) {
  Service* service = (Service*)argument;
  CHECK_ACL(aclrtSetCurrentContext(service->context));
  while (!atomic_load(&service->stop)) {
    /* Without a subscription or a callback in time it returns an error, which is no failure here.
     */
    int code = (int)aclrtProcessReport(50);
    CHECK(code == ACL_SUCCESS || code == ACL_ERROR_RT_REPORT_TIMEOUT ||
          code == ACL_ERROR_RT_THREAD_SUBSCRIBE);
    if (code == ACL_ERROR_RT_THREAD_SUBSCRIBE) usleep(1000);
  }
  return NULL;
}

static void Callbacks(aclrtStream stream, const Counter* counter) {
  Service service;
  pthread_t thread;
  Seen seen[kRounds];
  CHECK_ACL(aclrtGetCurrentContext(&service.context));
  atomic_init(&service.stop, 0);
  CHECK(pthread_create(&thread, NULL, Serve, &service) == 0);

  /* Refused as long as no thread serves the stream. */
  CHECK(aclrtLaunchCallback(Sum, &seen[0], ACL_CALLBACK_BLOCK, stream) ==
        ACL_ERROR_RT_STREAM_NO_CB_REG);
  CHECK_ACL(aclrtSubscribeReport((uint64_t)thread, stream));
  for (int round = 0; round < kRounds; ++round) {
    seen[round].values = (float*)MallocPinned(kBytes);
    Increment(stream, counter);
    CopyBack(stream, counter, seen[round].values);
    CHECK_ACL(aclrtLaunchCallback(Sum, &seen[round], ACL_CALLBACK_BLOCK, stream));
    CHECK_ACL(aclrtLaunchCallback(Overwrite, &seen[round], ACL_CALLBACK_BLOCK, stream));
  }
  CHECK_ACL(aclrtSynchronizeStream(stream));
  CHECK_ACL(aclrtUnSubscribeReport((uint64_t)thread, stream));
  atomic_store(&service.stop, 1);
  CHECK(pthread_join(thread, NULL) == 0);

  for (int round = 0; round < kRounds; ++round) {
    printf("callback %d: %g\n", round, seen[round].sum);
    CHECK(seen[round].sum == (float)(kCount * (kRounds + round + 1)));
    CHECK(seen[round].values[0] == -1);
    CHECK(pthread_equal(seen[round].thread, thread));
    CHECK_ACL(aclrtFreeHost(seen[round].values));
  }
}

int main(void) {
  aclrtStream stream = NULL;
  aclrtStream served = NULL;
  Counter counter;
  CHECK_ACL(aclInit(NULL));
  CHECK_ACL(aclrtSetDevice(0));
  CHECK_ACL(aclrtCreateStream(&stream));
  CHECK_ACL(aclrtCreateStream(&served));
  counter.device = MallocDevice(kBytes);
  CHECK_ACL(aclrtMemset(counter.device, kBytes, 0, kBytes));
  counter.tensor = MakeVector(kCount, counter.device);
  counter.one = MakeScalar(1);

  HostFunctions(stream, &counter);
  Callbacks(served, &counter);

  CHECK_ACL(aclDestroyScalar(counter.one));
  CHECK_ACL(aclDestroyTensor(counter.tensor));
  CHECK_ACL(aclrtFree(counter.device));
  FreeWorkspaces();
  CHECK_ACL(aclrtDestroyStream(served));
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("callbacks: passed\n");
  return 0;
}
