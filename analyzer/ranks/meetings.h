// The meetings of ranks: the n-th collective of a communicator on one rank is that on the others,
// because each rank issues the collectives of a communicator in the same order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analyzer/ranks/collectives.h"

namespace acltape::analyzer::ranks {

// The runs of one communicator by rank. A rank that the trace lacks has none.
struct Communicator {
  std::string name;
  int64_t ranks = 0;
  std::map<int64_t, int64_t> processes;                 // by rank in the communicator
  std::map<int64_t, std::vector<const Run*>> runs;      // collectives by rank
  std::map<int64_t, std::vector<const Run*>> messages;  // by rank
  bool ambiguous = false;  // two processes have the same rank of it: it is not compared

  // The processes of ranks that are recorded.
  std::vector<int64_t> ProcessesOf(const std::vector<int64_t>& of_ranks) const;
  // True if two ranks of it or more can be set side by side.
  bool IsCompared() const { return !ambiguous && runs.size() >= 2; }
  // The collectives that each recorded rank has.
  size_t meetings() const;
};

// By name. The runs live in `all`.
std::vector<Communicator> FindCommunicators(const Communication& all);

// How long the ranks of a meeting waited for the last one. A message is a meeting of two ranks.
struct Wait {
  const Communicator* communicator = nullptr;
  bool message = false;
  size_t number = 0;  // from 1, of a message among those from its sender to its receiver
  std::map<int64_t, const Run*> runs;  // by rank in the communicator
  int64_t late_rank = 0;               // in the communicator
  int64_t first_rank = 0;
  int64_t first_ns = 0;                  // the first arrival
  int64_t last_ns = 0;                   // the last one
  int64_t waited_ns = 0;                 // sum over the ranks that waited
  std::map<int64_t, int64_t> waited_by;  // by rank in the communicator

  int64_t late_ns() const { return last_ns - first_ns; }
  const Run& late_run() const { return *runs.at(late_rank); }
};
// Each meeting of two recorded ranks or more, up to the first one at which the ranks differ. Where
// the device's times were not recorded, arrivals are estimated from the host's, and messages have
// no waits: nobody knows then when a stream came to one.
std::vector<Wait> FindWaits(const Communication& all,
                            const std::vector<Communicator>& communicators);

// The ranks that differ from most others: those of the smallest group. All of them, where another
// group is as small: nobody knows then which ones are right.
template <typename Key>
std::vector<int64_t> OddOnes(const std::map<Key, std::vector<int64_t>>& groups) {
  std::vector<int64_t> odd;
  for (const auto& [key, ranks] : groups) {
    if (odd.empty() || ranks.size() < odd.size()) odd = ranks;
  }
  std::vector<int64_t> all;
  size_t as_small = 0;
  for (const auto& [key, ranks] : groups) {
    as_small += ranks.size() == odd.size() ? 1 : 0;
    all.insert(all.end(), ranks.begin(), ranks.end());
  }
  if (as_small == 1) return odd;
  std::sort(all.begin(), all.end());
  return all;
}

// True if both are one collective: the same kind. Counts and the like may differ.
bool IsSameKind(const Run& a, const Run& b);

}  // namespace acltape::analyzer::ranks
