// The state that replay and comparison share: the device, the program with its steps and classes,
// its values, and its lowering. The lowering is made again when the device refuses an operator.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "analyzer/plan/plan.h"
#include "analyzer/program/step_template.h"
#include "replayer/engine/execution.h"
#include "replayer/replay.h"

namespace acltape::storage {
class Results;
}

namespace acltape::replayer {

class Session {
 public:
  Session(const storage::Reader& trace, Data data, const std::string& device_lib, uint64_t seed,
          storage::Results* results);

  Device& device() { return *device_; }
  const analyzer::Program& program() const { return program_; }
  Contents& contents() { return *contents_; }
  const LoweredProgram& lowered() const { return lowered_; }
  const analyzer::StepClasses& classes() const { return classes_; }

  // Runs `body` with a lowering that the device accepts: operators that the device refuses are
  // substituted first. If the device refuses another operator inside `body`, `body` runs again from
  // the start.
  void WithLowering(const std::function<void(Execution&)>& body);

  // Returns the class of the step that the plan is for, or the largest class without a plan. Throws
  // Error kUsage if the trace has no such step.
  const analyzer::StepTemplate& ClassFor(const analyzer::plan::Plan* plan) const;

  // Returns the reason why no two steps can share graphs; nothing if some can. The note carries a
  // rule: CAPTURE-STEPS (too few steps), CAPTURE-SHAPE, CAPTURE-VALUE, CAPTURE-OPS or
  // CAPTURE-PLACE.
  std::optional<Note> CaptureRefusal() const;

 private:
  void ProbeOperators(Execution& execution) const;

  std::unique_ptr<Device> device_;
  analyzer::Program program_;
  std::unique_ptr<Contents> contents_;
  analyzer::StepClasses classes_;
  std::map<std::string, std::string> refused_;
  LoweredProgram lowered_;
};

// Returns the soft device's settings from the environment, such as "ACLTAPE_SOFT_ORDER=2 ", to put
// before a command.
std::string SoftDeviceSettings();
// The same for a program that has no trace: with the generator of random numbers that the recording
// had.
std::string SettingsOfPrograms();

// Writes notes as findings.
void WriteNotes(const std::vector<Note>& notes, storage::Results* results);

}  // namespace acltape::replayer
