// The text that `acltape --version` prints.
#pragma once

#include <string>

namespace acltape::cli {

// "acltape 0.1.0 (commit 0123456789ab, from an unclean tree)"; the commit is left out where it is
// not known.
std::string VersionText();
// "0.1.0"
std::string VersionNumber();
// The day of the commit, "2026-11-23"; "undated" where it is not known.
std::string VersionDate();

}  // namespace acltape::cli
