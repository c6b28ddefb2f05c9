#include "page/waits.h"

#include <nlohmann/json.hpp>

#include "analyzer/calls/level.h"
#include "analyzer/steps/steps.h"
#include "analyzer/waits/early_lines.h"
#include "analyzer/waits/wait_lines.h"
#include "storage/error.h"

namespace acltape::page {
namespace {

using nlohmann::json;

constexpr size_t kMostRows = 12;

void Fill(const storage::Reader& trace, json& view) {
  analyzer::Work work = analyzer::LoadWork(trace, analyzer::Level::kAcl);
  analyzer::AssignSteps(work, nullptr);
  const analyzer::waits::HostWaits waits = analyzer::waits::FindHostWaits(work);
  const analyzer::lint::Places places(work);
  analyzer::lint::Words words(work, places);
  int64_t total = 0;
  int64_t in_steps = 0;
  json& advice = view["advice"];
  const auto add = [&](const std::string& where, const std::string& text, int64_t ns) {
    if (text.empty() || advice.size() == kMostRows) return;
    advice.push_back({{"where", where}, {"advice", text}, {"ns", ns}});
  };
  for (const auto& line : analyzer::waits::FindWaitLines(work, waits, places, words)) {
    total += line.total_ns;
    in_steps += line.in_steps_ns;
    add(line.where, line.advice, line.total_ns);
  }
  const auto early = analyzer::waits::FindEarlyWaits(work);
  for (const auto& line : analyzer::waits::FindEarlyLines(work, early, places, words)) {
    add(line.where, line.advice, line.device_ns);
  }
  view["waits"] = waits.waits.size();
  view["ns"] = total;
  view["in_steps_ns"] = in_steps;
}

}  // namespace

json WaitsOf(const storage::Reader& trace) {
  json view{
      {"advice", json::array()}, {"waits", 0}, {"ns", 0}, {"in_steps_ns", 0}, {"why_none", ""}};
  try {
    if (!analyzer::HoldsLevel(trace, analyzer::Level::kAcl)) {
      view["why_none"] = "The trace has no calls of a device, so that it shows no waits for one.";
    } else {
      Fill(trace, view);
    }
  } catch (const Error& error) {
    view["why_none"] = error.what();
  }
  return view;
}

}  // namespace acltape::page
