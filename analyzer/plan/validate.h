// Holds a plan against the trace that it was made for.
#pragma once

#include <string>
#include <vector>

#include "analyzer/plan/plan.h"
#include "analyzer/plan/plan_rules.h"
#include "analyzer/work/work.h"

namespace acltape::analyzer {

// Checks PLAN-06 to PLAN-29, in this order; throws PlanError for the first row that breaks one.
// With `allow_races` a plan whose streams race (PLAN-20, PLAN-22) passes, for showing what the race
// does; the sentences come back.
std::vector<std::string> ValidatePlan(const Plan& plan, const Work& work, bool allow_races = false);

}  // namespace acltape::analyzer
