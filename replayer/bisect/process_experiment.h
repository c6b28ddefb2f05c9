// An experiment that another program makes: a command is told which elements are altered and
// answers with its exit code, as for `git bisect run`.
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

#include "replayer/bisect/experiment.h"

namespace acltape::replayer {

struct ProcessExperimentOptions {
  // Run by /bin/sh. "{calls}" stands for the path of a file that names the altered calls, one to a
  // line; the variable ACLTAPE_CALLS has them with commas in between. It is left out when they do
  // not fit into an environment, of which one variable may take 128 KiB.
  std::string command;
  // By element: its calls.
  std::vector<std::vector<int64_t>> calls;
  std::vector<std::string> descriptions;
  // A command that runs longer is ended, and its experiment cannot be judged.
  std::optional<std::chrono::milliseconds> time_limit;
  bool quiet = true;  // its output goes nowhere, else to stderr
};

class ProcessExperiment final : public Experiment {
 public:
  explicit ProcessExperiment(ProcessExperimentOptions options);
  ~ProcessExperiment() override;
  ProcessExperiment(const ProcessExperiment&) = delete;
  ProcessExperiment& operator=(const ProcessExperiment&) = delete;

  size_t size() const override { return options_.calls.size(); }
  std::string Describe(size_t element) const override { return options_.descriptions.at(element); }
  // Throws Error kDevice when the command ends the bisection.
  Outcome Try(const ElementSet& altered) override;
  std::string Command(const ElementSet& altered) const override;

 private:
  std::string CallList(const ElementSet& altered, char between) const;

  const ProcessExperimentOptions options_;
  std::string file_;  // of the altered calls; empty: the command asks for none
};

}  // namespace acltape::replayer
