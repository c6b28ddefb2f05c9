#include "analyzer/executions/queue_overtakes.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace acltape::analyzer::executions {
namespace {

// Launches of the queue that are compared with a call before them.
constexpr size_t kMostWaiting = 4096;

bool Conflict(const Work& work, size_t a, size_t b, int64_t* buffer) {
  bool conflict = false;
  work.VisitAccesses(a, [&](const ByteAccess& mine) {
    work.VisitAccesses(b, [&](const ByteAccess& other) {
      if (conflict || mine.buffer != other.buffer || !(mine.write || other.write)) return;
      if (mine.end <= other.first || other.end <= mine.first) return;
      conflict = true;
      *buffer = mine.buffer;
    });
  });
  return conflict;
}

}  // namespace

std::vector<Overtake> FindOvertakes(const Work& leaves, const Work& calls) {
  std::vector<Overtake> rows;
  std::unordered_set<int32_t> threads_of_leaves;
  for (const WorkCall& leaf : leaves.calls) threads_of_leaves.insert(leaf.thread);
  // Calls that name no leaf, of each stream, in order. They are few.
  std::unordered_map<int64_t, std::vector<uint32_t>> raw;
  for (size_t i = 0; i < calls.size(); ++i) {
    const WorkCall& call = calls.calls[i];
    const AclCallKind kind = calls.form(i).acl_kind();
    if (call.parent_id != 0 || call.status != 0 || call.model_id != 0 || call.stream_id == 0 ||
        !ChangesMemory(kind) || !threads_of_leaves.contains(call.thread)) {
      continue;
    }
    raw[call.stream_id].push_back(static_cast<uint32_t>(i));
  }
  if (raw.empty()) return rows;
  std::unordered_set<uint32_t> told;
  for (size_t i = 0; i < calls.size(); ++i) {
    const WorkCall& launch = calls.calls[i];
    if (launch.parent_id == 0 || launch.status != 0 || launch.model_id != 0) continue;
    const auto early = raw.find(launch.stream_id);
    if (early == raw.end() || !ChangesMemory(calls.form(i).acl_kind())) continue;
    if (threads_of_leaves.contains(launch.thread)) continue;  // issued where the leaf ran
    const int64_t leaf = leaves.Find(launch.parent_id);
    if (leaf < 0) continue;
    // Raw calls after the leaf and before its launch.
    const auto begin =
        std::upper_bound(early->second.begin(), early->second.end(), launch.parent_id,
                         [&](int64_t id, uint32_t call) { return id < calls.calls[call].call_id; });
    size_t seen = 0;
    for (auto call = begin; call != early->second.end() && *call < i && seen < kMostWaiting;
         ++call, ++seen) {
      int64_t buffer = 0;
      if (told.contains(*call) || !Conflict(calls, *call, i, &buffer)) continue;
      told.insert(*call);
      rows.push_back({*call, static_cast<uint32_t>(i), static_cast<uint32_t>(leaf), buffer});
    }
  }
  std::sort(rows.begin(), rows.end(),
            [](const Overtake& a, const Overtake& b) { return a.call < b.call; });
  return rows;
}

}  // namespace acltape::analyzer::executions
