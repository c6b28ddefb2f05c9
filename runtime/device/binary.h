// Binaries that a program loads (KRN-01 to KRN-05). A device's own kernels cannot run here. Kernels
// of the AI CPU are functions of a library that was built for the host, so they run as they are.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/device/function.h"

namespace acltape::device {

struct Binary {
  HandleBlock* handle = nullptr;
  // Never closed: tasks and graphs may still hold its kernels.
  void* library = nullptr;
  bool from_data = false;  // its kernels are registered by name
  std::mutex mutex;
  std::map<std::string, std::string> entries;  // the library's function of each kernel, from JSON
  std::map<std::string, Function*> kernels;    // those that were asked for or registered
  void* device_image = nullptr;                // null: lazy
  size_t image_bytes = 0;
  aclrtOpExceptionCallback on_exception = nullptr;
  void* exception_data = nullptr;
};

// The live binary that a function belongs to; null when it was unloaded, or belongs to no binary.
Binary* BinaryOf(const Function& function);
// Calls the callback of the binary, because one of its kernels failed.
void CallBinaryCallback(const Task& kernel, aclrtExceptionInfo* info);

aclError FindBinary(aclrtBinHandle handle, const char* call, Binary** binary);
// The function of a handle of a live binary.
aclError FindKernel(aclrtFuncHandle handle, const char* call, Function** function);

}  // namespace acltape::device
