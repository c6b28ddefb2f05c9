// Lists of words as the functions that start programs want them.
#pragma once

#include <string>
#include <vector>

namespace acltape::storage {

// Pointers to the texts and a null pointer after them, as execve and posix_spawn take arguments
// and environments. The texts must outlive them.
std::vector<char*> PointersTo(const std::vector<std::string>& texts);

}  // namespace acltape::storage
