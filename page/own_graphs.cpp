#include "page/own_graphs.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzer/calls/level.h"
#include "analyzer/calls/work.h"
#include "analyzer/lint/recaptures.h"
#include "storage/error.h"

namespace acltape::page {
namespace {

using analyzer::AclCallKind;
using analyzer::Work;
using analyzer::lint::CaptureRow;
using nlohmann::json;

constexpr size_t kMostExecutions = 2000;  // one graph
constexpr size_t kMostInputs = 200;       // one graph

// The object that a call is about: a graph, a task group; 0: none.
int64_t ObjectOf(const Work& work, size_t call) {
  const analyzer::WorkForm& form = work.form(call);
  return form.function == nullptr ? 0 : form.Integer(form.function->object);
}

// Calls [first, end) of the work that lie between the begin and the end of a capture.
std::pair<size_t, size_t> CallsOf(const Work& work, const CaptureRow& row) {
  const auto begin = static_cast<size_t>(row.stretch.begin_call);
  const size_t end =
      row.stretch.end_call < 0 ? work.size() : static_cast<size_t>(row.stretch.end_call) + 1;
  return {begin, end};
}

// Ranges of bytes by buffer and first byte.
using Ranges = std::map<std::pair<int64_t, int64_t>, int64_t>;

// True if one of the ranges holds the first byte of an access.
bool Covers(const Ranges& ranges, const analyzer::ByteAccess& access) {
  auto after = ranges.upper_bound({access.buffer, access.first});
  if (after == ranges.begin()) return false;
  --after;
  return after->first.first == access.buffer && access.first < after->second;
}

// Memory that the graph reads and did not write before: [[buffer, first byte, bytes, call id,
// argument], ...].
json InputsOf(const Work& work, const CaptureRow& row) {
  json inputs = json::array();
  Ranges seen;
  const auto [begin, end] = CallsOf(work, row);
  for (size_t call = begin; call < end && inputs.size() < kMostInputs; ++call) {
    if (work.calls[call].model_id != row.stretch.model_id) continue;
    // A call may read and write the same bytes, so its writes count after its reads.
    for (const bool write : {false, true}) {
      work.VisitAccesses(call, [&](const analyzer::ByteAccess& access) {
        if (access.write != write) return;
        const bool known = Covers(seen, access);
        int64_t& until = seen[{access.buffer, access.first}];
        until = std::max(until, access.end);
        if (write || known) return;
        const auto& argument =
            work.form(call).arguments->at(static_cast<size_t>(access.form->argument));
        inputs.push_back({access.buffer, access.first, access.end - access.first,
                          work.calls[call].call_id, argument.name});
      });
    }
  }
  return inputs;
}

// Names of the graph's work, in order of issue.
json OperatorsOf(const Work& work, const CaptureRow& row) {
  json names = json::array();
  const auto [begin, end] = CallsOf(work, row);
  for (size_t call = begin; call < end; ++call) {
    if (work.calls[call].model_id != row.stretch.model_id || !work.form(call).active()) continue;
    names.push_back(work.op(call).FullName());
  }
  return names;
}

using Counts = std::map<std::string, int64_t>;  // operators, by name

// True if nineteen of twenty operators are the same: a run that warms up may fill or copy a little
// more than the graph that is captured after it.
bool AreAlike(const Counts& a, const Counts& b) {
  int64_t common = 0, in_a = 0, in_b = 0;
  for (const auto& [name, count] : a) {
    in_a += count;
    if (const auto other = b.find(name); other != b.end()) common += std::min(count, other->second);
  }
  for (const auto& [name, count] : b) in_b += count;
  return common > 0 && common * 20 >= std::max(in_a, in_b) * 19;
}

json RowOf(const Work& work, const CaptureRow& row) {
  const auto [begin, end] = CallsOf(work, row);
  return {{"graph", row.stretch.model_id},
          {"begins", work.calls[begin].call_id},
          {"ends", work.calls[end - 1].call_id},
          {"operators", row.launches},
          {"streams", row.stream_numbers},
          {"executions", row.executions},
          {"executed_by", json::array()},
          {"destroyed", row.destroy_call},
          {"reason", std::string(analyzer::lint::CaptureReasonName(row.reason))},
          {"against", row.earlier_model},
          {"difference", row.difference},
          {"groups", 0},
          {"updates", 0},
          {"operator_names", OperatorsOf(work, row)},
          {"inputs", InputsOf(work, row)}};
}

}  // namespace

json OwnGraphsOf(const storage::Reader& trace) {
  json view{{"graphs", json::array()}};
  if (!analyzer::HoldsLevel(trace, analyzer::Level::kAcl)) return view;
  Work work;
  analyzer::lint::CaptureList list;
  try {
    work = analyzer::LoadWork(trace, analyzer::Level::kAcl);
    list = analyzer::lint::FindCaptures(work);
  } catch (const Error& error) {
    view["why_none"] = error.what();
    return view;
  }
  view["operator_lists"] = list.operator_lists;
  view["most_alive"] = list.most_alive;
  view["most_streams"] = list.most_streams;
  std::unordered_map<int64_t, size_t> by_model, by_group;
  for (const CaptureRow& row : list.captures) {
    by_model.emplace(row.stretch.model_id, view["graphs"].size());
    view["graphs"].push_back(RowOf(work, row));
  }
  if (list.captures.empty()) return view;
  for (size_t call = 0; call < work.size(); ++call) {
    const AclCallKind kind = work.form(call).acl_kind();
    if (work.calls[call].status != 0) continue;
    if (kind == AclCallKind::kGroupEnd) {
      const auto model = by_model.find(work.calls[call].model_id);
      if (model == by_model.end()) continue;
      by_group.emplace(ObjectOf(work, call), model->second);
      json& groups = view["graphs"][model->second]["groups"];
      groups = groups.get<int64_t>() + 1;
    } else if (kind == AclCallKind::kUpdateBegin) {
      const auto group = by_group.find(ObjectOf(work, call));
      if (group == by_group.end()) continue;
      json& updates = view["graphs"][group->second]["updates"];
      updates = updates.get<int64_t>() + 1;
    } else if (kind == AclCallKind::kExecute) {
      const auto model = by_model.find(ObjectOf(work, call));
      if (model == by_model.end()) continue;
      json& executed = view["graphs"][model->second]["executed_by"];
      if (executed.size() < kMostExecutions) executed.push_back(work.calls[call].call_id);
    }
  }
  return view;
}

void MarkOwnGraphs(const json& own, json& plan) {
  if (own["graphs"].empty() || !plan.contains("regions")) return;
  const int64_t regions = static_cast<int64_t>(plan["regions"].size());
  std::vector<Counts> names(plan["regions"].size());
  for (const json& node : plan["nodes"]) {
    const int64_t region = node[2];
    if (region < 0 || region >= regions || node[5] != 0) continue;
    ++names[static_cast<size_t>(region)][node[1].get<std::string>()];
  }
  int64_t alike = 0;
  for (size_t region = 0; region < names.size(); ++region) {
    for (const json& graph : own["graphs"]) {
      Counts of_graph;
      for (const json& name : graph["operator_names"]) ++of_graph[name.get<std::string>()];
      if (!AreAlike(names[region], of_graph)) continue;
      plan["regions"][region]["own_graph"] = graph["graph"];
      for (const auto& [name, count] : names[region]) alike += count;
      break;
    }
  }
  plan["in_own_graphs"] = plan["in_own_graphs"].get<int64_t>() + alike;
}

}  // namespace acltape::page
