#include "analyzer/plan/plan_dag.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "analyzer/calls/byte_set.h"
#include "analyzer/graph/hazards.h"

namespace acltape::analyzer::plan {
namespace {

// The place of a call among `calls`, or -1 if it is not one of them.
int32_t NodeOf(std::span<const size_t> calls, size_t call) {
  const auto found = std::lower_bound(calls.begin(), calls.end(), call);
  return found == calls.end() || *found != call ? -1 : static_cast<int32_t>(found - calls.begin());
}

int32_t NodeOf(const Work& work, std::span<const size_t> calls, int64_t call_id) {
  const int64_t call = work.Find(call_id);
  return call < 0 ? -1 : NodeOf(calls, static_cast<size_t>(call));
}

}  // namespace

std::vector<size_t> ActiveCalls(const Work& work, int64_t first_call, int64_t last_call) {
  std::vector<size_t> calls;
  const auto [first, end] = work.Between(first_call, last_call);
  for (int64_t call = first; call < end; ++call) {
    if (work.form(call).active()) calls.push_back(call);
  }
  return calls;
}

std::vector<std::vector<ByteAccess>> AccessesOf(const Work& work, std::span<const size_t> calls) {
  std::vector<std::vector<ByteAccess>> accesses(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    work.VisitAccesses(calls[i], [&](const ByteAccess& access) { accesses[i].push_back(access); });
  }
  return accesses;
}

std::vector<streams::DagEdge> EdgesOf(const Work& work, std::span<const size_t> calls) {
  std::vector<streams::DagEdge> edges;
  if (calls.empty()) return edges;
  for (const graph::Hazard& hazard : graph::FindHazards(work, calls.front(), calls.back() + 1)) {
    const int32_t from = NodeOf(calls, hazard.source);
    const int32_t to = NodeOf(calls, hazard.target);
    if (from >= 0 && to >= 0) edges.push_back({from, to});
  }
  const auto before = [](const streams::DagEdge& a, const streams::DagEdge& b) {
    return a.to != b.to ? a.to < b.to : a.from < b.from;
  };
  std::sort(edges.begin(), edges.end(), before);
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

streams::StreamAssignment AssignmentOf(const PlanRegion& region, const Work& work,
                                       std::span<const size_t> calls) {
  streams::StreamAssignment assignment;
  assignment.stream_of.assign(calls.size(), -1);
  for (const PlanPlacement& place : region.placements) {
    const int32_t node = NodeOf(work, calls, place.call_id);
    if (node < 0) continue;
    assignment.stream_of[node] = place.stream;
    assignment.order.push_back(node);
    assignment.streams = std::max(assignment.streams, place.stream + 1);
  }
  for (const PlanWait& wait : region.waits) {
    const int32_t from = NodeOf(work, calls, wait.record_after);
    const int32_t to = NodeOf(work, calls, wait.wait_before);
    if (from < 0 || to < 0) continue;
    assignment.waits.push_back({from, to, wait.event});
    assignment.events = std::max(assignment.events, wait.event + 1);
  }
  return assignment;
}

void SetAssignment(const streams::StreamAssignment& assignment, const Work& work,
                   std::span<const size_t> calls, PlanRegion& region) {
  region.placements.clear();
  region.waits.clear();
  std::vector<size_t> issued(calls.size());
  for (const int32_t node : assignment.order) {
    issued[node] = region.placements.size();
    region.placements.push_back({work.calls[calls[node]].call_id, assignment.stream_of[node],
                                 work.op(calls[node]).FullName()});
  }
  std::vector<streams::StreamWait> waits = assignment.waits;
  std::stable_sort(waits.begin(), waits.end(),
                   [&](const streams::StreamWait& a, const streams::StreamWait& b) {
                     return issued[a.wait_before] < issued[b.wait_before];
                   });
  for (const streams::StreamWait& wait : waits) {
    region.waits.push_back({work.calls[calls[wait.record_after]].call_id,
                            work.calls[calls[wait.wait_before]].call_id, wait.event});
  }
}

std::vector<bool> LateSources(const Work& work, std::span<const size_t> calls) {
  std::vector<bool> late(calls.size(), false);
  std::unordered_set<int64_t> filled;  // only these buffers need to be followed
  for (const size_t call : calls) {
    if (work.form(call).kind != LeafKind::kSource) continue;
    work.VisitAccesses(call, [&](const ByteAccess& access) { filled.insert(access.buffer); });
  }
  if (filled.empty()) return late;
  std::unordered_map<int64_t, ByteSet> touched;
  for (size_t i = 0; i < calls.size(); ++i) {
    const bool source = work.form(calls[i]).kind == LeafKind::kSource;
    work.VisitAccesses(calls[i], [&](const ByteAccess& access) {
      if (filled.count(access.buffer) == 0) return;
      ByteSet& bytes = touched[access.buffer];
      if (source && access.write && !bytes.Within(access.first, access.end).empty()) {
        late[i] = true;
      }
    });
    work.VisitAccesses(calls[i], [&](const ByteAccess& access) {
      if (filled.count(access.buffer) != 0) touched[access.buffer].Add(access.first, access.end);
    });
  }
  return late;
}

}  // namespace acltape::analyzer::plan
