#include "storage/process_ranks.h"

#include <set>
#include <utility>

#include "storage/checked_row.h"
#include "storage/database.h"

namespace acltape::storage {
namespace {

constexpr int64_t kMostRank = UINT32_MAX;

struct Largest {
  int64_t ranks = -1;
  int64_t rank = 0;
};

// The largest communicator of each process.
std::map<int64_t, Largest> LargestCommunicators(Database& trace, const std::string& path) {
  std::map<int64_t, Largest> largest;
  Statement rows(trace,
                 "SELECT communicator_id, process_id, rank, ranks FROM communicator "
                 "ORDER BY communicator_id");
  const CheckedRow row(rows, path, "communicator");
  while (rows.Next()) {
    const int64_t ranks = row.Integer(3, "ranks", 0, kMostRank);
    Largest& so_far = largest[row.Integer(1, "process_id", 0, kMostId)];
    if (ranks > so_far.ranks) so_far = {ranks, row.Integer(2, "rank", 0, kMostRank)};
  }
  return largest;
}

}  // namespace

std::map<int64_t, int64_t> RanksOfProcesses(Database& trace, const std::string& path) {
  std::map<int64_t, int64_t> ranks;
  Statement rows(trace, "SELECT process_id, rank FROM process WHERE rank >= 0");
  const CheckedRow row(rows, path, "process");
  while (rows.Next()) ranks[row.Id("process_id")] = row.Integer(1, "rank", 0, kMostRank);
  const std::map<int64_t, Largest> largest = LargestCommunicators(trace, path);
  std::set<int64_t> different;
  for (const auto& [process, one] : largest) {
    const auto said = ranks.find(process);
    if (said != ranks.end()) different.insert(said->second);
  }
  if (different.size() == largest.size()) return ranks;
  for (const auto& [process, one] : largest) ranks[process] = one.rank;
  return ranks;
}

}  // namespace acltape::storage
