// The names that a shared library offers and asks for, read from the file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace acltape::cli {

struct ElfNames {
  bool is_library = false;  // false: no 64-bit ELF file with a dynamic section of this machine
  std::vector<std::string> needed;     // file names of libraries
  std::vector<std::string> defined;    // without versions
  std::vector<std::string> undefined;  // names that must be found for the library to load
};

// Never throws. A file that cannot be read counts as no library.
ElfNames ReadElfNames(const std::filesystem::path& file);

}  // namespace acltape::cli
