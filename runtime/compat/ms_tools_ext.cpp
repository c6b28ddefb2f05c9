// libms_tools_ext.so: where programs report their ranges and marks to tools. Nobody listens on the
// soft device itself. Every range has a number of its own, so that a program can tell its ranges
// apart.
#include <atomic>
#include <cstdint>

#include "runtime/compat/export.h"

namespace {

std::atomic<uint64_t> ranges{0};
char domain;  // handles of domains point to it

}  // namespace

ACLTAPE_COMPAT void mstxMarkA(const char*, void*) {}

// A range without a name has the number 0, which stands for none.
ACLTAPE_COMPAT uint64_t mstxRangeStartA(const char* message, void*) {
  return message == nullptr || *message == '\0' ? 0 : ++ranges;
}

ACLTAPE_COMPAT void mstxRangeEnd(uint64_t) {}

ACLTAPE_COMPAT void* mstxDomainCreateA(const char* name) {
  return name == nullptr ? nullptr : &domain;
}

ACLTAPE_COMPAT void mstxDomainDestroy(void*) {}

ACLTAPE_COMPAT void mstxDomainMarkA(void*, const char*, void*) {}

ACLTAPE_COMPAT uint64_t mstxDomainRangeStartA(void* handle, const char* message, void* stream) {
  return handle == nullptr ? 0 : mstxRangeStartA(message, stream);
}

ACLTAPE_COMPAT void mstxDomainRangeEnd(void*, uint64_t) {}
