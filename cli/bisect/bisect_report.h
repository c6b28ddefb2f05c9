// The tables that `acltape bisect` prints and the rows that it keeps.
#pragma once

#include <string>

#include "cli/terminal/table.h"
#include "replayer/bisect/bisection.h"
#include "storage/results.h"

namespace acltape::cli {

// Describes both sides, and the elements that are altered, for people.
struct BisectSubject {
  std::string good;  // "eager"
  std::string bad;   // "captured, plan plan.json"
  std::string what;  // "calls"
};

// The line of each cause's first call is taken from `trace`.
Report BisectTables(const replayer::bisect::BisectionReport& report, const BisectSubject& subject,
                    const storage::Reader& trace);

// The outcome of one experiment as a JSON object.
std::string OutcomeJson(const replayer::script::Outcome& outcome);

// Writes a finding and a witness for each minimal cause; null: nothing is kept. `altered` is what
// the found calls were ("captured"), `plan_id` 0: without a plan. What an experiment with a planted
// fault found is no finding about the trace and leaves the witness alone.
void KeepCauses(const replayer::bisect::BisectionReport& report, const std::string& altered,
                int64_t plan_id, bool planted, storage::Results* results);

}  // namespace acltape::cli
