// Plans as files: JSON with one line per region head, placement, wait, copy and update, so that
// they can be read, compared line by line and edited by hand. docs/plan_format.md has the format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/plan/plan.h"
#include "analyzer/plan/plan_rules.h"

namespace acltape::analyzer::plan {

std::string PlanText(const Plan& plan);

// Checks only the form (PLAN-01 to PLAN-05); throws PlanError.
Plan ParsePlan(std::string_view text);

// Throws Error kDevice when the file cannot be written.
void WritePlan(const Plan& plan, const std::string& path);

// Reads a plan and validates it against the trace (validate.h). If the file cannot be read, throws
// Error kUsage, one sentence that names the file. If the plan breaks a rule, throws PlanError. With
// `allow_races` a race (PLAN-20, PLAN-22) is not an error but a sentence in `warnings`. Without it
// `warnings` may be null.
Plan ReadPlan(const std::string& path, const Work& work, bool allow_races = false,
              std::vector<std::string>* warnings = nullptr);

}  // namespace acltape::analyzer::plan
