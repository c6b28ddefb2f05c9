// The interface by which the operator library hands tensors of calls to the device's dumps. It is
// private to the soft device, like runtime/kernel_launch.h.
#pragma once

#include "runtime/kernel_launch.h"

#ifdef __cplusplus
extern "C" {
#endif

// Says what a first phase has to keep for the task.
enum { kSoftDumpsTensors = 1, kSoftDumpsArguments = 2 };
__attribute__((visibility("default"))) uint32_t SoftDumps(void);

typedef struct SoftTensor {
  const int64_t* sizes;
  const int64_t* strides;  // in elements
  size_t rank;
  aclDataType type;
  aclFormat format;
  size_t item;        // bytes of an element
  const void* first;  // the first element, in device memory
  bool is_output;     // else an input; what is both comes twice
} SoftTensor;

// Called by the worker before the kernel with the inputs, and after it with the outputs, each time
// with all tensors of the call.
__attribute__((visibility("default"))) void SoftDumpTensors(const char* op,
                                                            const SoftTensor* tensors, size_t count,
                                                            bool outputs);

// Called by the worker with what a call looks like: a JSON object.
__attribute__((visibility("default"))) void SoftDumpArguments(const char* op, const char* text);

#ifdef __cplusplus
}
#endif
