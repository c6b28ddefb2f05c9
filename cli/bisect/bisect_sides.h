// The two sides of `acltape bisect`: what --good and --bad name, and sides that differ in their
// device library or their environment instead of the way of execution.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/frame/command_line.h"
#include "replayer/sides/process_side.h"
#include "replayer/sides/sides_bisection.h"
#include "storage/reader.h"

namespace acltape::cli {

// The way of execution that --good or --bad names.
struct Side {
  enum class Kind { kEager, kCaptured, kPlan, kRecorded };
  Kind kind = Kind::kEager;
  std::string plan;  // its file
};

// Throws Error kUsage for another word.
Side ParseSide(const std::string& option, const std::string& text);

// The options of sides that are processes.
struct SideOptions {
  struct One {
    std::string library;                // empty: that of --device-lib
    std::vector<std::string> settings;  // "NAME=VALUE"
    bool Given() const { return !library.empty() || !settings.empty(); }
  };
  One good;
  One bad;

  void Declare(CLI::App& app);
  bool Given() const { return good.Given() || bad.Given(); }
};

// The question of a bisection between two processes, besides the options of the search.
struct SidesRequest {
  bool recorded = false;   // the good side is the recording
  std::string device_lib;  // for sides that name no other
  std::vector<int64_t> run_steps;
  int executions = 3;
  std::optional<double> time_limit;  // seconds, of one answer of a side
  bool verbose = false;
  CommandLine given;
};

// Throws Error kUsage when the sides leave nothing to bisect, when a setting is malformed, or when
// an option is used (first: true) that has to do with something else than two sides.
void CheckSides(const Side& good, const Side& bad, const SideOptions& sides,
                const std::vector<std::pair<bool, const char*>>& other_options);

class SidesBisector {
 public:
  // `environment`: of this process before it was changed (CurrentEnvironment). Starts no process.
  SidesBisector(const storage::Reader& reader, const SideOptions& sides, SidesRequest request,
                const std::vector<std::string>& environment);

  // The library of the session that lays the step out.
  const std::string& session_library() const;
  // Chooses the steps; nothing is executed yet. Throws Error kUsage for steps that are not alike.
  replayer::sides::EagerStepOptions StepOptions(const replayer::script::MixedStep& step) const;
  // Everything that the outcomes depend on, as a JSON object. Starts the processes.
  std::string Identity(const replayer::script::MixedStep& step);
  replayer::bisect::BisectionReport Bisect(const replayer::script::MixedStep& step,
                                           const replayer::sides::SidesBisectionOptions& options,
                                           replayer::bisect::Journal* journal);
  // For people: "eager on ..., OMP_NUM_THREADS=1".
  std::string DescribeGood(const replayer::script::MixedStep& step);
  std::string DescribeBad(const replayer::script::MixedStep& step);

 private:
  std::string Describe(replayer::sides::ProcessSide* side, const SideOptions::One& options,
                       const replayer::script::MixedStep& step);

  const storage::Reader& reader_;
  const SideOptions sides_;
  const SidesRequest request_;
  std::unique_ptr<replayer::sides::ProcessSide> good_;  // null: the recording
  std::unique_ptr<replayer::sides::ProcessSide> bad_;   // null: the device of the session
};

}  // namespace acltape::cli
