// The places of kits in the file system. A kit is a folder with the files below. Kits that acltape
// was built with lie beside the soft device's libraries, kits that were built later in the user's
// cache:
//   <sdk>/lib64/kits/<identity>/            and  <sdk>/lib64/kits/default, a link to one of them
//   <cache>/torch/<identity>-<stamp>/       and  <cache>/torch/default-<stamp>
// The stamp stands for the sources of the kit (kit/stamp.py): a kit of other sources is never used.
// The cache is $ACLTAPE_CACHE, else $XDG_CACHE_HOME/acltape, else ~/.cache/acltape.
//
// Everything here uses libc alone, as in kit/identity.h.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace acltape::kit {

inline constexpr char kPluginFile[] = "libacltape_torch.so";
inline constexpr char kKernelsFile[] = "libacltape_kernels.so";
inline constexpr char kDefaultName[] = "default";  // in place of an identity

// Folders in which a process looks for its kit, separated by colons; "%" stands for the identity.
inline constexpr char kPlacesVariable[] = "ACLTAPE_KITS";
// The kit's folder itself, for processes without a libtorch of their own.
inline constexpr char kFolderVariable[] = "ACLTAPE_KIT";

struct Path {
  char text[4096] = "";
};

// The cache's folder; empty when the user has no home.
inline Path CacheFolder() {
  Path path;
  struct Row {
    const char* variable;
    const char* below;
  };
  const Row rows[] = {
      {"ACLTAPE_CACHE", ""}, {"XDG_CACHE_HOME", "/acltape"}, {"HOME", "/.cache/acltape"}};
  for (const Row& row : rows) {
    const char* value = getenv(row.variable);
    if (value == nullptr || *value == '\0') continue;
    snprintf(path.text, sizeof path.text, "%s%s", value, row.below);
    break;
  }
  return path;
}

// The first readable `file` of the kit `identity` among `places`; empty when there is none.
inline Path FindInKits(const char* places, const char* identity, const char* file) {
  Path path;
  for (const char* place = places; place != nullptr && *place != '\0';) {
    const char* end = strchr(place, ':');
    if (end == nullptr) end = place + strlen(place);
    const char* mark =
        static_cast<const char*>(memchr(place, '%', static_cast<size_t>(end - place)));
    if (mark != nullptr) {
      snprintf(path.text, sizeof path.text, "%.*s%s%.*s/%s", static_cast<int>(mark - place), place,
               identity, static_cast<int>(end - mark - 1), mark + 1, file);
      if (access(path.text, R_OK) == 0) return path;
    }
    place = *end == ':' ? end + 1 : end;
  }
  path.text[0] = '\0';
  return path;
}

}  // namespace acltape::kit
