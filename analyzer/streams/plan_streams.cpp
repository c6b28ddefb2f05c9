#include "analyzer/streams/plan_streams.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>
#include <optional>

#include "analyzer/streams/chain_cover.h"
#include "analyzer/streams/list_schedule.h"
#include "analyzer/streams/partial_order.h"
#include "analyzer/streams/race_checker.h"
#include "analyzer/streams/waits.h"
#include "analyzer/streams/without_work.h"

namespace acltape::analyzer::streams {
namespace {

// The most streams of a region that is too large for its width to be known, if the user sets no
// limit.
constexpr int32_t kStreamsOfLargeRegions = 8;
// List schedules are made for each number of streams up to this one. Beyond it the number doubles.
constexpr int32_t kEachCountUpTo = 8;
// Merging chains is quadratic in their number.
constexpr int32_t kMostMergedChains = 512;

StreamAssignment OneStream(size_t nodes) {
  StreamAssignment assignment;
  assignment.stream_of.assign(nodes, 0);
  assignment.order.resize(nodes);
  std::iota(assignment.order.begin(), assignment.order.end(), 0);
  return assignment;
}

std::string Microseconds(double ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", ns / 1000);
  return text;
}

struct Candidate {
  StreamAssignment assignment;
  double makespan_ns = 0;
};

class Planner {
 public:
  Planner(const Dag& dag, const StreamOptions& options) : dag_(dag), options_(options) {
    // Without durations only the shape of the Dag decides.
    if (TotalWork(dag_) <= 0) {
      for (DagNode& node : dag_.nodes) node.duration_ns = 1000;
    }
    if (dag_.nodes.size() <= kMostClosureNodes) order_.emplace(dag_);
    if (order_) {
      width_ = std::max<int32_t>(1, static_cast<int32_t>(MaximumAntichain(*order_).size()));
    }
    most_ = options.streams > 0 ? options.streams : width_.value_or(kStreamsOfLargeRegions);
    if (width_) most_ = std::min(most_, *width_);
    most_ = std::clamp(most_, 1, std::max(1, static_cast<int32_t>(dag_.nodes.size())));
  }

  StreamAssignment Run(StreamCertificate* certificate) {
    const double one_ns = TotalWork(dag_);
    StreamAssignment best = OneStream(dag_.nodes.size());
    std::string reason = ReasonAgainstSeveral();
    int32_t merged_waits = 0;
    if (most_ > 1 && (reason.empty() || options_.several_if_slower)) {
      Candidate several = BestOfSeveral();
      const size_t waits = several.assignment.waits.size();
      several = Rate(MergeWaits(dag_, std::move(several.assignment), options_.costs));
      merged_waits = static_cast<int32_t>(waits - several.assignment.waits.size());
      if (reason.empty() && several.makespan_ns > one_ns * (1 - options_.noise)) {
        reason = ReasonOfCost(several, one_ns);
      }
      if (reason.empty() || options_.several_if_slower) {
        best = std::move(several.assignment);
        if (best.streams > 1) reason.clear();
      }
    }
    if (best.streams == 1) merged_waits = 0;
    if (certificate != nullptr) {
      *certificate = Certify(best, reason);
      certificate->merged_waits = merged_waits;
    }
    return best;
  }

  StreamCertificate Certify(const StreamAssignment& assignment, const std::string& reason) const;

 private:
  Candidate Rate(StreamAssignment assignment) const {
    const double makespan_ns = Simulate(dag_, assignment, options_.costs).makespan_ns;
    return {std::move(assignment), makespan_ns};
  }

  int Trials() const {
    return std::clamp(40000 / (static_cast<int>(dag_.nodes.size()) + 1), 20, 200);
  }

  // Returns the best improved assignment over all numbers of streams. More streams must bring a
  // gain.
  Candidate BestOfSeveral() const {
    std::optional<StreamAssignment> chains;
    if (order_) chains = CoverByChains(dag_, *order_);
    std::optional<Candidate> best;
    for (int32_t streams = 2;; streams = streams < kEachCountUpTo ? streams + 1 : 2 * streams) {
      streams = std::min(streams, most_);
      std::optional<Candidate> of_count = BestOf(streams, chains);
      if (of_count) {
        of_count = Rate(ImproveSchedule(dag_, std::move(of_count->assignment), Trials(),
                                        options_.noise / 4, options_.costs));
        const bool gains =
            !best || of_count->makespan_ns < best->makespan_ns * (1 - options_.noise);
        if (gains) best = std::move(of_count);
      }
      if (streams == most_) break;
    }
    if (best) return *std::move(best);
    // No list schedule used more than one stream.
    if (chains) return Rate(MergeStreams(dag_, *std::move(chains), most_, options_.costs));
    return Rate(OneStream(dag_.nodes.size()));
  }

  // Returns nothing if no candidate uses more than one stream.
  std::optional<Candidate> BestOf(int32_t streams,
                                  const std::optional<StreamAssignment>& chains) const {
    std::optional<Candidate> best;
    const auto offer = [&](StreamAssignment assignment) {
      if (assignment.streams < 2) return;
      Candidate candidate = Rate(std::move(assignment));
      if (!best || candidate.makespan_ns < best->makespan_ns) best = std::move(candidate);
    };
    if (chains && chains->streams == streams) offer(*chains);
    if (chains && chains->streams > streams && chains->streams <= kMostMergedChains) {
      offer(MergeStreams(dag_, *chains, streams, options_.costs));
    }
    offer(ListSchedule(dag_, streams, IssueOrder::kCriticalPath, options_.costs));
    offer(ListSchedule(dag_, streams, IssueOrder::kNumber, options_.costs));
    return best;
  }

  // Says why streams cannot help at any cost. The text is empty if they might help.
  std::string ReasonAgainstSeveral() const {
    if (dag_.nodes.empty()) return "One stream, because there is nothing to run.";
    if (options_.streams == 1) return "One stream, as asked for.";
    if (width_ == 1) return "One stream, because each node needs the one before it.";
    if (!options_.costs.overlaps) {
      return "One stream, because the device runs the streams of a graph one after the other.";
    }
    const double work_ns = TotalWork(dag_);
    const MakespanBound bound = BoundMakespan(dag_, most_, options_.costs);
    for (size_t r = 0; r < bound.lane_ns.size(); ++r) {
      if (bound.lane_ns[r] <= work_ns * (1 - options_.noise)) continue;
      char share[16];
      std::snprintf(share, sizeof share, "%.0f %%", 100 * bound.lane_ns[r] / work_ns);
      return "One stream, because " + std::string(ResourceName(static_cast<Resource>(r))) +
             " work is " + share + " of the time and is no faster on several.";
    }
    if (bound.critical_path_ns > work_ns * (1 - options_.noise)) {
      return "One stream, because the critical path takes " + Microseconds(bound.critical_path_ns) +
             " of the " + Microseconds(work_ns) + ".";
    }
    return {};
  }

  std::string ReasonOfCost(const Candidate& several, double one_ns) const {
    const StreamAssignment& assignment = several.assignment;
    const auto synchronisations =
        static_cast<double>(assignment.waits.size()) + 2.0 * (assignment.streams - 1);
    const double cost_ns = synchronisations * (options_.costs.record_ns + options_.costs.wait_ns);
    const double gain_ns = one_ns - several.makespan_ns;
    const std::string outcome = gain_ns < 0
                                    ? "would take " + Microseconds(-gain_ns) + " longer than"
                                    : "would save " + Microseconds(gain_ns) + " of";
    return "One stream, because the best on " + std::to_string(assignment.streams) + " " + outcome +
           " its " + Microseconds(one_ns) + ": " +
           std::to_string(static_cast<int>(synchronisations)) + " waits, forks and joins cost " +
           Microseconds(cost_ns) + ".";
  }

  // Each edge is a buffer of its own, which `from` writes and `to` reads.
  int32_t CountRaces(const StreamAssignment& assignment) const {
    std::vector<std::vector<ByteAccess>> accesses(dag_.nodes.size());
    for (size_t e = 0; e < dag_.edges.size(); ++e) {
      const auto buffer = static_cast<int64_t>(e) + 1;
      accesses[dag_.edges[e].from].push_back({buffer, 0, 1, true, nullptr});
      accesses[dag_.edges[e].to].push_back({buffer, 0, 1, false, nullptr});
    }
    return static_cast<int32_t>(CheckAssignment(assignment, accesses).races().size());
  }

  Dag dag_;
  const StreamOptions& options_;
  std::optional<PartialOrder> order_;
  std::optional<int32_t> width_;
  int32_t most_ = 1;  // most streams that are useful
};

StreamCertificate Planner::Certify(const StreamAssignment& assignment,
                                   const std::string& reason) const {
  StreamCertificate certificate;
  certificate.nodes = static_cast<int32_t>(dag_.nodes.size());
  certificate.edges = static_cast<int32_t>(dag_.edges.size());
  if (order_) certificate.covers = static_cast<int32_t>(order_->covers().size());
  certificate.width = width_.value_or(-1);
  certificate.streams = assignment.streams;
  certificate.waits = static_cast<int32_t>(assignment.waits.size());
  certificate.records = CountRecords(assignment);
  certificate.events = assignment.events;
  certificate.forks = certificate.joins = assignment.streams - 1;
  std::vector<int32_t> tasks;
  for (const DagNode& node : dag_.nodes) tasks.push_back(node.tasks);
  certificate.load = LoadOf(assignment, tasks);
  certificate.one_stream_ns = TotalWork(dag_);
  certificate.makespan_ns = Simulate(dag_, assignment, options_.costs).makespan_ns;
  certificate.bound = BoundMakespan(dag_, most_, options_.costs);
  const double bound_ns = certificate.bound.Greatest();
  certificate.gap = bound_ns > 0 ? certificate.makespan_ns / bound_ns - 1 : 0;
  const int32_t sides = assignment.streams - 1;
  const double synchronisation_ns =
      (certificate.records + (sides > 0 ? 1 : 0) + sides) * options_.costs.record_ns +
      (certificate.waits + 2 * sides) * options_.costs.wait_ns;
  if (synchronisation_ns > 0) {
    certificate.synchronisation =
        synchronisation_ns / (synchronisation_ns + certificate.one_stream_ns);
  }
  certificate.races = CountRaces(assignment);
  certificate.reason = reason;
  return certificate;
}

}  // namespace

StreamAssignment PlanStreams(const Dag& dag, const StreamOptions& options,
                             StreamCertificate* certificate) {
  const WithoutWork without(dag);
  if (without.none()) return Planner(dag, options).Run(certificate);
  StreamCertificate of_rest;
  const StreamAssignment rest = Planner(without.rest(), options).Run(&of_rest);
  const StreamAssignment all = without.Extend(rest);
  if (certificate != nullptr) {
    *certificate = Planner(dag, options).Certify(all, of_rest.reason);
    certificate->merged_waits = of_rest.merged_waits;
  }
  return all;
}

}  // namespace acltape::analyzer::streams
