// The files of a gate: a baseline and a list of allowed changes.
//
// A baseline is JSON with one measure or cause on a line, sorted, so that a change of it reads well
// in a review:
//
//   {
//     "acltape_gate_baseline": 1,
//     "basis": "step",
//     "allow": ["step.bytes_* +5%"],
//     "measures": {"step.copies": 3, ...},
//     "findings": {"LINT-22 | aten::mul.Tensor | train.py (main)": 2, ...},
//     "times": {"captured_to_eager": {"median": 0.31, "low": 0.3, "high": 0.33}}
//   }
//
// A list of allowed changes is a text with a rule (analyzer/gate/changes.h) on each line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/gate/changes.h"
#include "cli/gate/gate_times.h"

namespace acltape::cli {

struct GateBaseline {
  std::string path;
  analyzer::gate::Baseline counts;
  std::optional<TimeRatio> times;
};

// Throw Error kUsage, one sentence, if the file is missing or is none.
GateBaseline ReadGateBaseline(const std::string& path);
std::vector<analyzer::gate::AllowRule> ReadAllowFile(const std::string& path);

// Throws Error kUsage if there is another file than a baseline of a gate.
void JudgeGateBaseline(const std::string& path, const std::string& trace);
// The rules that the baseline before it allows stay in it.
void WriteGateBaseline(const std::string& path, const std::string& trace,
                       const analyzer::gate::Measured& measured,
                       const std::optional<TimeRatio>& times);

// The line of a measure or a cause in a baseline; 1 if it has none.
int64_t LineInBaseline(const std::string& path, const std::string& name);

}  // namespace acltape::cli
