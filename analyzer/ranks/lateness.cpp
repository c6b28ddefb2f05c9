#include "analyzer/ranks/lateness.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "storage/checked_row.h"
#include "storage/database.h"

namespace acltape::analyzer::ranks {
namespace {

constexpr size_t kLeastMeetings = 8;

// A rank that is so little late each time is no finding.
constexpr int64_t kLeastNs = 100'000;

std::string Duration(int64_t ns) {
  const auto time = static_cast<double>(ns);
  if (ns < 1'000'000) return fmt::format("{:.3g} us", time / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.3g} ms", time / 1e6);
  return fmt::format("{:.3g} s", time / 1e9);
}

struct CallTime {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t call_id = 0;
  bool is_wait = false;  // for the other ranks
};

struct CallsBetween {
  std::vector<CallTime> spans;  // by begin
  int64_t before = 0;           // the last call that ended before the time in question, 0: none
};

// The time in waits up to a moment.
class WaitClock {
 public:
  explicit WaitClock(const std::vector<CallTime>& spans) {
    for (const CallTime& span : spans) {
      if (!span.is_wait) continue;
      const int64_t begin = waits_.empty() ? span.begin : std::max(span.begin, waits_.back().end);
      if (span.end > begin) waits_.push_back({begin, span.end, Until(begin)});
    }
  }
  int64_t Until(int64_t ns) const {
    const auto next = std::ranges::upper_bound(waits_, ns, {}, &Row::begin);
    if (next == waits_.begin()) return 0;
    const Row& row = *std::prev(next);
    return row.before + std::min(ns, row.end) - row.begin;
  }

 private:
  struct Row {
    int64_t begin = 0;
    int64_t end = 0;
    int64_t before = 0;  // the sum of the rows before it
  };
  std::vector<Row> waits_;  // one after the other
};

// The calls of a process in a time. Two kinds wait for other ranks: calls of HCCL, and a
// synchronisation with no work between it and a collective. That a process comes late out of one
// says how busy the host is; the program did nothing meanwhile.
CallsBetween ReadCallsBetween(const storage::Reader& trace, int64_t process, int64_t from_ns,
                              int64_t to_ns, int64_t before_call) {
  enum Role { kOther = 0, kWork = 1, kCollective = 2, kSynchronisation = 3 };
  // Ids grow in the order in which calls began, so that those before `before_call` are asked for
  // backwards until one ended before the time in question.
  storage::Statement rows(
      trace.database(),
      "SELECT c.call_id, c.begin_ns, c.end_ns, CASE WHEN c.op GLOB 'Hccl*' THEN 2 "
      "WHEN c.op GLOB 'aclrtSynchronize*' THEN 3 "
      "WHEN c.op GLOB 'aclnn*' AND c.op NOT GLOB '*GetWorkspaceSize' OR c.op GLOB 'aclrtMemcpy*' "
      "OR c.op GLOB 'aclrtMemset*' OR c.op GLOB 'aclrtLaunch*' OR c.op GLOB 'aclop*Execute*' "
      "OR c.op GLOB 'aclmdl*Execute*' THEN 1 ELSE 0 END AS role "
      "FROM call c JOIN thread t ON t.thread_id = c.thread_id "
      "WHERE c.call_id < ?1 AND t.process_id = ?2 AND (c.leaf = 1 OR c.op GLOB 'acl*' OR "
      "c.op GLOB 'Hccl*') ORDER BY c.call_id DESC LIMIT 20000");
  rows.Bind(1, before_call);
  rows.Bind(2, process);
  const storage::CheckedRow row(rows, trace.path(), "call");
  CallsBetween found;
  std::vector<CallTime> synchronisations;  // with no work between them and the rows to come
  bool in_time = true;                     // no call ended before the time in question yet
  while (rows.Next()) {
    const CallTime span{row.Integer(1, "begin_ns", -kMost, kMost),
                        row.Integer(2, "end_ns", -kMost, kMost), row.Id("call_id")};
    const auto role = row.Integer(3, "role", kOther, kSynchronisation);
    const bool inside = span.begin < to_ns && span.end > from_ns;
    if (role == kWork || role == kCollective) {
      for (CallTime& waiting : synchronisations) {
        waiting.is_wait = role == kCollective;
        found.spans.push_back(waiting);
      }
      synchronisations.clear();
    }
    if (inside && in_time) {
      auto& list = role == kSynchronisation ? synchronisations : found.spans;
      list.push_back(span);
      list.back().is_wait = role == kCollective;
    }
    if (span.end <= from_ns && in_time) {
      found.before = span.call_id;
      in_time = false;
    }
    if (!in_time && synchronisations.empty()) break;
  }
  found.spans.insert(found.spans.end(), synchronisations.begin(), synchronisations.end());
  std::ranges::sort(found.spans, {}, &CallTime::begin);
  return found;
}

}  // namespace

std::map<int64_t, RankTimes> SumByRank(const Communication& all, const std::vector<Wait>& waits) {
  std::map<int64_t, RankTimes> sums;
  for (const auto& [process, rank] : all.ranks) sums[process] = {};
  for (const auto& [process, runs] : all.runs) {
    RankTimes& sum = sums[process];
    for (const Run& run : runs) {
      ++sum.collectives;
      sum.sent_bytes += run.what->sent_bytes;
      sum.received_bytes += run.what->received_bytes;
    }
  }
  for (const Wait& wait : waits) {
    for (const auto& [rank, waited] : wait.waited_by) {
      sums[wait.communicator->processes.at(rank)].waited_ns += waited;
    }
    RankTimes& late = sums[wait.communicator->processes.at(wait.late_rank)];
    ++late.late;
    late.waited_for_ns += wait.waited_ns;
  }
  return sums;
}

std::map<std::pair<int64_t, int64_t>, int64_t> SumByPair(const std::vector<Wait>& waits) {
  std::map<std::pair<int64_t, int64_t>, int64_t> waited;
  for (const Wait& wait : waits) {
    const auto& processes = wait.communicator->processes;
    for (const auto& [rank, ns] : wait.waited_by) {
      if (rank != wait.late_rank) waited[{processes.at(rank), processes.at(wait.late_rank)}] += ns;
    }
  }
  return waited;
}

std::string Stay::Text() const {
  return ns <= 0 ? std::string() : fmt::format("{} {}", Duration(ns), what);
}

Stay LongestStay(const storage::Reader& trace, int64_t process, int64_t from_ns, int64_t to_ns,
                 int64_t before_call, Lines& lines) {
  const CallsBetween calls = ReadCallsBetween(trace, process, from_ns, to_ns, before_call);
  const CallTime* longest = nullptr;
  int64_t covered = from_ns;
  int64_t latest = calls.before;  // the call that ended last so far
  CallTime gap;                   // its call_id is the call before it
  int64_t after_gap = 0;
  const WaitClock waits(calls.spans);
  const auto time = [&](const CallTime& span) {
    const int64_t begin = std::max(span.begin, from_ns);
    const int64_t end = std::min(span.end, to_ns);
    return end - begin - (waits.Until(end) - waits.Until(begin));
  };
  const auto look_at_gap = [&](int64_t until, int64_t next_call) {
    if (until - covered > gap.end - gap.begin) {
      gap = {covered, until, latest};
      after_gap = next_call;
    }
  };
  for (const CallTime& span : calls.spans) {
    look_at_gap(span.begin, span.call_id);
    if (span.end > covered) {
      covered = span.end;
      latest = span.call_id;
    }
    if (span.is_wait) continue;
    if (longest == nullptr || time(span) > time(*longest)) longest = &span;
  }
  if (covered < to_ns) look_at_gap(to_ns, before_call);
  const int64_t gap_ns = gap.end - gap.begin;
  if (longest != nullptr && time(*longest) >= gap_ns) {
    const std::string line = lines.Of(longest->call_id);
    return {time(*longest), line, fmt::format("in {} at {}", lines.Named(longest->call_id), line)};
  }
  const std::string after = lines.Of(after_gap);
  if (gap.call_id == 0)
    return {gap_ns, after, fmt::format("without a recorded call before {}", after)};
  const std::string where = fmt::format("between {} and {}", lines.Of(gap.call_id), after);
  return {gap_ns, where, "without a recorded call " + where};
}

std::vector<RankFinding> FindLateRanks(const storage::Reader& trace, const Communication& all,
                                       const std::vector<Wait>& waits, Lines& lines) {
  struct Sum {
    std::vector<const Wait*> meetings;
    std::map<int64_t, std::vector<const Wait*>> late;  // by rank
  };
  std::map<const Communicator*, Sum> sums;
  for (const Wait& wait : waits) {
    // That a stage of a pipeline waits for the stage before it is how pipelines work.
    if (wait.message) continue;
    sums[wait.communicator].meetings.push_back(&wait);
    sums[wait.communicator].late[wait.late_rank].push_back(&wait);
  }
  std::vector<RankFinding> findings;
  for (const auto& [communicator, sum] : sums) {
    if (sum.meetings.size() < kLeastMeetings) continue;
    const int64_t begin = sum.meetings.front()->last_ns;
    const int64_t end = sum.meetings.back()->last_ns;
    for (const auto& [rank, late] : sum.late) {
      const int64_t process = communicator->processes.at(rank);
      int64_t late_ns = 0;
      const Wait* worst = nullptr;
      for (const Wait* wait : late) {
        late_ns += wait->late_ns();
        if (worst == nullptr || wait->late_ns() > worst->late_ns()) worst = wait;
      }
      // The latest one may be the begin of the program.
      const int64_t others_ns = late_ns - worst->late_ns();
      const auto others = static_cast<int64_t>(late.size()) - 1;
      const bool mostly = late.size() * 10 >= sum.meetings.size() * 6;
      if (!mostly || others_ns * 10 < end - begin || others_ns < others * kLeastNs) continue;
      std::map<std::string, std::pair<int64_t, Stay>> places;  // the time there, and one example
      for (const Wait* wait : late) {
        const Stay stay = LongestStay(trace, process, wait->first_ns, wait->last_ns,
                                      wait->late_run().call_id, lines);
        auto& [ns, example] = places[stay.where];
        ns += stay.ns;
        if (stay.ns > example.ns) example = stay;
      }
      const auto place = std::ranges::max_element(
          places, {}, [](const auto& entry) { return entry.second.first; });
      if (place->second.first * 2 < late_ns) continue;
      const Run& run = worst->late_run();
      findings.push_back(
          {&FindRankRule("RANK-09"),
           run.what->call_id,
           all.NameOf(process),
           fmt::format("{} came last to {} of {} collectives of communicator {}, {} later than the "
                       "first rank in all; it spent {} of that {}",
                       all.NameOf(process), late.size(), sum.meetings.size(), communicator->name,
                       Duration(late_ns), Duration(place->second.first), place->second.second.what),
           {run.what->call_id}});
    }
  }
  return findings;
}

}  // namespace acltape::analyzer::ranks
