#include "analyzer/ranks/rules.h"

#include <algorithm>

#include "storage/error.h"

namespace acltape::analyzer::ranks {
namespace {

using S = storage::Severity;

constexpr RankRule kRules[] = {
    {"RANK-01", S::kError, "ranks issue the collectives of a communicator in another order",
     "let each rank come to both lines in the same order: no branch that one rank alone takes"},
    {"RANK-02", S::kError, "ranks call one collective with other sizes, types or operations",
     "give the collective the same count, dtype, operation and root on each rank"},
    {"RANK-03", S::kError, "a rank does not come to a collective for which others wait",
     "find out why the rank ended or left the loop before; no rank may skip a collective"},
    {"RANK-04", S::kError, "a collective is in a graph on one rank and eager on another",
     "capture the step on each rank, or on none"},
    {"RANK-05", S::kError,
     "ranks issue collectives of two communicators in another order on a stream",
     "issue them in the same order on each rank, or give each communicator its own stream"},
    {"RANK-06", S::kError, "a message has no other side, or another size there",
     "pair each send with a receive of the same count and dtype on the other rank"},
    {"RANK-07", S::kError, "all ranks received the same collective, but other values",
     "compare the memory before and after: a stream writes it while the collective runs"},
    {"RANK-08", S::kNotice, "what ranks keep as replicas is no longer equal",
     "look for work that one rank alone does on it, or a wait that is missing before it"},
    {"RANK-09", S::kInfo, "the others wait for one rank again and again",
     "move work from this rank to the others, or begin the collective later on them"},
    {"RANK-10", S::kNotice,
     "collectives of one communicator are on two streams that nothing orders",
     "let one stream wait for the other, or give each stream a communicator of its own"},
    {"RANK-11", S::kError, "ranks execute graphs of different captures at one collective",
     "capture the same graphs in the same order on each rank, and execute the same one"},
};

}  // namespace

std::span<const RankRule> RankRules() { return kRules; }

const RankRule& FindRankRule(std::string_view id) {
  const auto* rule = std::ranges::find(kRules, id, &RankRule::id);
  if (rule == std::end(kRules)) {
    throw Error(ErrorKind::kInternal, "no rule " + std::string(id));
  }
  return *rule;
}

}  // namespace acltape::analyzer::ranks
