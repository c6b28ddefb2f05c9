// Findings with one cause, which one edit removes. Every list of findings for people tells them as
// one.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace acltape::analyzer::lint {

// The part of a finding on which its cause depends.
struct CauseKey {
  std::string_view cause;    // Finding::cause
  std::string_view rule;     // its id
  std::string_view verdict;  // "reproduced", "predicted", "refuted"
  bool apart = false;        // those that are told apart, such as known ones, share no cause
};

struct FindingCause {
  std::vector<size_t> members;  // indices of findings, ascending
  // The finding that tells of the cause: the first that a device reproduced, else the first of the
  // lowest rule.
  size_t lead = 0;
};

// In the order of the first finding of each.
std::vector<FindingCause> CausesOf(const std::vector<CauseKey>& findings);

}  // namespace acltape::analyzer::lint
