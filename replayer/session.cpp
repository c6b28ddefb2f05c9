#include "replayer/session.h"

#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "analyzer/calls/level.h"
#include "analyzer/calls/unknown_memory.h"
#include "analyzer/program/roles.h"
#include "analyzer/steps/steps.h"
#include "storage/results.h"
#include "storage/shell_word.h"

namespace acltape::replayer {
namespace {

using analyzer::StepDifference;

// The rule of a refusal, by the aspect in which steps differ.
struct AspectRule {
  std::string_view aspect;
  const char* rule;
};
constexpr AspectRule kAspectRules[] = {
    {"shape", "CAPTURE-SHAPE"},         {"strides", "CAPTURE-SHAPE"}, {"value", "CAPTURE-VALUE"},
    {"element type", "CAPTURE-SHAPE"},  {"length", "CAPTURE-SHAPE"},  {"operator", "CAPTURE-OPS"},
    {"number of calls", "CAPTURE-OPS"}, {"place", "CAPTURE-PLACE"},
};

// A setting of the soft device that replays take from the recording.
constexpr const char* kGenerator = "ACLTAPE_SOFT_GENERATOR";

const char* RuleOf(const StepDifference& difference) {
  for (const AspectRule& row : kAspectRules) {
    if (difference.aspect == row.aspect) return row.rule;
  }
  return "CAPTURE-OPS";
}

}  // namespace

Session::Session(const storage::Reader& trace, Data data, const std::string& device_lib,
                 uint64_t seed, storage::Results* results)
    : program_(analyzer::LoadProgram(trace, results)) {
  if (program_.level == analyzer::Level::kAten) analyzer::RequireKnownMemory(trace);
  contents_ = std::make_unique<Contents>(program_, data, seed);
  lowered_ = LowerProgram(program_, *contents_, refused_);
  classes_ = analyzer::ClassifySteps(program_, analyzer::HostArguments::kVary);
  if (results != nullptr) analyzer::WriteRoles(analyzer::ClassifyBuffers(program_), *results);
  AdoptRecordedSettings(trace);
  device_ = std::make_unique<Device>(device_lib, RecordedSaturation(trace));
}

// Asks the device about each operator once per signature. Calls with the same signature have equal
// scalars and layouts, so that one of them is enough.
void Session::ProbeOperators(Execution& execution) const {
  std::set<int64_t> probed;
  for (const analyzer::Leaf& leaf : program_.leaves) {
    if (leaf.kind != analyzer::LeafKind::kKernel || lowered_.IsSubstituted(leaf.index)) continue;
    if (probed.insert(leaf.call.signature_id).second) execution.Probe(leaf.index);
  }
}

void Session::WithLowering(const std::function<void(Execution&)>& body) {
  for (;;) {
    try {
      Execution execution(*device_, lowered_, *contents_);
      ProbeOperators(execution);
      body(execution);
      return;
    } catch (const LeafRefused& refusal) {
      device_->Synchronize();
      if (!refused_.emplace(refusal.operator_name(), refusal.what()).second) {
        throw Error(ErrorKind::kDevice, refusal.operator_name() + ": " + refusal.what());
      }
      lowered_ = LowerProgram(program_, *contents_, refused_);
    }
  }
}

const analyzer::StepTemplate& Session::ClassFor(const analyzer::plan::Plan* plan) const {
  if (plan == nullptr) return classes_.Largest();
  for (size_t s = 0; s < program_.work.steps.size(); ++s) {
    if (program_.work.steps[s].step == plan->step) {
      return *classes_.OfStep(static_cast<int64_t>(s));
    }
  }
  throw Error(ErrorKind::kUsage, "the plan is for step " + std::to_string(plan->step) +
                                     ", which the trace does not have");
}

std::optional<Note> Session::CaptureRefusal() const {
  Note note;
  note.severity = "error";
  if (program_.work.steps.size() < 2) {
    note.rule = "CAPTURE-STEPS";
    note.message = std::string("the trace shows ") +
                   (program_.work.steps.empty() ? "no repeated step" : "one step only") +
                   "; a captured replay needs at least two alike";
    return note;
  }
  if (classes_.Largest().matches.size() >= 2) return std::nullopt;
  // Steady steps show the reason best, so the first pair of steps with the same operators is
  // chosen.
  const StepDifference* chosen = nullptr;
  for (const auto& [step, difference] : classes_.differences) {
    const std::string rule = RuleOf(difference);
    if (chosen == nullptr ||
        (RuleOf(*chosen) == std::string("CAPTURE-OPS") && rule != "CAPTURE-OPS")) {
      chosen = &difference;
    }
  }
  note.rule = chosen == nullptr ? "CAPTURE-OPS" : RuleOf(*chosen);
  note.message = "one graph cannot serve the steps";
  if (chosen != nullptr) {
    note.message += ": " + analyzer::DescribeDifference(program_, *chosen);
    const int64_t leaf = chosen->leaf_b >= 0 ? chosen->leaf_b : chosen->leaf_a;
    if (leaf >= 0) note.call_id = program_.leaves[leaf].call.call_id;
  }
  return note;
}

std::string SoftDeviceSettings() {
  std::string settings;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    // Some settings always come from the recording, or are always the same, so the command need not
    // set them.
    if (!text.starts_with("ACLTAPE_SOFT_") || text.starts_with("ACLTAPE_SOFT_THREADS=") ||
        text.substr(0, text.find('=')) == kGenerator) {
      continue;
    }
    const size_t equals = text.find('=');
    if (text.substr(0, equals) == kBlocks && text.substr(equals + 1) == kExactBlocks) continue;
    settings +=
        std::string(text.substr(0, equals + 1)) + storage::ShellWord(text.substr(equals + 1)) + " ";
  }
  return settings;
}

std::string SettingsOfPrograms() {
  const char* generator = std::getenv(kGenerator);
  if (generator == nullptr) return SoftDeviceSettings();
  return SoftDeviceSettings() + kGenerator + "=" + storage::ShellWord(generator) + " ";
}

void WriteNotes(const std::vector<Note>& notes, storage::Results* results) {
  if (results == nullptr) return;
  for (const Note& note : notes) {
    storage::Finding finding;
    finding.rule = note.rule;
    finding.severity = note.severity == "error"  ? storage::Severity::kError
                       : note.severity == "info" ? storage::Severity::kInfo
                                                 : storage::Severity::kNotice;
    finding.call_id = note.call_id;
    finding.message = note.message;
    finding.evidence =
        note.evidence.empty()
            ? nlohmann::json::array({{{"first_call", note.call_id}, {"calls", note.count}}}).dump()
            : note.evidence;
    finding.verdict = note.verdict;
    results->AddFinding(finding);
  }
}

}  // namespace acltape::replayer
