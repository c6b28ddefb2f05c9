#include "replayer/script/stream_orders.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>

namespace acltape::replayer::script {
namespace {

constexpr const char* kOrder = "ACLTAPE_SOFT_ORDER";
constexpr const char* kJitter = "ACLTAPE_SOFT_JITTER";

// Returns 0 if the variable is not set or holds no number.
long NumberIn(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::strtol(text, nullptr, 10);
}

}  // namespace

int StreamsOf(const analyzer::plan::Plan* plan, const std::vector<PlantedFault>& faults) {
  int streams = 1;
  if (plan != nullptr) {
    for (const analyzer::plan::PlanRegion& region : plan->regions) {
      for (const analyzer::plan::PlanPlacement& place : region.placements) {
        streams = std::max(streams, place.stream + 1);
      }
    }
  }
  return streams + static_cast<int>(
                       std::count_if(faults.begin(), faults.end(), [](const PlantedFault& fault) {
                         return fault.kind == FaultKind::kMissingWait;
                       }));
}

int UseStreamOrders(int streams) {
  if (NumberIn(kJitter) != 0) return 1;
  if (streams > 1) setenv(kOrder, std::to_string(streams).c_str(), /*overwrite=*/0);
  return static_cast<int>(std::clamp(NumberIn(kOrder), 1L, 1024L));
}

std::vector<size_t> RunsOfOrders(std::vector<size_t> run, size_t other, int orders) {
  if (orders == 1) return run;
  if (run.size() == 1) run.push_back(other);
  const size_t launches = std::lcm(run.size(), static_cast<size_t>(orders));
  std::vector<size_t> runs;
  while (runs.size() < launches) runs.insert(runs.end(), run.begin(), run.end());
  return runs;
}

}  // namespace acltape::replayer::script
