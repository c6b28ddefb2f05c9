#include "analyzer/ranks/overlap.h"

#include <algorithm>
#include <set>

#include "storage/checked_row.h"
#include "storage/database.h"

namespace acltape::analyzer::ranks {
namespace {

// A span of a trace lies between this, some 100 days, and its negative, so that sums are numbers.
constexpr int64_t kMostSpanNs = int64_t{1} << 53;

struct DeviceWork {
  std::vector<Span> communication;
  std::vector<Span> other;
};

// The work of each process, and the time of each collective that ran as it was called.
struct DeviceTimes {
  std::map<int64_t, DeviceWork> work;     // by process
  std::map<int64_t, int64_t> collective;  // by call
};

DeviceTimes LoadTimes(const storage::Reader& trace, const std::set<int64_t>& collectives,
                      const std::set<int64_t>& left_out) {
  storage::Statement rows(trace.database(),
                          "SELECT d.call_id, t.process_id, d.begin_ns, d.end_ns FROM device_span d "
                          "JOIN call_row c ON c.call_id = d.call_id "
                          "JOIN thread t ON t.thread_id = c.thread_id");
  const storage::CheckedRow row(rows, trace.path(), "device_span");
  DeviceTimes times;
  while (rows.Next()) {
    const int64_t call_id = row.Id("call_id");
    if (left_out.contains(call_id)) continue;
    const Span span = {row.Integer(2, "begin_ns", -kMostSpanNs, kMostSpanNs),
                       row.Integer(3, "end_ns", -kMostSpanNs, kMostSpanNs)};
    if (span.second <= span.first) continue;
    DeviceWork& work = times.work[row.Integer(1, "process_id", 0, kMost)];
    const bool communicates = collectives.contains(call_id);
    (communicates ? work.communication : work.other).push_back(span);
    if (!communicates) continue;
    int64_t& longest = times.collective[call_id];
    longest = std::max(longest, span.second - span.first);
  }
  return times;
}

void AddMoved(const Communicator& one, const DeviceTimes& times, Overlap& overlap) {
  for (size_t i = 0; i < one.meetings(); ++i) {
    int64_t least = INT64_MAX, bytes = 0;
    for (const auto& [rank, runs] : one.runs) {
      const Collective& what = *runs[i]->what;
      const auto time = times.collective.find(what.call_id);
      const bool known = what.model_id == 0 && time != times.collective.end();
      least = known ? std::min(least, time->second) : 0;
      bytes = std::max({bytes, what.sent_bytes, what.received_bytes});
      if (!known) break;
    }
    if (least <= 0 || least == INT64_MAX) continue;
    Overlap::Moved& moved = overlap.moved[&one];
    moved.bytes += bytes;
    moved.ns += least;
  }
}

}  // namespace

std::vector<Span> UnionOf(std::vector<Span> spans) {
  std::ranges::sort(spans);
  std::vector<Span> apart;
  for (const Span& span : spans) {
    if (apart.empty() || span.first > apart.back().second) {
      apart.push_back(span);
    } else {
      apart.back().second = std::max(apart.back().second, span.second);
    }
  }
  return apart;
}

int64_t TimeOf(const std::vector<Span>& apart) {
  int64_t time = 0;
  for (const Span& span : apart) time += span.second - span.first;
  return time;
}

int64_t CommonTime(const std::vector<Span>& a, const std::vector<Span>& b) {
  int64_t time = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const int64_t end = std::min(a[i].second, b[j].second);
    time += std::max<int64_t>(0, end - std::max(a[i].first, b[j].first));
    a[i].second < b[j].second ? ++i : ++j;
  }
  return time;
}

Overlap FindOverlap(const storage::Reader& trace, const Communication& all,
                    const std::vector<Communicator>& communicators) {
  Overlap overlap;
  if (!all.on_device) return overlap;
  std::set<int64_t> collectives, executions;
  for (const auto& [process, runs] : all.runs) {
    for (const Run& run : runs) {
      if (run.what->computes) continue;  // nobody knows which part of its time is communication
      (run.what->model_id == 0 ? collectives : executions).insert(run.call_id);
    }
  }
  overlap.graphs_left_out = static_cast<int64_t>(executions.size());
  const DeviceTimes times = LoadTimes(trace, collectives, executions);
  for (const auto& [process, runs] : all.runs) {
    RankOverlap& rank = overlap.ranks[process];
    const auto work = times.work.find(process);
    if (work == times.work.end()) continue;
    const std::vector<Span> communication = UnionOf(work->second.communication);
    rank.communication_ns = TimeOf(communication);
    rank.hidden_ns = CommonTime(communication, UnionOf(work->second.other));
  }
  for (const Communicator& one : communicators) {
    if (one.IsCompared()) AddMoved(one, times, overlap);
  }
  return overlap;
}

}  // namespace acltape::analyzer::ranks
