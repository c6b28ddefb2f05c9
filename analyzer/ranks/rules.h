// The rules about programs of several ranks, and what they find.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/trace.h"

namespace acltape::analyzer::ranks {

struct RankRule {
  std::string_view id;  // "RANK-01"
  storage::Severity severity = storage::Severity::kError;
  std::string_view title;   // the mistake
  std::string_view advice;  // the edit
};
// In the order of their numbers; docs/many_ranks.md has the same table.
std::span<const RankRule> RankRules();
const RankRule& FindRankRule(std::string_view id);

struct RankFinding {
  const RankRule* rule = nullptr;
  int64_t call_id = 0;         // the call to look at first
  std::string ranks;           // "rank 1", the odd one; else "rank 0, rank 1"
  std::string message;         // one sentence with the lines of both sides
  std::vector<int64_t> calls;  // all calls that it is about
};

}  // namespace acltape::analyzer::ranks
