// Looks in libraries that the process opened privately, in which RTLD_NEXT does not look.
//
// Note [The loader's list]. dl_iterate_phdr holds a lock of the loader while it calls back. A
// thread in dlopen holds the loader's other lock and waits for this one. A callback that calls
// dlopen waits for the other lock, so the two threads would wait for each other, and the program
// would stand still. A callback therefore copies what it is told, and no more.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include <initializer_list>

namespace acltape::agent {

// A loaded library whose file name begins with one of the prefixes: the one after `skip` others.
struct LoadedLibrary {
  std::initializer_list<const char*> prefixes;
  int skip = 0;
  char path[4096] = "";  // empty: there are no more
};

inline int TakeLibrary(dl_phdr_info* info, size_t, void* opaque) {
  auto* wanted = static_cast<LoadedLibrary*>(opaque);
  const char* slash = strrchr(info->dlpi_name, '/');
  const char* file = slash != nullptr ? slash + 1 : info->dlpi_name;
  bool fits = false;
  for (const char* prefix : wanted->prefixes) fits |= strncmp(file, prefix, strlen(prefix)) == 0;
  if (!fits || wanted->skip-- > 0) return 0;
  snprintf(wanted->path, sizeof wanted->path, "%s", info->dlpi_name);
  return 1;
}

// The function of the first such library that has the name; null if none has. `look_up` is dlsym.
inline void* FindInLoaded(std::initializer_list<const char*> prefixes, const char* name,
                          void* (*look_up)(void*, const char*)) {
  for (int before = 0;; ++before) {
    LoadedLibrary one{prefixes, before};
    dl_iterate_phdr(TakeLibrary, &one);
    if (one.path[0] == '\0') return nullptr;
    void* library = dlopen(one.path, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    void* found = look_up(library, name);
    dlclose(library);  // it stays loaded: RTLD_NOLOAD took a reference alone
    if (found != nullptr) return found;
  }
}

}  // namespace acltape::agent
