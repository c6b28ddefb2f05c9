// Checks a plan against the trace for which it was made.
#pragma once

#include <string>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/plan/plan.h"
#include "analyzer/plan/plan_rules.h"

namespace acltape::analyzer::plan {

// Checks PLAN-06 to PLAN-29, in this order. Throws PlanError for the first row that breaks a rule.
// With `allow_races` a plan whose streams race (PLAN-20, PLAN-22) passes, so that a user can see
// the effect of the race. The function then returns the sentences.
std::vector<std::string> ValidatePlan(const Plan& plan, const Work& work, bool allow_races = false);

}  // namespace acltape::analyzer::plan
