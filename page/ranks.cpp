#include "page/ranks.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "analyzer/ranks/comparison.h"
#include "storage/error.h"

namespace acltape::page {
namespace {

using analyzer::ranks::Comparison;
using analyzer::ranks::RankFinding;
using analyzer::ranks::RankTimes;
using analyzer::ranks::Wait;
using nlohmann::json;

constexpr size_t kMostMeetings = 20'000;

using Tracks = std::map<int64_t, size_t>;  // the place of each process in "ranks"

// Adds the ranks in their order; the track of each process.
Tracks AddRanks(const Comparison& ranks, json& view) {
  std::vector<std::pair<int64_t, int64_t>> order;  // rank and process
  for (const auto& [process, rank] : ranks.all.ranks) order.emplace_back(rank, process);
  std::ranges::sort(order);
  const std::map<int64_t, RankTimes> sums = analyzer::ranks::SumByRank(ranks.all, ranks.waits);
  Tracks tracks;
  for (const auto& [rank, process] : order) {
    tracks.emplace(process, tracks.size());
    const RankTimes& sum = sums.at(process);
    json row{{"rank", rank},
             {"name", ranks.all.NameOf(process)},
             {"process", process},
             {"collectives", sum.collectives},
             {"sent", sum.sent_bytes},
             {"received", sum.received_bytes},
             {"waited", sum.waited_ns},
             {"late", sum.late},
             {"waited_for", sum.waited_for_ns},
             {"communication", nullptr},
             {"hidden", nullptr}};
    const auto overlap = ranks.overlap.ranks.find(process);
    if (overlap != ranks.overlap.ranks.end()) {
      row["communication"] = overlap->second.communication_ns;
      row["hidden"] = overlap->second.hidden_ns;
    }
    view["ranks"].push_back(std::move(row));
  }
  return tracks;
}

void AddMeetings(const Comparison& ranks, const Tracks& tracks, json& view) {
  std::vector<const Wait*> in_order;
  for (const Wait& wait : ranks.waits) in_order.push_back(&wait);
  std::ranges::stable_sort(in_order, {}, [](const Wait* wait) { return wait->first_ns; });
  const size_t shown = std::min(in_order.size(), kMostMeetings);
  view["left_out"] = in_order.size() - shown;
  for (size_t i = 0; i < shown; ++i) {
    const Wait& wait = *in_order[i];
    json arrivals = json::array();
    for (const auto& [rank, run] : wait.runs) {
      const auto waited = wait.waited_by.find(rank);
      const int64_t ns = waited == wait.waited_by.end() ? 0 : waited->second;
      arrivals.push_back({tracks.at(wait.communicator->processes.at(rank)), wait.last_ns - ns,
                          run->what->call_id});
    }
    const int64_t late = wait.communicator->processes.at(wait.late_rank);
    const auto& run = wait.late_run();
    view["meetings"].push_back({{"communicator", wait.communicator->name},
                                {"number", wait.number},
                                {"what", run.what->Text()},
                                {"late", tracks.at(late)},
                                {"arrivals", std::move(arrivals)}});
  }
}

void AddWaited(const Comparison& ranks, const Tracks& tracks, json& view) {
  for (const auto& [pair, ns] : analyzer::ranks::SumByPair(ranks.waits)) {
    if (ns == 0) continue;
    view["waited"].push_back({tracks.at(pair.first), tracks.at(pair.second), ns});
  }
}

void Fill(const storage::Reader& trace, json& view) {
  const Comparison ranks(trace);
  if (ranks.all.runs.empty()) {
    view["why_none"] =
        "The trace has no collective of HCCL, so that there are no ranks to set side by side.";
    return;
  }
  view["on_device"] = ranks.all.on_device;
  const Tracks tracks = AddRanks(ranks, view);
  AddMeetings(ranks, tracks, view);
  AddWaited(ranks, tracks, view);
  for (const RankFinding& one : ranks.findings) {
    view["findings"].push_back({{"rule", one.rule->id},
                                {"severity", storage::SeverityName(one.rule->severity)},
                                {"ranks", one.ranks},
                                {"call", one.call_id},
                                {"message", one.message},
                                {"advice", one.rule->advice}});
  }
}

}  // namespace

json RanksOf(const storage::Reader& trace) {
  json view{{"why_none", ""},
            {"on_device", false},
            {"ranks", json::array()},
            {"meetings", json::array()},
            {"left_out", 0},
            {"waited", json::array()},
            {"findings", json::array()}};
  try {
    Fill(trace, view);
  } catch (const Error& error) {
    view["why_none"] = error.what();
  }
  return view;
}

}  // namespace acltape::page
