// The names that an installed adapter of NPUs (torch_npu and what it brings along) asks a toolkit
// for, and who defines them: the soft device, or a library that is generated for the rest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/environment/interpreter.h"

namespace acltape::cli {

// One library of the adapter.
struct AdapterLibrary {
  std::string file;                  // relative to the folder that holds the package
  std::string missing_library;       // one that it needs and nobody has: it cannot be loaded anyway
  std::vector<std::string> offered;  // names that the soft device defines
  std::vector<std::string> leftovers;  // names that nobody defines
};

struct AdapterNames {
  std::vector<AdapterLibrary> libraries;
  std::vector<std::string> leftovers;  // from all libraries that can be loaded; sorted, each once
};

// `toolkit`: the folder with the soft device's libraries.
AdapterNames ReadAdapterNames(const InstalledPackages& packages,
                              const std::filesystem::path& toolkit);

// The folder of a library that defines the names: each fails and says its name. It is built at the
// first use and kept in the user's cache. Throws Error when there is no compiler.
std::filesystem::path LeftoversFolder(const std::vector<std::string>& names);

// The names that the library in that folder defines.
std::vector<std::string> GeneratedNames(const std::filesystem::path& folder);

}  // namespace acltape::cli
