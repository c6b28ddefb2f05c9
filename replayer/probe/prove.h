// Puts the findings of lint to the test: each stretch is captured as recorded in each mode, and
// what the device answers is compared with what was predicted; once more with the edits made.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analyzer/lint/lint.h"
#include "replayer/probe/probe.h"

namespace acltape::replayer::probe {

struct ProveOptions {
  std::string device_lib;
  std::vector<analyzer::lint::CaptureMode> modes;
  // Executions of a graph with a race, each with other delays where the device can make them.
  int executions = 20;
  int64_t stream_limit = 0;  // limit of the device, for findings about the budget
  uint64_t seed = 1;
  double budget_s = 0;  // time for all probes; 0: as long as they take
  std::function<void(int64_t done, int64_t total)> progress;
};

struct ProbeRow {
  size_t stretch = 0;
  analyzer::lint::CaptureMode mode = analyzer::lint::CaptureMode::kGlobal;
  bool edited = false;  // with the edits of all findings of the stretch
  ProbeReport report;
};

// Sets the verdicts of findings that a probe can judge. "not known: ..." says why a probe that
// could have judged the finding did not: it stood still, or the budget was used up. "refuted" says
// that the device answered otherwise in a mode asked for; a race that showed no difference stays
// "predicted". Stretches without a finding are captured too: that none is missing is also a claim;
// of many equal ones only the first 20.
std::vector<ProbeRow> Prove(const analyzer::Work& work, const ProveOptions& options,
                            analyzer::lint::LintReport& report);

}  // namespace acltape::replayer::probe
