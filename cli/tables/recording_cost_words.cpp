#include "cli/tables/recording_cost_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/terminal/table.h"
#include "storage/checked_row.h"

namespace acltape::cli {
namespace {

using storage::RecordingCost;
using storage::ThreadCost;

constexpr size_t kMostNamed = 3;            // threads
constexpr int64_t kLeastNs = 10'000'000;    // a shorter time of a thread tells no share
constexpr int64_t kLeastValues = 16 << 20;  // bytes, for a speed that says something
constexpr double kLeastPartOfFirst = 0.1;  // a thread with a smaller part of the first is not named

std::string Time(int64_t ns) { return HumanNs(static_cast<double>(ns)); }

bool HasSeveralProcesses(const RecordingCost& cost) {
  return std::any_of(cost.threads.begin(), cost.threads.end(),
                     [&](const auto& thread) { return thread.pid != cost.threads[0].pid; });
}

std::string Name(const ThreadCost& thread, bool several) {
  if (thread.tid == thread.pid) {
    return several ? fmt::format("main thread of process {}", thread.pid) : "main thread";
  }
  return fmt::format("thread {} ({})", storage::ShownValue(thread.name), thread.tid);
}

// "a; b; c and 4 more": the threads with the most, by `amount`.
template <typename Text>
std::string List(std::vector<ThreadCost> threads, int64_t ThreadCost::*amount, const Text& text) {
  std::stable_sort(threads.begin(), threads.end(), [&](const auto& left, const auto& right) {
    return left.*amount > right.*amount;
  });
  std::string list;
  size_t named = 0;
  for (const ThreadCost& thread : threads) {
    const double part =
        static_cast<double>(thread.*amount) / static_cast<double>(threads[0].*amount);
    if (named == kMostNamed || part < kLeastPartOfFirst) break;
    list += (named++ == 0 ? "" : "; ") + text(thread);
  }
  return list;
}

std::string Took(const RecordingCost& cost) {
  std::vector<ThreadCost> told;
  for (const ThreadCost& thread : cost.threads) {
    if (storage::OwnShare(thread) && thread.counted_ns >= kLeastNs && thread.own_ns > 0) {
      told.push_back(thread);
    }
  }
  if (told.empty()) return "";
  const ThreadCost& busiest = *std::max_element(
      told.begin(), told.end(),
      [](const auto& left, const auto& right) { return left.own_ns < right.own_ns; });
  const double percent = 100 * *storage::OwnShare(busiest);
  const bool several = HasSeveralProcesses(cost);
  return fmt::format("about {:.{}f} % of the busiest thread's time ({})", percent,
                     percent < 9.95 ? 1 : 0,
                     List(told, &ThreadCost::own_ns, [&](const ThreadCost& thread) {
                       return fmt::format("{}: {} of {}", Name(thread, several),
                                          Time(std::min(thread.own_ns, thread.counted_ns)),
                                          Time(thread.counted_ns));
                     }));
}

std::string Waited(const RecordingCost& cost) {
  std::vector<ThreadCost> waiting;
  for (const ThreadCost& thread : cost.threads) {
    if (thread.waited_ns > 0) waiting.push_back(thread);
  }
  if (waiting.empty()) return "";
  const bool several = HasSeveralProcesses(cost);
  return fmt::format("{}; {}",
                     List(waiting, &ThreadCost::waited_ns,
                          [&](const ThreadCost& thread) {
                            return Name(thread, several) + " " + Time(thread.waited_ns);
                          }),
                     storage::RemedyForWaits(cost, waiting));
}

std::string Values(const RecordingCost& cost) {
  if (cost.value_bytes < kLeastValues || cost.values_ns < kLeastNs) return "";
  const double speed =
      static_cast<double>(cost.value_bytes) / (static_cast<double>(cost.values_ns) / 1e9);
  return fmt::format("{}/s ({} in {})", HumanBytes(static_cast<int64_t>(std::min(speed, 1e18))),
                     HumanBytes(cost.value_bytes), Time(cost.values_ns));
}

}  // namespace

RecordingCostWords WordsOf(const RecordingCost& cost) {
  return {Took(cost), Waited(cost), Values(cost)};
}

RecordingCostWords CostWordsOf(const storage::Reader& trace) {
  const std::optional<RecordingCost> cost = storage::RecordingCostOf(trace);
  return cost ? WordsOf(*cost) : RecordingCostWords{};
}

}  // namespace acltape::cli
