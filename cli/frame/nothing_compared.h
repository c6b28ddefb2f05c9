// A check that compared nothing has no verdict: it must not end like one that found everything
// equal.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "storage/error.h"

namespace acltape::cli {

constexpr int kExitCannotJudge = static_cast<int>(ErrorKind::kCannotJudge);

// Says on stderr, in one sentence, that nothing was compared, why, and what to do. Returns the exit
// code of the command. `reason` follows a colon and has no full stop.
inline int NothingCompared(const std::string& reason) {
  fmt::print(stderr, "acltape: nothing was compared: {}\n", reason);
  return kExitCannotJudge;
}

}  // namespace acltape::cli
