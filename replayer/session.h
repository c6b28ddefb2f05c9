// What replay and comparison share: the device, the program with its steps and classes, its values,
// and its lowering, made again whenever the device turns an operator down.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "analyzer/plan/plan.h"
#include "analyzer/step_template.h"
#include "replayer/execution.h"
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

  // Runs `body` with a lowering that the device accepts: operators that its first phase refuses
  // have been substituted before. Should it refuse one only now, `body` runs again from the start.
  void WithLowering(const std::function<void(Execution&)>& body);

  // The class of the step that was planned, without a plan the largest. Throws Error kUsage when
  // the trace has no such step.
  const analyzer::StepTemplate& ClassFor(const analyzer::Plan* plan) const;

  // Why no two steps can share graphs; nothing when some can. The note carries a rule:
  // CAPTURE-STEPS (too few steps), CAPTURE-SHAPE, CAPTURE-VALUE, CAPTURE-OPS or CAPTURE-PLACE.
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

// The settings of the soft device that are in the environment, "ACLTAPE_SOFT_ORDER=2 ", to stand
// before a command.
std::string SoftDeviceSettings();
// A run ended by a disagreement or a refusal says how to see it again, with the settings of the
// soft device that are in the environment.
std::string ReproduceCommand(const storage::Reader& trace, const std::string& arguments,
                             const std::string& command = "replay");
// " --standard NAME" for such a command, nothing where bits are compared (null, too).
std::string StandardArgument(const ReplayOptions& options);
std::string StandardArgument(const analyzer::Standard* standard);

// Writes notes as findings.
void WriteNotes(const std::vector<Note>& notes, storage::Results* results);

}  // namespace acltape::replayer
