// A process on the soft device says so in the row `soft_device` of the trace's table meta: with the
// settings that decide which values the program computes, among them the generator of random
// numbers.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include <atomic>
#include <cstdint>

#include "recorder/agent/tape.h"

namespace acltape::agent {

// The number of libraries that the process has ever loaded.
inline uint64_t LibrariesLoaded() {
  uint64_t loaded = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* number) {
        *static_cast<uint64_t*>(number) = info->dlpi_adds;
        return 1;
      },
      &loaded);
  return loaded;
}

// Writes the row once, as soon as the soft device is in the process. Until then it looks for the
// library whenever others were loaded; so call it now and then.
inline void ReportSoftDevice(Tape& tape) {
  static std::atomic<bool> told{false};
  static std::atomic<uint64_t> looked_among{0};
  if (told.load(std::memory_order_relaxed)) return;
  const uint64_t loaded = LibrariesLoaded();
  if (looked_among.exchange(loaded, std::memory_order_relaxed) == loaded) return;
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
