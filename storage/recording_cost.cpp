#include "storage/recording_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "meaning/options.h"
#include "storage/database.h"
#include "storage/json_text.h"

namespace acltape::storage {
namespace {

constexpr size_t kMostThreads = 16;  // in the row
constexpr int64_t kMostRing = int64_t{1} << 30;
constexpr int64_t kMostBacklog = int64_t{16} << 30;  // as large as a spool may become

// A number of the row. The members of RecordingCost and ThreadCost are listed once.
template <typename T>
struct Member {
  const char* name;
  int64_t T::*value;
};
constexpr Member<RecordingCost> kCostMembers[] = {{"ring_bytes", &RecordingCost::ring_bytes},
                                                  {"backlog_bytes", &RecordingCost::backlog_bytes},
                                                  {"value_bytes", &RecordingCost::value_bytes},
                                                  {"values_ns", &RecordingCost::values_ns},
                                                  {"more_threads", &RecordingCost::more_threads}};
constexpr Member<ThreadCost> kThreadMembers[] = {
    {"thread_id", &ThreadCost::thread_id},           {"own_ns", &ThreadCost::own_ns},
    {"counted_ns", &ThreadCost::counted_ns},         {"timed_hooks", &ThreadCost::timed_hooks},
    {"waited_ns", &ThreadCost::waited_ns},           {"ring_needed", &ThreadCost::ring_needed},
    {"longest_gap_ns", &ThreadCost::longest_gap_ns}, {"lived_ns", &ThreadCost::lived_ns},
    {"input_bytes", &ThreadCost::input_bytes},       {"output_bytes", &ThreadCost::output_bytes},
    {"record_bytes", &ThreadCost::record_bytes}};

// "name":1,
template <typename T, size_t kCount>
void AppendMembers(std::string& text, const Member<T> (&members)[kCount], const T& from) {
  for (const Member<T>& member : members) {
    text += fmt::format("\"{}\":{},", member.name, from.*member.value);
  }
}

// json_extract for each member, as columns. Anything that is no number counts as 0.
template <typename T, size_t kCount>
std::string Columns(const Member<T> (&members)[kCount], const char* object) {
  std::string columns;
  for (const Member<T>& member : members) {
    columns += fmt::format(", json_extract({}, '$.{}')", object, member.name);
  }
  return columns;
}

template <typename T, size_t kCount>
void TakeMembers(const Statement& row, int column, const Member<T> (&members)[kCount], T& into) {
  for (const Member<T>& member : members) {
    into.*member.value = std::max<int64_t>(0, row.Integer(column++));
  }
}

// "64M", as options take it.
std::string SizeText(int64_t bytes) {
  if (bytes % (int64_t{1} << 30) == 0) return fmt::format("{}G", bytes >> 30);
  return bytes % (1 << 20) == 0 ? fmt::format("{}M", bytes >> 20) : fmt::format("{}K", bytes >> 10);
}

// The next power of two that leaves a tenth free.
int64_t RoundUp(int64_t bytes) {
  return static_cast<int64_t>(
      std::bit_ceil(static_cast<uint64_t>(bytes) + static_cast<uint64_t>(bytes) / 10));
}

// A level of values below another, and what of a thread's bytes it would have kept.
struct LessPayload {
  const char* than;
  const char* option;
  bool inputs;  // contents of inputs are kept
};
// The level that keeps most comes first.
const LessPayload kLessPayload[] = {
    {"all", "@payload inputs"_cli, true},
    {"all", "@payload digest"_cli, false},
    {"inputs", "@payload none"_cli, false},
};

// True if the thread would not have waited with these values alone: its bytes would all have fitted
// into its ring, or come so slowly that the longest gap between two looks brought a quarter of it.
bool IsEnough(const RecordingCost& cost, const ThreadCost& thread, const LessPayload& less) {
  constexpr double kSafety = 4;  // records do not come evenly
  const double kept = static_cast<double>(thread.record_bytes) +
                      (less.inputs ? static_cast<double>(thread.input_bytes) : 0.0);
  const auto ring = static_cast<double>(cost.ring_bytes);
  if (kept <= ring) return true;
  const double time = static_cast<double>(thread.lived_ns) - static_cast<double>(thread.waited_ns);
  return time > 0 && kSafety * kept * static_cast<double>(thread.longest_gap_ns) / time <= ring;
}

// The option that asks for fewer values and would have been enough, or an empty text.
std::string PayloadRemedy(const RecordingCost& cost, std::span<const ThreadCost> waiting) {
  for (const LessPayload& less : kLessPayload) {
    if (cost.payload != less.than) continue;
    const bool enough = std::all_of(waiting.begin(), waiting.end(), [&](const auto& thread) {
      return IsEnough(cost, thread, less);
    });
    if (enough) return less.option;
  }
  return "";
}

std::string SizeRemedy(const RecordingCost& cost, std::span<const ThreadCost> waiting) {
  const int64_t given = std::min(cost.ring_bytes, kMostRing);
  int64_t largest = 0;
  int64_t ahead = 0;  // bytes that did not fit, all threads together
  for (const ThreadCost& thread : waiting) {
    largest = std::max(largest, std::min(thread.ring_needed, kMostBacklog));
    ahead += std::max<int64_t>(0, std::min(thread.ring_needed, kMostBacklog) - given);
    ahead = std::min(ahead, kMostBacklog);
  }
  if (cost.backlog_was_full) {
    if (cost.backlog_bytes <= 0) return "";
    const int64_t backlog = RoundUp(std::min(cost.backlog_bytes, kMostBacklog) + ahead);
    return backlog <= kMostBacklog ? fmt::format("{} {}", "@backlog"_cli, SizeText(backlog)) : "";
  }
  const int64_t ring = RoundUp(std::max(largest, given + 1));
  if (cost.size_was_limited || ring > kMostRing) return "";
  return fmt::format("{} {}", "@ring-size"_cli, SizeText(ring));
}

}  // namespace

std::string RecordingCostText(const RecordingCost& cost) {
  std::vector<const ThreadCost*> threads;
  for (const ThreadCost& thread : cost.threads) threads.push_back(&thread);
  const size_t shown = std::min(threads.size(), kMostThreads);
  std::partial_sort(threads.begin(), threads.begin() + static_cast<ptrdiff_t>(shown), threads.end(),
                    [](const ThreadCost* left, const ThreadCost* right) {
                      const double of_left =
                          static_cast<double>(left->own_ns) + static_cast<double>(left->waited_ns);
                      const double of_right = static_cast<double>(right->own_ns) +
                                              static_cast<double>(right->waited_ns);
                      return of_left != of_right ? of_left > of_right
                                                 : left->thread_id < right->thread_id;
                    });
  RecordingCost kept = cost;
  kept.more_threads += static_cast<int64_t>(threads.size() - shown);
  std::string text = "{\"payload\":";
  AppendQuoted(text, cost.payload);
  text += ',';
  AppendMembers(text, kCostMembers, kept);
  text += fmt::format("\"backlog_was_full\":{},\"size_was_limited\":{},\"threads\":[",
                      cost.backlog_was_full, cost.size_was_limited);
  for (size_t i = 0; i < shown; ++i) {
    text += i == 0 ? "{" : ",{";
    AppendMembers(text, kThreadMembers, *threads[i]);
    text.back() = '}';
  }
  return text + "]}";
}

std::optional<RecordingCost> RecordingCostOf(const Reader& trace) {
  const std::string row = fmt::format(
      "FROM meta WHERE key = '{}' AND json_valid(value) AND json_type(value) = 'object'",
      kRecordingCostKey);
  Statement whole(trace.database(), fmt::format("SELECT json_extract(value, '$.payload'), "
                                                "json_extract(value, '$.backlog_was_full'), "
                                                "json_extract(value, '$.size_was_limited'){} {}",
                                                Columns(kCostMembers, "value"), row));
  if (!whole.Next()) return std::nullopt;
  RecordingCost cost;
  cost.payload = whole.Text(0);
  cost.backlog_was_full = whole.Integer(1) != 0;
  cost.size_was_limited = whole.Integer(2) != 0;
  TakeMembers(whole, 3, kCostMembers, cost);
  Statement threads(
      trace.database(),
      fmt::format("WITH one AS (SELECT value {}), each AS (SELECT e.key AS place, e.value AS t "
                  "FROM one, json_each(one.value, '$.threads') e WHERE e.type = 'object') "
                  "SELECT p.pid, n.tid, n.name{} FROM each "
                  "LEFT JOIN thread n ON n.thread_id = json_extract(t, '$.thread_id') "
                  "LEFT JOIN process p USING (process_id) ORDER BY place",
                  row, Columns(kThreadMembers, "t")));
  while (threads.Next()) {
    ThreadCost& thread = cost.threads.emplace_back();
    thread.pid = threads.Integer(0);
    thread.tid = threads.Integer(1);
    thread.name = threads.Text(2);
    TakeMembers(threads, 3, kThreadMembers, thread);
  }
  return cost;
}

std::optional<double> OwnShare(const ThreadCost& thread) {
  if (thread.timed_hooks == 0 || thread.counted_ns <= 0) return std::nullopt;
  return std::clamp(static_cast<double>(thread.own_ns) / static_cast<double>(thread.counted_ns),
                    0.0, 1.0);
}

std::string RemedyForWaits(const RecordingCost& cost, std::span<const ThreadCost> threads) {
  std::vector<ThreadCost> waiting;
  for (const ThreadCost& thread : threads) {
    if (thread.waited_ns > 0) waiting.push_back(thread);
  }
  const bool known = std::all_of(waiting.begin(), waiting.end(),
                                 [](const auto& thread) { return thread.ring_needed > 0; });
  const std::string payload = known ? PayloadRemedy(cost, waiting) : "";
  const std::string size = known ? SizeRemedy(cost, waiting) : "";
  if (payload.empty() && size.empty()) {
    return "record fewer values (@payload), with larger rings, or to a faster disk"_cli;
  }
  const bool both = !payload.empty() && !size.empty();
  return fmt::format("{}{}{} would have spared it", payload, both ? " or " : "", size);
}

}  // namespace acltape::storage
