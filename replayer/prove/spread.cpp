#include "replayer/prove/spread.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <map>
#include <set>

#include "analyzer/graph/hazards.h"

namespace acltape::replayer::prove {
namespace {

using analyzer::LeafKind;

// Returns how wrong an output is. A NaN counts as worse than any number.
double Severity(const WrongOutput& output) {
  if (!output.has_values) return -1;
  return std::isnan(output.max_rel) || output.max_ulp < 0 ? HUGE_VAL : output.max_rel;
}

class Spreading {
 public:
  Spreading(const analyzer::Work& work, const std::vector<WrongOutput>& carried,
            const std::vector<WrongOutput>& golden, const std::vector<GraphRange>& graphs)
      : work_(work), carried_(ByCall(carried)), golden_(ByCall(golden)), graphs_(graphs) {
    readers_.resize(work.size());
    sources_.resize(work.size());
    for (const analyzer::graph::Hazard& hazard :
         analyzer::graph::FindHazards(work, 0, work.size())) {
      if (hazard.kind != analyzer::graph::HazardKind::kRaw) continue;
      auto& sources = sources_[hazard.target];
      // Two calls that share several buffers have only one edge.
      if (std::find(sources.begin(), sources.end(), hazard.source) != sources.end()) continue;
      sources.push_back(hazard.source);
      readers_[hazard.source].push_back(hazard.target);
    }
    FindPlaces();
  }

  SpreadReport Run() {
    for (const auto& [call, worst] : golden_) {
      report_.own.push_back(Follow(call, worst));
      report_.hidden += carried_.count(call) == 0 ? 1 : 0;
    }
    MeasureHops();
    FindAbsorbing();
    return std::move(report_);
  }

 private:
  // The worst output of each call, by index in the work.
  using Calls = std::map<size_t, WrongOutput>;

  Calls ByCall(const std::vector<WrongOutput>& outputs) const {
    Calls calls;
    for (const WrongOutput& output : outputs) {
      const int64_t call = work_.Find(output.call_id);
      if (call < 0) continue;
      const auto [found, added] = calls.emplace(static_cast<size_t>(call), output);
      if (!added && Severity(found->second) < Severity(output)) found->second = output;
    }
    return calls;
  }

  // Numbers the active calls of each step. Steps of one class have the same active calls in the
  // same order, so a graph holds the calls with the same numbers in each step.
  void FindPlaces() {
    place_.assign(work_.size(), -1);
    for (const analyzer::StepRange& step : work_.steps) {
      int64_t place = 0;
      for (int64_t call = step.first; call < step.end; ++call) {
        if (work_.form(call).active()) place_[call] = place++;
      }
    }
    for (const GraphRange& graph : graphs_) {
      const int64_t first = work_.Find(graph.first_call);
      const int64_t last = work_.Find(graph.last_call);
      if (first >= 0 && last >= 0) ranges_.emplace_back(place_[first], place_[last]);
    }
  }

  bool InOneGraph(size_t a, size_t b) const {
    if (work_.calls[a].step < 0 || work_.calls[a].step != work_.calls[b].step) return false;
    return std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& range) {
      return range.first <= place_[a] && place_[a] <= range.second && range.first <= place_[b] &&
             place_[b] <= range.second;
    });
  }

  OwnError Follow(size_t call, const WrongOutput& worst) const {
    OwnError error;
    error.call_id = work_.calls[call].call_id;
    error.worst = worst;
    error.beside_another = std::any_of(
        sources_[call].begin(), sources_[call].end(),
        [&](size_t source) { return golden_.count(source) != 0 && InOneGraph(source, call); });
    if (carried_.count(call) == 0) return error;
    std::set<size_t> reached{call};
    std::set<size_t> absorbed;
    std::set<int32_t> steps;
    std::deque<size_t> open{call};
    while (!open.empty()) {
      const size_t visited = open.front();
      open.pop_front();
      for (const size_t reader : readers_[visited]) {
        if (carried_.count(reader) == 0) {
          absorbed.insert(reader);
          continue;
        }
        if (!reached.insert(reader).second) continue;
        steps.insert(work_.calls[reader].step);
        open.push_back(reader);
      }
    }
    error.reaches = static_cast<int64_t>(reached.size()) - 1;
    if (error.reaches > 0) error.last_call = work_.calls[*reached.rbegin()].call_id;
    error.steps = static_cast<int64_t>(steps.size());
    error.absorbed = static_cast<int64_t>(absorbed.size());
    return error;
  }

  // Measures the distances from all own errors at once.
  void MeasureHops() {
    std::map<size_t, int64_t> hops;
    std::deque<size_t> open;
    for (const auto& [call, worst] : golden_) {
      if (carried_.count(call) == 0) continue;
      hops[call] = 0;
      open.push_back(call);
    }
    while (!open.empty()) {
      const size_t visited = open.front();
      open.pop_front();
      for (const size_t reader : readers_[visited]) {
        if (carried_.count(reader) == 0 || !hops.emplace(reader, hops[visited] + 1).second)
          continue;
        open.push_back(reader);
      }
    }
    std::map<int64_t, SpreadBand> bands;
    for (const auto& [call, worst] : carried_) {
      const auto found = hops.find(call);
      if (found == hops.end()) {
        report_.unexplained.push_back(work_.calls[call].call_id);
        continue;
      }
      report_.inherited += found->second > 0 ? 1 : 0;
      AddToBand(bands[BandOf(found->second)], worst);
    }
    for (auto& [first, band] : bands) {
      band.first_hops = first;
      band.last_hops = first <= kSingleHops ? first : 2 * first - 2;
      report_.bands.push_back(band);
    }
  }

  // The bands are 0, 1, 2 up to 8, then 9 to 16, 17 to 32 and so on.
  static constexpr int64_t kSingleHops = 8;
  static int64_t BandOf(int64_t hops) {
    if (hops <= kSingleHops) return hops;
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(hops - 1))) + 1;
  }

  static void AddToBand(SpreadBand& band, const WrongOutput& worst) {
    ++band.calls;
    if (!worst.has_values) return;
    band.has_values = true;
    if (std::isnan(worst.max_rel) || !(worst.max_rel <= band.max_rel)) {
      band.max_rel = worst.max_rel;
    }
    if (worst.max_ulp < 0) band.max_ulp = -1;
    if (band.max_ulp >= 0) band.max_ulp = std::max(band.max_ulp, worst.max_ulp);
  }

  void FindAbsorbing() {
    for (size_t call = 0; call < work_.size(); ++call) {
      if (work_.form(call).kind != LeafKind::kKernel || carried_.count(call) != 0) continue;
      for (const size_t source : sources_[call]) {
        if (carried_.count(source) == 0) continue;
        report_.absorbing.push_back({work_.calls[call].call_id, work_.calls[source].call_id});
        break;
      }
    }
  }

  const analyzer::Work& work_;
  const Calls carried_;
  const Calls golden_;
  const std::vector<GraphRange>& graphs_;
  std::vector<std::vector<uint32_t>> readers_;       // by call: the calls that read its results
  std::vector<std::vector<uint32_t>> sources_;       // by call: the calls whose results it reads
  std::vector<int64_t> place_;                       // by call: number in its step; -1: in none
  std::vector<std::pair<int64_t, int64_t>> ranges_;  // by graph: first and last place
  SpreadReport report_;
};

}  // namespace

SpreadReport FindSpread(const analyzer::Work& work, const std::vector<WrongOutput>& carried,
                        const std::vector<WrongOutput>& golden,
                        const std::vector<GraphRange>& graphs) {
  return Spreading(work, carried, golden, graphs).Run();
}

}  // namespace acltape::replayer::prove
