// The text of a reproducer that does not depend on its script.
#pragma once

#include <string>

namespace acltape::replayer::reproducer {

// Plain C++17 over the ACL interface: checks of return codes, tensors and other arguments, the
// device with its streams, uploads, results and their comparison. It needs the table kContents.
extern const char kCppPreamble[];
// The function main. It runs Reference, and Suspect or Clean. It accepts --clean and --runs N.
extern const char kCppMain[];

}  // namespace acltape::replayer::reproducer
