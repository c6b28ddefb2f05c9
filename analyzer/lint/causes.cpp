#include "analyzer/lint/causes.h"

#include <map>
#include <utility>

namespace acltape::analyzer::lint {
namespace {

bool LeadsBefore(const CauseKey& one, const CauseKey& other) {
  const bool shown = one.verdict == "reproduced";
  if (shown != (other.verdict == "reproduced")) return shown;
  return one.rule < other.rule;
}

}  // namespace

std::vector<FindingCause> CausesOf(const std::vector<CauseKey>& findings) {
  std::vector<FindingCause> causes;
  std::map<std::pair<std::string_view, bool>, size_t> known;
  for (size_t i = 0; i < findings.size(); ++i) {
    const CauseKey& one = findings[i];
    const auto [entry, fresh] = known.try_emplace({one.cause, one.apart}, causes.size());
    if (fresh) causes.push_back({{}, i});
    FindingCause& cause = causes[entry->second];
    cause.members.push_back(i);
    if (LeadsBefore(one, findings[cause.lead])) cause.lead = i;
  }
  return causes;
}

}  // namespace acltape::analyzer::lint
