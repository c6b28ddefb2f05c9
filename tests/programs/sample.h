/*
 * Code that these sample programs share: checking of return codes, tensors over device memory, the
 * two phases of an operator. Plain C, which C++ reads too. Include it after the ACL headers.
 *
 * With -DUSE_DLOPEN the functions come from dlopen and dlsym (dl_acl.h) and the program is built
 * without the ACL libraries.
 */
#ifndef SAMPLE_H_
#define SAMPLE_H_

#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

#ifdef USE_DLOPEN
#include "dl_acl.h"
#endif

static inline void SampleFail(const char* file, int line, const char* what, int code) {
  const char* message = aclGetRecentErrMsg();
  fprintf(stderr, "%s:%d: %s returned %d: %s\n", file, line, what, code,
          message != NULL ? message : "no message");
  exit(1);
}

/* Ends the program with the message of ACL unless the call succeeds. */
#define CHECK_ACL(call)                                                             \
  do {                                                                              \
    int check_acl_code = (int)(call);                                               \
    if (check_acl_code != 0) SampleFail(__FILE__, __LINE__, #call, check_acl_code); \
  } while (0)

/* Ends the program when a result is not the expected one. */
#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

/* A dense tensor of the type and sizes at the device address. */
static inline aclTensor* MakeTensor(aclDataType type, int rank, const int64_t* sizes,
                                    void* address) {
  int64_t strides[8];
  int64_t step = 1;
  CHECK(rank <= 8);
  for (int i = rank - 1; i >= 0; --i) {
    strides[i] = step;
    step *= sizes[i];
  }
  aclTensor* tensor = aclCreateTensor(sizes, (uint64_t)rank, type, strides, 0, ACL_FORMAT_ND, sizes,
                                      (uint64_t)rank, address);
  CHECK(tensor != NULL);
  return tensor;
}

static inline aclTensor* MakeVector(int64_t count, void* address) {
  return MakeTensor(ACL_FLOAT, 1, &count, address);
}

static inline aclScalar* MakeScalar(float value) {
  aclScalar* scalar = aclCreateScalar(&value, ACL_FLOAT);
  CHECK(scalar != NULL);
  return scalar;
}

static inline void* MallocDevice(size_t bytes) {
  void* address = NULL;
  CHECK_ACL(aclrtMalloc(&address, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  return address;
}

static inline void* MallocPinned(size_t bytes) {
  void* address = NULL;
  CHECK_ACL(aclrtMallocHost(&address, bytes));
  return address;
}

/*
 * Workspaces stay allocated until FreeWorkspaces, because queued and captured operators use them.
 */
#define MAX_WORKSPACES 1024
static struct {
  pthread_mutex_t mutex;
  void* addresses[MAX_WORKSPACES];
  int count;
} sample_workspaces = {PTHREAD_MUTEX_INITIALIZER, {NULL}, 0};

static inline void* NewWorkspace(uint64_t bytes) {
  if (bytes == 0) return NULL;
  void* address = MallocDevice(bytes);
  pthread_mutex_lock(&sample_workspaces.mutex);
  CHECK(sample_workspaces.count < MAX_WORKSPACES);
  sample_workspaces.addresses[sample_workspaces.count++] = address;
  pthread_mutex_unlock(&sample_workspaces.mutex);
  return address;
}

static inline void FreeWorkspaces(void) {
  for (int i = 0; i < sample_workspaces.count; ++i) {
    CHECK_ACL(aclrtFree(sample_workspaces.addresses[i]));
  }
  sample_workspaces.count = 0;
}

/* Both phases of an operator: RUN_OP(stream, aclnnMul, self, other, out). */
#define RUN_OP(stream, op, ...)                                                       \
  do {                                                                                \
    uint64_t run_op_bytes = 0;                                                        \
    aclOpExecutor* run_op_executor = NULL;                                            \
    CHECK_ACL(op##GetWorkspaceSize(__VA_ARGS__, &run_op_bytes, &run_op_executor));    \
    CHECK_ACL(op(NewWorkspace(run_op_bytes), run_op_bytes, run_op_executor, stream)); \
  } while (0)

#endif /* SAMPLE_H_ */
