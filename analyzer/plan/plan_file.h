// Plans as files: JSON with one line per region head, placement, wait, copy and update, so that
// they can be read, compared line by line and edited by hand. docs/plan_format.md has the format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/plan/plan.h"
#include "analyzer/plan/plan_rules.h"
#include "storage/new_file.h"

namespace acltape::analyzer::plan {

std::string PlanText(const Plan& plan);

// Checks only the form (PLAN-01 to PLAN-05); throws PlanError.
Plan ParsePlan(std::string_view text);

// True if the file is as WritePlan wrote it: a plan with the digest of its own text, which nobody
// has edited.
bool IsWrittenPlan(const std::string& path);

// A plan replaces an earlier plan of its name that nobody has edited, so that it can be made again;
// any other file only with `overwrite`. Throws as storage::WriteNewFile.
storage::OutputRules PlanRules(const std::string& trace, bool overwrite);
void WritePlan(const Plan& plan, const std::string& path, const storage::OutputRules& rules);

// Reads a plan and validates it against the trace (validate.h). If the file cannot be read, throws
// Error kUsage, one sentence that names the file. If the plan breaks a rule, throws PlanError. With
// `allow_races` a race (PLAN-20, PLAN-22) is not an error but a sentence in `warnings`. Without it
// `warnings` may be null.
Plan ReadPlan(const std::string& path, const Work& work, bool allow_races = false,
              std::vector<std::string>* warnings = nullptr);

}  // namespace acltape::analyzer::plan
