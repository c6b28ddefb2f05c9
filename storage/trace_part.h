// The part of a trace that a reader looks at, where the trace holds more than one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace acltape::storage {

// The two levels at which a program is recorded: leaves of PyTorch (aten) and calls of the device's
// C interface (acl). analyzer/level.h tells which of them a trace holds.
enum class Level : uint8_t { kAten, kAcl };

// The default is the whole trace, at the level that fits it best.
struct TracePart {
  // An id of the table `process`, or "rank:" and a rank. Empty: all processes.
  std::string process;
  // Nothing: the level that analyzer::PreferredLevel returns.
  std::optional<Level> level;
};

}  // namespace acltape::storage
