// The part of every reproducer that does not depend on its script.
#pragma once

#include <string>

namespace acltape::replayer {

// Plain C++17 over the ACL interface: checking of return codes, tensors and other arguments, the
// device with its streams, uploads, results and their comparison. Needs the table kContents.
extern const char kCppPreamble[];
// main: runs Reference, and Suspect or Clean; --clean, --runs N.
extern const char kCppMain[];

}  // namespace acltape::replayer
