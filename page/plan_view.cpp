#include "page/plan_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "analyzer/graph/hazards.h"
#include "analyzer/memory/pool.h"
#include "analyzer/plan/plan_file.h"
#include "analyzer/plan/planner.h"
#include "analyzer/program/acl_leaves.h"
#include "page/rows.h"
#include "storage/cell.h"
#include "storage/database.h"

namespace acltape::page {
namespace {

using analyzer::Work;
using analyzer::plan::Plan;
using analyzer::plan::PlanRegion;
using nlohmann::json;

constexpr size_t kMostNodes = 4000;   // most nodes of the graph of a step
constexpr size_t kMostBlocks = 3000;  // most blocks of the pool of one graph

struct Shown {
  std::optional<Plan> plan;
  std::string source;  // "file", "stored", "computed"
  std::string name;
  std::string why_none;  // a sentence, if there is no plan
};

// The newest plan of the trace that still fits it.
std::optional<Shown> StoredPlan(const storage::Reader& trace, const Work& work) {
  storage::Statement rows(trace.database(),
                          "SELECT name, document FROM plan ORDER BY plan_id DESC");
  while (rows.Next()) {
    const storage::Cell cells[] = {CellOf(rows, 0), CellOf(rows, 1)};
    const auto* name = std::get_if<std::string>(&cells[0]);
    const auto* document = std::get_if<std::string>(&cells[1]);
    if (name == nullptr || document == nullptr) continue;
    try {
      Shown shown{analyzer::plan::ParsePlan(*document), "stored", *name, ""};
      const bool fits = std::all_of(
          shown.plan->regions.begin(), shown.plan->regions.end(), [&](const PlanRegion& region) {
            return work.Find(region.first_call) >= 0 && work.Find(region.last_call) >= 0;
          });
      if (fits) return shown;
    } catch (const Error&) {
      continue;  // the plan is of another version, or edited by hand: tries the next one
    }
  }
  return std::nullopt;
}

Shown ChoosePlan(const storage::Reader& trace, const Work& work, const std::string& plan_file) {
  if (!plan_file.empty()) {
    std::vector<std::string> races;
    return {analyzer::plan::ReadPlan(plan_file, work, /*allow_races=*/true, &races), "file",
            plan_file, ""};
  }
  if (auto stored = StoredPlan(trace, work)) return std::move(*stored);
  try {
    return {analyzer::plan::MakePlan(work, {}).plan, "computed", "", ""};
  } catch (const Error& error) {
    return {std::nullopt, "", "", error.what()};
  }
}

int64_t IdOf(const Work& work, size_t call) {
  const int64_t id = work.calls[call].call_id;
  return work.dialect == analyzer::Dialect::kAclLeaves ? analyzer::RecordedCall(id) : id;
}

// Active calls of the step, by index in Work::calls. With a plan they are the calls of its regions,
// which hold all of the step. Without one they are those of the first step after which the program
// repeats, or of the trace.
std::vector<size_t> CallsOfStep(const Work& work, const Shown& shown, int64_t& step) {
  size_t first = 0;
  size_t end = work.size();
  step = -1;
  if (shown.plan && !shown.plan->regions.empty()) {
    step = shown.plan->step;
    std::tie(first, end) = work.Between(shown.plan->first_call, shown.plan->last_call);
  } else if (!work.steps.empty()) {
    const analyzer::StepRange& chosen = work.steps[std::min<size_t>(1, work.steps.size() - 1)];
    step = chosen.step;
    first = chosen.first;
    end = chosen.end;
  }
  std::vector<size_t> calls;
  for (size_t call = first; call < end; ++call) {
    if (work.form(call).active()) calls.push_back(call);
  }
  return calls;
}

// `already`: how many of the calls a graph of the program's own held.
json RegionRow(const Work& work, const PlanRegion& region, size_t calls, size_t already,
               double host_ns) {
  return {{"region", region.region},
          {"captured", region.captured},
          {"already", already},
          {"first", IdOf(work, static_cast<size_t>(work.Find(region.first_call)))},
          {"last", IdOf(work, static_cast<size_t>(work.Find(region.last_call)))},
          {"reason", region.reason},
          {"gain_ns", region.gain_ns},
          {"calls", calls},
          {"host_ns", host_ns}};
}

// Fills "nodes", "edges" and "regions".
void AddGraph(const Work& work, const Shown& shown, const std::vector<size_t>& calls, json& view) {
  const size_t count = std::min(calls.size(), kMostNodes);
  std::unordered_map<size_t, size_t> node_of;  // by index in Work::calls
  for (size_t i = 0; i < count; ++i) node_of.emplace(calls[i], i);
  std::vector<int> region_of(count, -1), stream_of(count, 0);
  view["regions"] = json::array();
  json waits = json::array();
  if (shown.plan) {
    for (size_t r = 0; r < shown.plan->regions.size(); ++r) {
      const PlanRegion& region = shown.plan->regions[r];
      const auto begin = static_cast<size_t>(work.Find(region.first_call));
      const auto last = static_cast<size_t>(work.Find(region.last_call));
      size_t held = 0;
      size_t already = 0;
      double host_ns = 0;
      for (size_t i = 0; i < calls.size(); ++i) {
        if (calls[i] < begin || calls[i] > last) continue;
        ++held;
        if (work.ExecutionOf(calls[i]) != nullptr) ++already;
        host_ns += static_cast<double>(work.calls[calls[i]].duration_ns);
        if (i < count) region_of[i] = static_cast<int>(r);
      }
      for (const analyzer::plan::PlanPlacement& place : region.placements) {
        const auto node = node_of.find(static_cast<size_t>(work.Find(place.call_id)));
        if (node != node_of.end()) stream_of[node->second] = place.stream;
      }
      for (const analyzer::plan::PlanWait& wait : region.waits) {
        const auto from = node_of.find(static_cast<size_t>(work.Find(wait.record_after)));
        const auto to = node_of.find(static_cast<size_t>(work.Find(wait.wait_before)));
        if (from != node_of.end() && to != node_of.end()) {
          waits.push_back({from->second, to->second});
        }
      }
      view["regions"].push_back(RegionRow(work, region, held, already, host_ns));
    }
  }
  json nodes = json::array();
  for (size_t i = 0; i < count; ++i) {
    const analyzer::WorkCall& call = work.calls[calls[i]];
    // The host knows when it executed a graph, and nothing of the calls in it.
    const bool executed = work.ExecutionOf(calls[i]) != nullptr;
    nodes.push_back({IdOf(work, calls[i]), work.op(calls[i]).FullName(), region_of[i], stream_of[i],
                     executed ? json() : json(call.duration_ns), call.model_id});
  }
  json edges = json::array();
  if (count > 0) {
    for (const analyzer::graph::Hazard& hazard :
         analyzer::graph::FindHazards(work, calls.front(), calls[count - 1] + 1)) {
      const auto from = node_of.find(hazard.source);
      const auto to = node_of.find(hazard.target);
      if (from == node_of.end() || to == node_of.end()) continue;
      edges.push_back({from->second, to->second, static_cast<int>(hazard.kind)});
    }
  }
  view["nodes"] = std::move(nodes);
  view["edges"] = std::move(edges);
  view["waits"] = std::move(waits);
  view["nodes_in_all"] = calls.size();
  // Calls of the step that the program holds in graphs of its own; a plan adds nothing to them.
  view["in_own_graphs"] = std::count_if(
      calls.begin(), calls.end(), [&](size_t call) { return work.calls[call].model_id != 0; });
}

// Fills "pools": where the buffers of each captured graph lie, and when they live.
void AddPools(const Work& work, const Plan& plan, const std::vector<size_t>& calls, json& view) {
  std::vector<std::vector<uint32_t>> graphs;
  std::vector<int32_t> regions;
  for (const PlanRegion& region : plan.regions) {
    if (!region.captured) continue;
    const auto begin = static_cast<size_t>(work.Find(region.first_call));
    const auto last = static_cast<size_t>(work.Find(region.last_call));
    graphs.emplace_back();
    regions.push_back(region.region);
    for (const size_t call : calls) {
      if (call >= begin && call <= last) graphs.back().push_back(static_cast<uint32_t>(call));
    }
    if (graphs.back().empty()) {
      graphs.pop_back();
      regions.pop_back();
    }
  }
  if (graphs.empty()) return;
  const analyzer::memory::BufferLives lives(work);
  const analyzer::memory::PoolSet pools = analyzer::memory::PlanPools(work, lives, graphs);
  json shown = json::array();
  for (size_t g = 0; g < graphs.size(); ++g) {
    const analyzer::memory::GraphPool& pool = pools.graphs[g];
    std::unordered_map<uint32_t, size_t> place;  // place of a call in its graph
    for (size_t i = 0; i < graphs[g].size(); ++i) place.emplace(graphs[g][i], i);
    const auto place_of = [&](uint32_t call) {
      const auto after = std::upper_bound(graphs[g].begin(), graphs[g].end(), call);
      return after == graphs[g].begin() ? size_t{0} : place.at(*std::prev(after));
    };
    // The largest blocks are kept where there are too many.
    std::vector<analyzer::memory::PoolBlock> blocks = pool.blocks;
    std::stable_sort(blocks.begin(), blocks.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    if (blocks.size() > kMostBlocks) blocks.resize(kMostBlocks);
    json rows = json::array();
    for (const analyzer::memory::PoolBlock& block : blocks) {
      rows.push_back({block.buffer, block.bytes, place_of(block.first), place_of(block.last),
                      block.offset, block.outlives ? 1 : 0, IdOf(work, block.first)});
    }
    shown.push_back({{"region", regions[g]},
                     {"calls", graphs[g].size()},
                     {"pool_bytes", pool.pool_bytes},
                     {"peak_bytes", pool.peak_bytes},
                     {"output_bytes", pool.output_bytes},
                     {"blocks_in_all", pool.blocks.size()},
                     {"blocks", std::move(rows)}});
  }
  view["pools"] = {{"graphs", std::move(shown)},
                   {"separate_bytes", pools.separate_bytes},
                   {"shared_bytes", pools.shared_bytes}};
}

}  // namespace

json PlanView(const storage::Reader& trace, const Work& work, const std::string& plan_file) {
  const Shown shown = ChoosePlan(trace, work, plan_file);
  json view;
  view["source"] = shown.source;
  view["name"] = shown.name;
  view["why_none"] = shown.why_none;
  int64_t step = -1;
  const std::vector<size_t> calls = CallsOfStep(work, shown, step);
  view["step"] = step;
  if (shown.plan) {
    const Plan& plan = *shown.plan;
    view["capture_mode"] = plan.capture_mode;
    view["soc"] = plan.soc;
    view["streams"] = plan.streams;
    view["copies"] = plan.copies.size();
    view["updates"] = plan.updates.size();
    view["predicted"] = {{"eager_ns", plan.predicted.eager_ns},
                         {"captured_one_stream_ns", plan.predicted.captured_one_stream_ns},
                         {"captured_ns", plan.predicted.captured_ns},
                         {"capture_cost_ns", plan.predicted.capture_cost_ns},
                         {"break_even_steps", plan.predicted.break_even_steps},
                         {"stay_eager", plan.predicted.stay_eager},
                         {"reason", plan.predicted.reason}};
  }
  AddGraph(work, shown, calls, view);
  if (shown.plan) AddPools(work, *shown.plan, calls, view);
  return view;
}

}  // namespace acltape::page
