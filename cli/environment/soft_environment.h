// The environment in which a program finds the soft device in place of a toolkit.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace acltape::cli {

// build/bin/acltape -> build/sdk.
std::filesystem::path ToolkitFolder();

// Names and values, in the order in which they are printed. What the program's interpreter needs
// besides the toolkit is built first, at the first use. Throws Error when the soft device is not
// built, or when something that the interpreter's adapter needs cannot be built.
std::vector<std::pair<std::string, std::string>> SoftEnvironment(
    const std::filesystem::path& interpreter);

}  // namespace acltape::cli
