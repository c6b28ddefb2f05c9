// The names that an installed adapter of NPUs (torch_npu, and wheels with libraries over it) asks a
// toolkit for, and who defines them: the soft device, or libraries that are generated for the rest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/environment/interpreter.h"

namespace acltape::cli {

// One library of the adapter, or of a wheel over it.
struct AdapterLibrary {
  std::string file;                        // relative to the folder that holds the package
  std::vector<std::string> missing_files;  // libraries that it needs and nobody has
  std::vector<std::string> offered;        // names that the soft device defines
  std::vector<std::string> leftovers;      // names that nobody defines
};

struct AdapterNames {
  std::vector<AdapterLibrary> libraries;
  // Both lists are those of all libraries, sorted, each once. The files are generated too, and have
  // the leftovers.
  std::vector<std::string> leftovers, missing_files;
};

// `toolkit`: the folder with the soft device's libraries.
AdapterNames ReadAdapterNames(const InstalledPackages& packages,
                              const std::filesystem::path& toolkit);

// True where there is anything to generate.
bool HasLeftovers(const AdapterNames& names);

// The folder of a library that defines the leftovers, each of which fails and says its name, and of
// the missing files. It is built at the first use and kept in the user's cache. Throws Error when
// there is no compiler.
std::filesystem::path LeftoversFolder(const AdapterNames& names);

// The names that the library in that folder defines.
std::vector<std::string> GeneratedNames(const std::filesystem::path& folder);

}  // namespace acltape::cli
