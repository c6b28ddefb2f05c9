#include "analyzer/ranks/comparison.h"

#include <algorithm>
#include <iterator>

#include "analyzer/ranks/disagreements.h"
#include "analyzer/ranks/stream_order.h"

namespace acltape::analyzer::ranks {

Comparison::Comparison(const storage::Reader& trace)
    : all(LoadCommunication(trace)),
      communicators(FindCommunicators(all)),
      waits(FindWaits(all, communicators)),
      lines(trace) {
  const auto add = [this](std::vector<RankFinding> found) {
    std::ranges::move(found, std::back_inserter(findings));
  };
  if (!all.in_parts) {
    add(FindDisagreements(all, communicators, lines));
    received = CompareReceived(trace, all, communicators, lines);
    add(std::move(received.findings));
    replicas = FindReplicas(trace, all, communicators, lines);
    add(std::move(replicas.findings));
    add(FindLateRanks(trace, all, waits, lines));
  }
  // One rank alone tells this, also where only parts of it were recorded.
  add(FindUnorderedStreams(trace, all, lines));
  overlap = FindOverlap(trace, all, communicators);
}

}  // namespace acltape::analyzer::ranks
