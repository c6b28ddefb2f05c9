#include "cli/environment/cache.h"

#include "kit/place.h"
#include "storage/error.h"

namespace acltape::cli {

std::filesystem::path CacheFolder() {
  const std::filesystem::path folder = kit::CacheFolder().text;
  if (folder.empty()) {
    throw Error(ErrorKind::kDevice,
                "there is no folder for what acltape builds; set ACLTAPE_CACHE to one.");
  }
  return folder;
}

}  // namespace acltape::cli
