// An experiment that another program makes. A command is told which elements are altered. It
// answers with its exit code, as for `git bisect run`:
//
//   0          good
//   1 to 124   bad
//   125        cannot judge
//   126 on     the bisection ends: the command is not there, cannot run, or was killed
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "replayer/script/experiment.h"

namespace acltape::replayer::bisect {

struct ProcessExperimentOptions {
  // The command for /bin/sh. "{calls}" in it is replaced by the path of a file that names the
  // altered calls, one per line. The variable ACLTAPE_CALLS holds the same calls, separated by
  // commas. The variable is left out if it would exceed 128 KiB, the limit for one environment
  // variable.
  std::string command;
  // "NAME=VALUE", set for the command in place of variables of these names.
  std::vector<std::string> environment;
  // The calls of each element.
  std::vector<std::vector<int64_t>> calls;
  std::vector<std::string> descriptions;
  // A command that runs longer is ended, and its experiment counts as impossible to judge.
  std::optional<std::chrono::milliseconds> time_limit;
  bool quiet = true;  // true: its output is discarded; false: it goes to stderr
};

class ProcessExperiment final : public script::Experiment {
 public:
  explicit ProcessExperiment(ProcessExperimentOptions options);
  ~ProcessExperiment() override;
  ProcessExperiment(const ProcessExperiment&) = delete;
  ProcessExperiment& operator=(const ProcessExperiment&) = delete;

  size_t size() const override { return options_.calls.size(); }
  std::string Describe(size_t element) const override { return options_.descriptions.at(element); }
  // Throws Error kDevice when the command ends the bisection.
  script::Outcome Try(const script::ElementSet& altered) override;
  std::string Command(const script::ElementSet& altered) const override;

 private:
  std::string CallList(const script::ElementSet& altered, char between) const;

  const ProcessExperimentOptions options_;
  // Path of the file with the altered calls; empty if the command does not use it.
  std::string file_;
};

}  // namespace acltape::replayer::bisect
