#include "analyzer/ranks/received_values.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "storage/checked_row.h"
#include "storage/database.h"

namespace acltape::analyzer::ranks {
namespace {

using Digests = std::map<int64_t, std::string>;

// The digest of what each collective received, by call.
Digests LoadReceived(const storage::Reader& trace) {
  Digests digests;
  storage::Statement rows(
      trace.database(),
      "SELECT s.call_id, min(s.digest), count(DISTINCT s.digest) FROM snapshot s "
      "WHERE s.moment = 'after' AND s.position >= 0 AND s.digest <> '' "
      "AND s.call_id IN (SELECT call_id FROM collective WHERE op IN "
      "('HcclAllReduce', 'HcclAllGather', 'HcclBroadcast') AND model_id IS NULL) "
      "GROUP BY s.call_id");
  const storage::CheckedRow row(rows, trace.path(), "snapshot");
  while (rows.Next()) {
    if (row.Integer(2, "digest", 0, kMost) == 1) digests[row.Id("call_id")] = row.Text(1, "digest");
  }
  return digests;
}

using RanksByDigest = std::map<std::string, std::vector<int64_t>>;

// The ranks by what they received at a meeting; empty: they cannot be compared.
RanksByDigest GroupRanks(const Communicator& one, size_t meeting, const Digests& received) {
  RanksByDigest by_digest;
  const Run& first = *one.runs.begin()->second[meeting];
  for (const auto& [rank, runs] : one.runs) {
    const Run& run = *runs[meeting];
    const auto digest = received.find(run.what->call_id);
    const bool same =
        digest != received.end() && IsSameKind(first, run) && first.what->count == run.what->count;
    if (!same) return {};
    by_digest[digest->second].push_back(rank);
  }
  return by_digest;
}

}  // namespace

ReceivedReport CompareReceived(const storage::Reader& trace, const Communication& all,
                               const std::vector<Communicator>& communicators, Lines& lines) {
  ReceivedReport report;
  const Digests received = LoadReceived(trace);
  for (const Communicator& one : communicators) {
    if (!one.IsCompared()) continue;
    std::set<std::string> told;  // lines
    for (size_t i = 0; i < one.meetings(); ++i) {
      const RanksByDigest by_digest = GroupRanks(one, i, received);
      if (by_digest.empty()) continue;
      ++report.results;
      const Run& first = *one.runs.begin()->second[i];
      if (by_digest.size() == 1 || !told.insert(lines.Of(first.what->call_id)).second) continue;
      const std::vector<int64_t> odd = OddOnes(by_digest);
      const Run& run = *one.runs.at(odd.back())[i];
      const std::string who = all.NamesOf(one.ProcessesOf(odd));
      report.findings.push_back(
          {&FindRankRule("RANK-07"),
           run.what->call_id,
           who,
           fmt::format("collective {} of communicator {}, {} at {}: {}", i + 1, one.name,
                       run.what->Text(), lines.Of(run.what->call_id),
                       odd.size() == one.runs.size()
                           ? who + " received different values"
                           : who + " received other values than the other ranks"),
           {run.what->call_id, first.what->call_id}});
    }
  }
  return report;
}

}  // namespace acltape::analyzer::ranks
