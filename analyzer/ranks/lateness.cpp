#include "analyzer/ranks/lateness.h"

#include <fmt/format.h>

#include <algorithm>

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
  // Ids grow in the order in which calls began, so that those before `before_call` are asked for
  // backwards until one ended before the time in question.
  storage::Statement rows(trace.database(),
                          "SELECT c.call_id, c.begin_ns, c.end_ns FROM call c JOIN thread t "
                          "ON t.thread_id = c.thread_id WHERE c.call_id < ?1 AND t.process_id = ?2 "
                          "AND (c.leaf = 1 OR c.op LIKE 'acl%') AND c.op NOT LIKE 'Hccl%' "
                          "AND c.op NOT LIKE 'aclrtSynchronize%' "
                          "ORDER BY c.call_id DESC LIMIT 20000");
  rows.Bind(1, before_call);
  rows.Bind(2, process);
  const storage::CheckedRow row(rows, trace.path(), "call");
  struct Span {
    int64_t begin = 0;
    int64_t end = 0;
    int64_t call_id = 0;
  };
  std::vector<Span> spans;
  int64_t before = 0;  // the last call that ended before the time in question
  while (rows.Next()) {
    const Span span{row.Integer(1, "begin_ns", -kMost, kMost),
                    row.Integer(2, "end_ns", -kMost, kMost), row.Id("call_id")};
    if (span.begin < to_ns && span.end > from_ns) spans.push_back(span);
    if (span.end <= from_ns) {
      before = span.call_id;
      break;
    }
  }
  std::ranges::sort(spans, {}, &Span::begin);
  const Span* longest = nullptr;
  int64_t covered = from_ns;
  int64_t latest = before;  // the call that ended last so far
  Span gap;                 // its call_id is the call before it
  int64_t after_gap = 0;
  const auto time = [&](const Span& span) {
    return std::min(span.end, to_ns) - std::max(span.begin, from_ns);
  };
  const auto look_at_gap = [&](int64_t until, int64_t next_call) {
    if (until - covered > gap.end - gap.begin) {
      gap = {covered, until, latest};
      after_gap = next_call;
    }
  };
  for (const Span& span : spans) {
    look_at_gap(span.begin, span.call_id);
    if (span.end > covered) {
      covered = span.end;
      latest = span.call_id;
    }
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
