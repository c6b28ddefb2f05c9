#include "replayer/reproducer/reproducer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "replayer/device/device.h"
#include "replayer/reproducer/emit_cpp.h"
#include "replayer/reproducer/prune_script.h"
#include "replayer/reproducer/trim.h"
#include "storage/new_file.h"
#include "storage/shell_word.h"

namespace acltape::replayer::reproducer {
namespace {

bool AnyCaptured(const script::MixedStep& step, const script::MixedStepOptions& options) {
  return options.captured.empty() ? !step.capturable().empty()
                                  : std::find(options.captured.begin(), options.captured.end(),
                                              true) != options.captured.end();
}

script::MixedStepOptions ReferenceOf(const script::MixedStep& step,
                                     const script::MixedStepOptions& suspect) {
  script::MixedStepOptions reference = suspect;
  reference.captured.assign(step.places(), false);
  reference.faults.clear();
  reference.remedies = script::Remedies();
  reference.stress = script::Stress();
  reference.disable_tasks = false;
  return reference;
}

// A program cannot disable tasks. It captures only the calls that the suspect has enabled.
script::MixedStepOptions PrintableSuspect(const script::MixedStepOptions& suspect) {
  script::MixedStepOptions printable = suspect;
  printable.disable_tasks = false;
  return printable;
}

std::vector<size_t> ExecutedPlaces(const script::MixedStep& step,
                                   const script::MixedStepOptions& suspect) {
  std::vector<size_t> places;
  for (size_t place = 0; place < step.places(); ++place) {
    if (suspect.executed.empty() || suspect.executed[place]) places.push_back(place);
  }
  return places;
}

// Returns the calls at these places in the template step, the step of the capture and the executed
// steps.
std::vector<int64_t> TracedCalls(const Session& session, const script::MixedStep& step,
                                 const script::MixedStepOptions& suspect,
                                 const std::vector<size_t>& places) {
  const auto& matches = step.step_class().matches;
  std::set<size_t> wanted{0, suspect.capture_match};
  wanted.insert(suspect.run_matches.begin(), suspect.run_matches.end());
  if (wanted.size() == 1 && matches.size() > 1) wanted.insert(wanted.count(1) != 0 ? 0 : 1);
  std::vector<int64_t> calls;
  for (const size_t match : wanted) {
    for (const size_t place : places) {
      calls.push_back(session.program().leaves[matches.at(match).leaves[place]].call.call_id);
    }
  }
  return calls;
}

void WriteTrace(const Session& session, const std::vector<int64_t>& calls,
                const ReproducerOptions& options, ReproducerResult& result) {
  const auto limit =
      static_cast<int64_t>(options.trace_share * static_cast<double>(result.trace_calls_before));
  if (static_cast<int64_t>(calls.size()) > std::max<int64_t>(limit, 2)) {
    result.trace_note =
        fmt::format("the {} calls concerned are more than {:.3g} percent of the trace",
                    calls.size(), 100 * options.trace_share);
    return;
  }
  TrimOptions trim;
  trim.calls = calls;
  trim.output = options.folder + "/" + kReproducerTrace;
  trim.overwrite = options.overwrite;
  trim.selection = options.title;
  trim.accept_different = true;
  trim.device_lib = options.device_lib;
  try {
    const TrimReport report = Trim(*session.program().trace, trim);
    result.trace_written = report.refusal.empty();
    result.trace_calls = report.calls;
    result.trace_note = report.refusal.empty() ? report.captured_note : report.refusal;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kTrace) throw;
    result.trace_note = error.what();
  }
}

std::string ReadmeText(const ReproducerOptions& options, const ReproducerResult& result,
                       const std::string& title) {
  std::string text = "# " + title + "\n\n";
  for (const std::string& note : options.notes) text += note + "\n";
  if (!options.notes.empty()) text += "\n";
  text += "```sh\n" + result.built.build +
          "\n./repro            # 0 equal, 1 different, 125 nothing compared\n"
          "./repro --clean    # without the fault\n```\n\n";
  if (result.built.compiled) {
    text += fmt::format(
        "When it was written, `./repro` ended with {} and `./repro --clean` with "
        "{}:\n\n```\n{}```\n",
        result.built.fault_exit, result.built.clean_exit, result.built.output);
  } else {
    text += "It was not compiled: " + result.built.why_not + ".\n";
  }
  if (result.trace_written) {
    text += fmt::format(
        "\n`trace.db` has the {} calls concerned of {}; `acltape replay trace.db` "
        "replays them.\n",
        result.trace_calls, result.trace_calls_before);
  } else if (options.trace) {
    text += "\nThere is no trimmed trace: " + result.trace_note + ".\n";
  }
  if (!options.command.empty()) {
    text += "\nOn the whole trace:\n\n```sh\n" + options.command + "\n```\n";
  }
  return text;
}

}  // namespace

ReproducerResult WriteReproducer(Session& session, Execution& execution,
                                 const script::MixedStepOptions& suspect,
                                 const ReproducerOptions& options) {
  const script::MixedStep step(session, execution, suspect.plan);
  const std::vector<size_t> places = ExecutedPlaces(step, suspect);
  const auto describe = [&](int64_t call) {
    for (const analyzer::Leaf& leaf : session.program().leaves) {
      if (leaf.call.call_id == call) return session.program().Describe(leaf.index);
    }
    return "call " + std::to_string(call);
  };

  ReproducerResult result;
  result.folder = options.folder;
  result.calls = static_cast<int64_t>(places.size());
  result.trace_calls_before = static_cast<int64_t>(session.program().leaves.size());

  script::MixedStepOptions printable = PrintableSuspect(suspect);
  ReproducerScripts scripts;
  scripts.reference = step.Build(ReferenceOf(step, printable));
  scripts.suspect = step.Build(printable);
  script::MixedStepOptions clean = printable;
  clean.faults.clear();
  if (options.cure) clean.remedies = *options.cure;
  if (options.cure || !suspect.faults.empty()) scripts.clean = step.Build(clean);
  PruneScript(scripts.reference);
  PruneScript(scripts.suspect);
  if (scripts.clean) PruneScript(*scripts.clean);

  EmitOptions emit;
  emit.title = options.title;
  if (emit.title.empty()) {
    emit.title = fmt::format("{} of {}",
                             places.size() == 1 ? describe(step.CallAt(places[0]))
                                                : fmt::format("{} calls", places.size()),
                             AnyCaptured(step, suspect) ? "a captured step" : "a step");
  }
  emit.notes = options.notes;
  emit.describe_call = describe;
  emit.runs = options.runs;
  emit.saturates = RecordedSaturation(*session.program().trace);
  emit.overwrite = options.overwrite;
  emit.trace = session.program().trace->path();
  EmitCpp(scripts, emit, options.folder);
  // A trace of an earlier reproducer would not belong to this program.
  if (options.overwrite) {
    std::filesystem::remove(options.folder + "/" + kReproducerTrace);
  }

  const std::filesystem::path sdk = session.device().library().directory().parent_path();
  result.built = BuildAndRun(options.folder, sdk.string());
  result.shows_fault =
      result.built.compiled && result.built.fault_exit == 1 && result.built.clean_exit == 0;
  result.build_command = "cd " + storage::ShellWord(options.folder) + " && " + result.built.build;
  result.run_command = SettingsOfPrograms() + storage::ShellWord(options.folder + "/repro");
  if (options.trace) {
    WriteTrace(session, TracedCalls(session, step, suspect, places), options, result);
  }
  storage::WriteNewFile(options.folder + "/" + kReproducerReadme,
                        ReadmeText(options, result, emit.title),
                        {.overwrite = options.overwrite, .trace = emit.trace});
  return result;
}

}  // namespace acltape::replayer::reproducer
