// Plan files (analyzer/plan/plan_file.h). A plan that is read can be written, and is the same when
// it is read again.
#include <cstdlib>

#include "analyzer/plan/plan_file.h"
#include "storage/error.h"
#include "tests/fuzz/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace acltape::analyzer::plan;
  std::string written;
  try {
    written = PlanText(ParsePlan(acltape::fuzz::TextOf(data, size)));
  } catch (const acltape::Error&) {
    return 0;
  }
  if (PlanText(ParsePlan(written)) != written) std::abort();
  return 0;
}

namespace acltape::fuzz {

std::vector<std::string> SoundInputs() {
  using namespace analyzer::plan;
  Plan plan;
  plan.trace_calls = 100;
  plan.first_call = 1;
  plan.last_call = 50;
  plan.streams = 2;
  plan.capture_mode = "global";
  plan.copies.push_back({3, "self", 64});
  plan.updates.push_back({4, "alpha"});
  return {PlanText(plan), "{}"};
}

}  // namespace acltape::fuzz
