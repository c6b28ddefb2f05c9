// Kernel functions and argument blocks, as captured models show them (ENUM-08).
//
// The soft device loads no binaries: a function handle stands for the name of a kernel and the code
// that a stream's worker calls. Its arguments come in two forms.
//   bytes    SoftLaunchKernelWithArgs: the device keeps a private copy of the block (CAP-25), which
//            models show as it is and replace by any block of the program's.
//   opaque   SoftLaunchKernel, which the operator library uses: an object that only the kernel can
//            read. Models show a block of 8 bytes that refers to it. Such a block may be given to
//            any other kernel task of the same function in the same model.
// Kernels of a binary of the program's own run on the host (binary.h), with a copied block.
#pragma once

#include "runtime/device/handle.h"
#include "runtime/device/task.h"

namespace acltape::device {

// A kernel of a binary (binary.h): a function of the host that takes the address of its
// arguments.
using HostEntry = uint32_t (*)(void* args);

struct Function {
  const char* name;
  aclError (*run)(void*);
  bool takes_bytes;
  HostEntry entry;  // null: a kernel of the operator library
  HandleBlock* handle;
};

// The function of a kernel task; equal ones share one object that lives as long as the process.
// Null when no handle is left.
Function* FunctionOf(const Task& kernel);

// The function of a kernel of a binary. Null when no handle is left.
Function* FunctionOf(const char* name, HostEntry entry);

// The task of a kernel with a copy of its argument block.
Task KernelTaskWithArgs(const char* name, aclError (*run)(void*), const void* args, size_t bytes,
                        HostEntry entry = nullptr);
// The same for a kernel of a binary.
Task KernelTaskWithArgs(const Function& function, const void* args, size_t bytes);
bool TakesBytes(const Task& kernel);
size_t ArgumentBytes(const Task& kernel);

}  // namespace acltape::device
