// The options that name a plan, and the plan that they name.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "analyzer/calls/work.h"
#include "replayer/replay.h"
#include "storage/reader.h"
#include "storage/results.h"

namespace acltape::cli {

struct PlanOption {
  std::string path;  // empty: no plan
  bool allow_races = false;

  void Declare(CLI::App& app);
  // Reads the plan and holds it against the trace; null when none was named. It becomes a row of
  // the table `plan` unless `results` is null. Throws Error kUsage, one sentence that names the row
  // and the rule, when it is not fit for use.
  std::shared_ptr<const replayer::ChosenPlan> Read(const storage::Reader& trace,
                                                   storage::Results* results) const;
};

// The rows that tell of a plan in its trace; `path` is its file, `options` a JSON object.
storage::PlanRecord PlanRecordOf(const analyzer::plan::Plan& plan, const analyzer::Work& work,
                                 const std::string& path, const std::string& options);

}  // namespace acltape::cli
