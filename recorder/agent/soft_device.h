// A process on the soft device says so in the row `soft_device` of the trace's table meta: with the
// settings that decide which values the program computes, among them the generator of random
// numbers.
#pragma once

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <atomic>

#include "recorder/agent/tape.h"

namespace acltape::agent {

// Writes the row once, as soon as the soft device is in the process. Costs a look for the library
// until then; so call it now and then.
inline void ReportSoftDevice(Tape& tape) {
  static std::atomic<bool> told{false};
  if (told.load(std::memory_order_relaxed)) return;
  void* library = dlopen("libascendcl.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return;
  const auto describe = reinterpret_cast<const char* (*)()>(dlsym(library, "SoftDescribe"));
  // A vendor's library has no such function, and stays the one of the process.
  if (!told.exchange(true) && describe != nullptr) {
    tape.WriteMeta("soft_device", describe());
    // The generator is its first member, and all others are modes that are on.
    if (strchr(describe(), ',') != nullptr) {
      char cause[256];
      snprintf(cause, sizeof cause, "it ran with %s, which may change what the program computes",
               describe());
      tape.WriteLedger(1, 1, "strict_device", "soft device", cause,
                       "record without these settings for the values of every day");
    }
  }
  dlclose(library);  // it stays loaded: RTLD_NOLOAD took a reference alone
}

}  // namespace acltape::agent
