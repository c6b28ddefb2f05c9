#include <fmt/format.h>

#include <set>

#include "analyzer/emit/emit.h"
#include "analyzer/emit/planned_step.h"
#include "analyzer/graph/hazards.h"

namespace acltape::analyzer::emit {
namespace {

// Fill colours of streams, the origin first. Further streams use them again.
constexpr std::string_view kStreamColours[] = {"#dce6f2", "#fde0c5", "#d5efd0", "#f6d1dd",
                                               "#e4d7f5", "#fff2b3", "#c9eef0", "#e2e2e2"};

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string NodeText(const Work& work, const PlannedCall& planned) {
  const std::string label =
      fmt::format("{} {}", work.calls[planned.call].call_id, work.op(planned.call).FullName());
  // A line break of Graphviz is the two characters \n inside the quotes.
  return fmt::format(
      "    c{} [label={}\\n{}\", fillcolor=\"{}\"];\n", work.calls[planned.call].call_id,
      Quoted(label).substr(0, Quoted(label).size() - 1), ResultText(work, planned.call),
      kStreamColours[static_cast<size_t>(planned.stream) % std::size(kStreamColours)]);
}

}  // namespace

std::string DotText(const plan::Plan& plan, const Work& work) {
  const std::vector<PlannedCall> calls = ResolvePlan(plan, work);
  std::string text =
      "digraph plan {\n"
      "  rankdir=TB;\n"
      "  node [shape=box, style=filled, fontname=\"sans-serif\", fontsize=10];\n"
      "  edge [color=\"#555555\", arrowsize=0.6];\n";
  for (size_t r = 0, next = 0; r < plan.regions.size(); ++r) {
    const plan::PlanRegion& region = plan.regions[r];
    const std::string kind = region.captured ? "captured" : "eager";
    text += fmt::format("  subgraph cluster_{} {{\n    label={};\n    style={};\n", r,
                        Quoted(fmt::format("region {}, {}{}{}", region.region, kind,
                                           region.reason.empty() ? "" : ": ", region.reason)),
                        region.captured ? "solid" : "dotted");
    for (; next < calls.size() && calls[next].region == static_cast<int32_t>(r); ++next) {
      text += NodeText(work, calls[next]);
    }
    text += "  }\n";
  }
  std::set<std::pair<uint32_t, uint32_t>> drawn;
  if (!calls.empty()) {
    for (const graph::Hazard& hazard :
         graph::FindHazards(work, calls.front().call, calls.back().call + 1)) {
      if (!drawn.emplace(hazard.source, hazard.target).second) continue;
      const bool data = hazard.kind == graph::HazardKind::kRaw;
      text += fmt::format("  c{} -> c{}{};\n", work.calls[hazard.source].call_id,
                          work.calls[hazard.target].call_id,
                          data ? "" : " [style=dotted, arrowhead=open]");
    }
  }
  for (const PlannedCall& call : calls) {
    for (const plan::PlanWait& wait : call.waits) {
      text += fmt::format(
          "  c{} -> c{} [style=dashed, color=\"#c00000\", fontsize=9, constraint=false, "
          "label=\"event {}\"];\n",
          wait.record_after, wait.wait_before, wait.event);
    }
  }
  return text + "}\n";
}

}  // namespace acltape::analyzer::emit
