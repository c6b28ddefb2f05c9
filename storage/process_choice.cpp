#include "storage/process_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

#include "meaning/options.h"
#include "storage/database.h"
#include "storage/process_ranks.h"
#include "storage/reader.h"

namespace acltape::storage {
namespace {

struct Process {
  int64_t id = 0;
  std::string text;  // "2 (python3, pid 9217, rank 0)"
  std::string choice;
  int64_t rank = 0;  // the greatest number: it has none
};

// The processes that have one of the threads. When no threads are given, all processes.
std::vector<Process> ListProcesses(Database& trace, const std::string& path,
                                   const std::set<int64_t>& threads) {
  std::vector<Process> processes;
  const std::map<int64_t, int64_t> ranks = RanksOfProcesses(trace, path);
  Statement rows(trace,
                 "SELECT p.process_id, p.name, p.pid, t.thread_id FROM process p JOIN "
                 "thread t USING (process_id) ORDER BY p.process_id");
  while (rows.Next()) {
    const int64_t id = rows.Integer(0);
    if (!processes.empty() && processes.back().id == id) continue;
    if (!threads.empty() && threads.count(rows.Integer(3)) == 0) continue;
    const auto rank = ranks.find(id);
    const bool ranked = rank != ranks.end();
    processes.push_back({id,
                         fmt::format("{} ({}, pid {}{})", id, rows.Text(1), rows.Integer(2),
                                     ranked ? fmt::format(", rank {}", rank->second) : ""),
                         ranked ? RankText(rank->second) : std::to_string(id),
                         ranked ? rank->second : std::numeric_limits<int64_t>::max()});
  }
  std::stable_sort(processes.begin(), processes.end(),
                   [](const Process& a, const Process& b) { return a.rank < b.rank; });
  return processes;
}

std::string TextOf(const std::vector<Process>& processes) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < processes.size() && i < kShown; ++i) {
    text += (i == 0 ? "" : ", ") + processes[i].text;
  }
  if (processes.size() > kShown) text += fmt::format(" and {} more", processes.size() - kShown);
  return text;
}

// The only process that launched an operator on a device, of several that opened one; 0: none, or
// several.
int64_t OnlyWithDeviceWork(const Reader& trace) {
  Statement opened(trace.database(), "SELECT DISTINCT process_id FROM stream");
  Statement works(
      trace.database(),
      "SELECT EXISTS (SELECT 1 FROM call_row c JOIN thread t USING (thread_id) JOIN "
      "signature s USING (signature_id) JOIN op o USING (op_id) WHERE t.process_id = ?1 "
      "AND c.bits & 4 AND ((c.bits >> 3) >= 2 OR o.dialect = 'aclnn'))");
  int64_t only = 0;
  while (opened.Next()) {
    works.Reset();
    works.Bind(1, opened.Integer(0));
    if (!works.Next() || works.Integer(0) == 0) continue;
    if (only != 0) return 0;
    only = opened.Integer(0);
  }
  return only;
}

}  // namespace

std::string RankText(int64_t rank) { return fmt::format("{}{}", kRankPrefix, rank); }

int64_t FindProcess(Database& trace, const std::string& path, const std::string& wanted) {
  if (wanted.empty()) return 0;
  std::string_view digits = wanted;
  const bool ranked = digits.starts_with(kRankPrefix);
  if (ranked) digits.remove_prefix(kRankPrefix.size());
  int64_t number = -1;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (read.ec == std::errc() && read.ptr == digits.data() + digits.size()) {
    if (ranked) {
      for (const auto& [process, rank] : RanksOfProcesses(trace, path)) {
        if (rank == number) return process;
      }
    } else {
      Statement find(trace, "SELECT process_id FROM process WHERE process_id = ?");
      find.Bind(1, number);
      if (find.Next()) return find.Integer(0);
    }
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("'{}' is no process of '{}', which has {}; name one by its number or, "
                          "with a rank, as rank:N",
                          wanted, path, TextOf(ListProcesses(trace, path, {}))));
}

int64_t DefaultProcess(const Reader& trace) {
  if (trace.process() != 0) return 0;
  if (trace.database().Integer("SELECT count(DISTINCT process_id) FROM thread") < 2) return 0;
  // Where several are left, or none, 0 stands for all.
  const auto only_one = [](Statement& rows) {
    if (!rows.Next()) return int64_t{0};
    const int64_t process = rows.Integer(0);
    return rows.Next() ? 0 : process;
  };
  if (trace.database().Integer("SELECT EXISTS (SELECT 1 FROM stream)") != 0) {
    Statement with_device(trace.database(), "SELECT DISTINCT process_id FROM stream LIMIT 2");
    const int64_t only = only_one(with_device);
    return only != 0 ? only : OnlyWithDeviceWork(trace);
  }
  Statement no_workers(trace.database(),
                       "SELECT DISTINCT process_id FROM thread JOIN process USING (process_id) "
                       "WHERE process.name != ? LIMIT 2");
  no_workers.Bind(1, kDataLoaderWorker);
  return only_one(no_workers);
}

std::string ChosenProcessText(const Reader& trace) {
  const int64_t chosen = DefaultProcess(trace);
  if (chosen == 0) return "";
  const std::vector<Process> processes = ListProcesses(trace.database(), trace.path(), {});
  for (const Process& process : processes) {
    if (process.id != chosen) continue;
    return fmt::format("of {} processes in '{}' this is about {}; @process picks another"_cli,
                       processes.size(), trace.path(), process.text);
  }
  return "";
}

std::vector<TracePart> ProgramsOf(const Reader& trace) {
  if (trace.process() != 0 || DefaultProcess(trace) != 0) return {trace.part()};
  std::vector<TracePart> programs;
  Statement rows(trace.database(),
                 "SELECT DISTINCT process_id FROM thread JOIN call USING (thread_id) ORDER BY 1");
  while (rows.Next()) {
    TracePart& program = programs.emplace_back(trace.part());
    program.process = std::to_string(rows.Integer(0));
  }
  return programs.size() < 2 ? std::vector<TracePart>{trace.part()} : programs;
}

std::set<int64_t> ThreadsLeftOut(const Reader& trace) {
  std::set<int64_t> threads;
  const int64_t process = DefaultProcess(trace);
  if (process == 0) return threads;
  Statement rows(trace.database(), "SELECT thread_id FROM thread WHERE process_id != ?");
  rows.Bind(1, process);
  while (rows.Next()) threads.insert(rows.Integer(0));
  return threads;
}

void RequireOneProcess(const Reader& trace, const std::set<int64_t>& threads) {
  if (threads.size() < 2) return;
  const std::vector<Process> processes = ListProcesses(trace.database(), trace.path(), threads);
  if (processes.size() < 2) return;
  throw Error(
      ErrorKind::kUsage,
      fmt::format("'{}' holds the work of {} processes, which is never one step: {}; choose "
                  "one with @process {}"_cli,
                  trace.path(), processes.size(), TextOf(processes), processes.front().choice));
}

}  // namespace acltape::storage
