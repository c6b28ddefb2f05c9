// What `acltape bisect` prints and keeps.
#pragma once

#include <string>

#include "cli/table.h"
#include "replayer/bisect/bisection.h"
#include "storage/results.h"

namespace acltape::cli {

// What both sides are, for people.
struct BisectSubject {
  std::string good;  // "eager"
  std::string bad;   // "captured, plan plan.json"
  std::string what;  // "calls"
};

Report BisectTables(const replayer::BisectionReport& report, const BisectSubject& subject);

// The outcome of one experiment as a JSON object.
std::string OutcomeJson(const replayer::Outcome& outcome);

}  // namespace acltape::cli
