// Says which libtorch a file or a process holds. A kit (the torch plug-in and the operator
// kernels) fits one libtorch only. Libraries of equal version differ, as wheels, distributions and
// own builds do. So a kit is found by the content of libtorch_cpu.so, never by a version number.
//
// Everything here uses libc alone: the agent, which brings no C++ runtime along, uses it too.
#pragma once

#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

namespace acltape::kit {

// Sixteen hexadecimal digits and a zero byte.
struct Identity {
  char text[17] = "";
};

// The identity of a libtorch_cpu.so: FNV-1a over its size and 64 pages that lie evenly in the file.
// The whole file has hundreds of megabytes, and other code or other data moves all that comes after
// it. False when the file cannot be read.
inline bool IdentityOf(const char* path, Identity* identity) {
  constexpr uint64_t kPages = 64;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat status;
  bool whole = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
  base::Fnv1a hash;
  if (whole) {
    const auto bytes = static_cast<uint64_t>(status.st_size);
    for (int shift = 0; shift < 64; shift += 8)
      hash.Add(static_cast<unsigned char>(bytes >> shift));
    unsigned char page[4096];
    const uint64_t last = bytes > sizeof page ? bytes - sizeof page : 0;
    for (uint64_t i = 0; i < kPages && whole; ++i) {
      const uint64_t offset = last * i / (kPages - 1);  // the first and the last page too
      const ssize_t got = pread(fd, page, sizeof page, static_cast<off_t>(offset));
      whole = got > 0;
      for (ssize_t k = 0; k < got; ++k) hash.Add(page[k]);
    }
  }
  close(fd);
  if (whole)
    snprintf(identity->text, sizeof identity->text, "%016llx", (unsigned long long)hash.hash());
  return whole;
}

// The file of the libtorch that this process has loaded; an empty path when it has none.
struct LoadedTorch {
  char path[4096] = "";
};

inline LoadedTorch FindLoadedTorch() {
  LoadedTorch found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        const char* slash = strrchr(info->dlpi_name, '/');
        const char* name = slash != nullptr ? slash + 1 : info->dlpi_name;
        // Distributions put a version after the name: libtorch_cpu.so.1.13.
        if (strncmp(name, "libtorch_cpu.so", 15) != 0) return 0;
        auto* loaded = static_cast<LoadedTorch*>(to);
        snprintf(loaded->path, sizeof loaded->path, "%s", info->dlpi_name);
        return 1;
      },
      &found);
  return found;
}

}  // namespace acltape::kit
