// A plan resolved against its trace: each active call of the template step with its part of the
// plan. All emitters start from it.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/plan/plan.h"

namespace acltape::analyzer::emit {

struct PlannedCall {
  size_t call = 0;     // index in Work::calls
  int32_t region = 0;  // index in Plan::regions
  int32_t stream = 0;
  int32_t issue = 0;                  // place in the region's order of issue
  std::vector<plan::PlanWait> waits;  // waits right before the call
  bool recorded = false;              // true if an event is recorded right after it
};

// The calls in order of call_id. Precondition: the plan is valid for the work
// (analyzer/plan/validate.h).
std::vector<PlannedCall> ResolvePlan(const plan::Plan& plan, const Work& work);

// The first tensor that the call writes, or else reads: "float32[2, 3]". Empty when there is none.
std::string ResultText(const Work& work, size_t call);

}  // namespace acltape::analyzer::emit
