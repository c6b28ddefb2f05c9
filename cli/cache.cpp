#include "cli/cache.h"

#include <cstdlib>

#include "storage/error.h"

namespace acltape::cli {

std::filesystem::path CacheFolder() {
  struct Place {
    const char* variable;
    const char* below;
  };
  constexpr Place kPlaces[] = {
      {"ACLTAPE_CACHE", ""}, {"XDG_CACHE_HOME", "acltape"}, {"HOME", ".cache/acltape"}};
  for (const Place& place : kPlaces) {
    const char* value = std::getenv(place.variable);
    if (value == nullptr || *value == '\0') continue;
    return *place.below == '\0' ? std::filesystem::path(value)
                                : std::filesystem::path(value) / place.below;
  }
  throw Error(ErrorKind::kDevice,
              "there is no folder for what acltape builds; set ACLTAPE_CACHE to one.");
}

}  // namespace acltape::cli
