// The folder in which acltape keeps what it builds for a user: $ACLTAPE_CACHE, else
// $XDG_CACHE_HOME/acltape, else ~/.cache/acltape.
#pragma once

#include <filesystem>

namespace acltape::cli {

// Throws Error when none of the three is known.
std::filesystem::path CacheFolder();

}  // namespace acltape::cli
