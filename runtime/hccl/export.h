// Parts that the exported functions share.
#pragma once

#include <cstdarg>
#include <cstdio>

#include "hccl/hccl.h"
#include "runtime/kernel_launch.h"

#define ACLTAPE_HCCL extern "C" __attribute__((visibility("default")))

namespace acltape::hccl {

// Returns the code, and keeps the text for aclGetRecentErrMsg.
__attribute__((format(printf, 2, 3))) inline HcclResult Refuse(HcclResult code, const char* format,
                                                               ...) {
  char text[768];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  SoftSetErrorMessage(text);
  return code;
}

}  // namespace acltape::hccl
