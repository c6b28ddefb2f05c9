// A check that compared nothing, or too little, has no verdict: it must not end like one that found
// everything equal.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "analyzer/calls/coverage.h"
#include "storage/error.h"

namespace acltape::cli {

constexpr int kExitCannotJudge = static_cast<int>(ErrorKind::kCannotJudge);

// Says on stderr, in one sentence, that nothing was compared, why, and what to do. Returns the exit
// code of the command. `reason` follows a colon and has no full stop.
inline int NothingCompared(const std::string& reason) {
  fmt::print(stderr, "acltape: nothing was compared: {}\n", reason);
  return kExitCannotJudge;
}

// The same where something was compared, but too little for a verdict.
inline int TooLittleCompared(const analyzer::Coverage& coverage, const std::string& remedy) {
  fmt::print(stderr,
             "acltape: there is no verdict: compared outputs tell of {} of the {} leaves that "
             "computed, and equal is said from 95 % on; {}\n",
             coverage.covered, coverage.computed, remedy);
  return kExitCannotJudge;
}

}  // namespace acltape::cli
