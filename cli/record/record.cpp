#include "recorder/collector/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "analyzer/program/device_values.h"
#include "analyzer/program/queue_copies.h"
#include "analyzer/steps/steps.h"
#include "cli/environment/elf_names.h"
#include "cli/environment/installation.h"
#include "cli/environment/interpreter.h"
#include "cli/environment/soft_environment.h"
#include "cli/environment/torch_kits.h"
#include "cli/frame/next_step.h"
#include "cli/frame/options.h"
#include "cli/frame/usage.h"
#include "cli/record/commands.h"
#include "cli/record/per_rank.h"
#include "cli/tables/ledger_words.h"
#include "cli/tables/recording_cost_words.h"
#include "cli/tables/step_source.h"
#include "cli/terminal/plain_sentence.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/quantities.h"
#include "cli/terminal/table.h"
#include "storage/checked_row.h"
#include "storage/database.h"
#include "storage/results.h"
#include "storage/set_aside.h"
#include "storage/shell_word.h"
#include "storage/stored_totals.h"

namespace acltape::cli {
namespace {

using wire::PayloadPolicy;
using wire::StackPolicy;

// A stream that is closed or full does not change how a recording ends.
template <typename... Words>
void Say(fmt::format_string<Words...> text, Words&&... words) {
  std::fputs(fmt::format(text, std::forward<Words>(words)...).c_str(), stderr);
}

// "aten,acl" -> LevelBits.
uint32_t ParseLevels(const std::string& text) {
  uint32_t levels = 0;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == "aten") {
      levels |= wire::kLevelAten;
    } else if (word == "acl") {
      levels |= wire::kLevelAcl;
    } else {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("'{}' is no level; levels are aten and acl, joined by a comma.", word));
    }
  }
  if (levels == 0) throw Error(ErrorKind::kUsage, "@level names no level; it takes aten,acl."_cli);
  return levels;
}

// A write beyond the limit on the size of files (ulimit -f) would end this process without a word.
// With a handler it fails with EFBIG. A handler does not outlive exec, so that the recorded program
// has the default again; a signal that is ignored stays ignored.
void FailOnLargeFiles() {
  struct sigaction before = {};
  if (sigaction(SIGXFSZ, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) return;
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGXFSZ, &action, nullptr);
}

// A search that holds all leaves in memory, at some 110 bytes each, is left out after longer
// recordings, so that the memory of recording stays bounded to its end. `acltape steps` finds steps
// later.
constexpr int64_t kMostLeavesForSearches = 2000000;

template <typename Action>
void Complete(const std::string& path, const Action& action) {
  storage::Reader reader(path, storage::Reader::Mode::kReadWrite);
  storage::Results results(reader);
  action(reader, results);
  results.Commit();
}

// The leaves of copies that a queue of the adapter issued; then the values of tensors on a device,
// which need them and which only the ACL level has kept. A failure costs only those.
void CompleteDeviceValues(const std::string& path, const collector::RecordOptions& options,
                          int64_t leaves) {
  const int both = wire::kLevelAten | wire::kLevelAcl;
  if ((options.levels & both) != both) return;
  const bool values = options.payload != wire::PayloadPolicy::kNone;
  if (leaves > kMostLeavesForSearches && !values) return;
  try {
    Complete(path, analyzer::NameLeavesOfQueueCopies);
    if (values) Complete(path, analyzer::TakeDeviceValues);
  } catch (const std::exception& error) {
    Say("acltape: {}: {}\n",
        values ? "PyTorch's tensors on the device have no values"
               : "copies of the adapter's queue name no call of PyTorch",
        PlainCause(error));
  }
}

// Steps that no user range named are found now, so that queries can use them. Returns how many the
// trace has and where they come from; a search that fails costs only the steps.
struct KeptSteps {
  int64_t count = 0;
  std::string found_by;
  bool looked_for = true;
};
KeptSteps CompleteSteps(const std::string& path, int64_t leaves) {
  if (leaves == 0) return {};
  try {
    storage::Reader reader(path, storage::Reader::Mode::kReadWrite);
    const auto steps = reader.Steps();
    if (!steps.empty()) return {static_cast<int64_t>(steps.size()), steps.front().found_by};
    if (leaves > kMostLeavesForSearches) return {.looked_for = false};
    analyzer::Work work = analyzer::LoadWork(reader);
    storage::Results results(reader);
    analyzer::AssignSteps(work, &results);
    results.Commit();
    return {static_cast<int64_t>(work.steps.size()), analyzer::kFoundByPeriod};
  } catch (const std::exception& error) {
    Say("acltape: no steps were looked for: {}\n", PlainCause(error));
    return {};
  }
}

// The same for traces of single ranks, together.
KeptSteps CompleteStepsOf(const std::vector<std::string>& files, int64_t leaves) {
  KeptSteps all;
  for (const std::string& file : files) {
    KeptSteps steps = CompleteSteps(file, leaves);
    all.count += steps.count;
    all.looked_for = all.looked_for && steps.looked_for;
    if (all.found_by.empty()) all.found_by = std::move(steps.found_by);
  }
  return all;
}

// The bytes of the files; -1: not known.
int64_t SizeOf(const std::vector<std::string>& files) {
  int64_t sum = 0;
  for (const std::string& file : files) {
    std::error_code unknown;
    sum += static_cast<int64_t>(std::filesystem::file_size(file, unknown));
    if (unknown) return -1;
  }
  return sum;
}

// Says what the recording took from the program; nothing where the trace cannot be read.
RecordingCostWords CostOf(const std::string& path) {
  try {
    return CostWordsOf(storage::Reader(path));
  } catch (const std::exception&) {
    return {};
  }
}

// A recording that failed took in more than the trace got to keep.
void CountWhatIsKept(const std::string& path, collector::RecordSummary& summary) {
  try {
    const storage::Reader reader(path);
    const storage::TraceCounts counts = storage::CountsOf(reader);
    summary.calls = counts.calls;
    summary.leaves = counts.leaves;
  } catch (const std::exception&) {
    summary.calls = summary.leaves = 0;
  }
}

// True if processes of the program used communicators of HCCL.
bool HoldsSeveralRanks(const std::string& path) {
  const storage::Reader reader(path);
  return reader.database().Integer("SELECT count(DISTINCT process_id) FROM communicator") > 1;
}

class RecordCommand final : public Command {
 public:
  std::string Name() const override { return "record"; }
  std::string Summary() const override {
    return "Run a program and record what it dispatches into a trace";
  }
  std::string Examples() const override {
    return "  acltape record -- python3 train.py --epochs 1\n"
           "  acltape record -o t.db @payload all -- python3 bench/workloads/decoder.py\n"
           "  acltape record @soft -- python3 train_npu.py\n"
           "  acltape record @record-steps 100-110 -- python3 train.py\n"
           "  acltape record @delay 30 @duration 5s -- ./serve model.pt\n"
           "  acltape record @steps-from 'step*' @payload digest -- ./serve model.pt\n"
           "The program's output and exit code are its own; the summary goes to stderr."_cli;
  }
  bool TakesProgram() const override { return true; }
  void SetProgram(std::vector<std::string> words) override { options_.command = std::move(words); }

  void Declare(CLI::App& app) override {
    options_.output = "acltape.db";
    AddOutputOption(app, options_.output, "The trace to write")->capture_default_str();
    AddChoice(app, "payload", options_.payload,
              {{"none", PayloadPolicy::kNone},
               {"digest", PayloadPolicy::kDigest},
               {"inputs", PayloadPolicy::kInputs},
               {"all", PayloadPolicy::kAll}},
              "Which tensor values to keep: none; a digest and statistics of every output; what a "
              "replay needs; every output too");
    AddOption(app, "level", levels_,
              "What to record: aten (PyTorch operators), acl (the ACL interface), or both")
        ->capture_default_str();
    AddOption(app, "steps-from", options_.steps_from,
              "Every user range of this name is a step; NAME* takes all that begin so "
              "(default: steps are found by their period)");
    AddOption(app, "record-steps", record_steps_,
              "Record these steps alone: 100-110, 7, or 100- for all from step 100 on;\n"
              "counted from 0. What a step is: @steps-from, else what the program marks,\n"
              "else what lies between two steps of an optimizer"_cli);
    AddOption(app, "delay", delay_,
              "Begin to record so long after the program's start: 5, 200ms, 2m");
    AddOption(app, "duration", duration_,
              "Stop recording so long after it began; the program runs on to its end");
    AddOption(app, "max-size", max_size_,
              "Keep the trace below this size (64M, 2G): the newest steps stay, the oldest are\n"
              "dropped as a whole");
    AddFlag(app, "start-closed", options_.start_closed,
            "Record nothing until the program opens the recording (acltape.window), or a\n"
            "signal does: `kill -USR1` to this process opens and closes it at any time");
    AddFlag(app, "no-composites", leaves_only_, "Leave out enclosing calls, ranges and phases");
    AddFlag(app, "modules", options_.modules, "Record torch.nn modules as ranges too");
    AddChoice(
        app, "stacks", options_.stacks,
        {{"top", StackPolicy::kTop}, {"full", StackPolicy::kFull}, {"none", StackPolicy::kNone}},
        "Which lines of the program's source to keep for each call: the innermost of your own "
        "code; the whole Python stack; none");
    AddFlag(app, "device-times", options_.device_times,
            "Keep when the device did the work of each call, told by events around it");
    AddOption(app, "ring-size", ring_size_, "Shared memory per thread: 65536, 64K, 16M")
        ->capture_default_str();
    AddOption(
        app, "backlog", backlog_,
        "Records that may wait to become rows: 64M, 4G. They wait in a file beside the trace\n"
        "while its disk has room")
        ->capture_default_str();
    AddCount(app, "threads", options_.slots, 1, "Threads recorded at the same time");
    AddFlag(app, "per-rank", per_rank_,
            "Write a trace for each rank, as NAME.rank0.db, when the program has ended: for\n"
            "programs on several machines, whose traces `acltape merge` makes one");
    AddFlag(app, "soft", soft_, "Run the program on the soft device, as `acltape run` does");
    AddFlag(app, "strict-device", strict_,
            "With @soft: the device fills new and freed memory with NaN, looks for writes past\n"
            "blocks and results of memory that nothing wrote, delays and reorders what may be\n"
            "reordered, and the ledger says what it found. Values may change"_cli);
    AddFlag(app, "force", options_.overwrite, "Replace the trace when it exists");
    AddFlag(app, "keep-empty", keep_empty_, "Leave a trace too when nothing was recorded");
    AddFlag(app, "quiet", quiet_, "No summary, only errors");
    app.prefix_command();  // the program may come without "--"
    app_ = &app;
  }

  int Run() override {
    if (options_.command.empty()) {
      options_.command = app_->remaining();
      if (!options_.command.empty() && options_.command.front().front() == '-') {
        throw Error(ErrorKind::kUsage, UnknownOption(*app_, options_.command.front()));
      }
    } else if (!app_->remaining().empty()) {
      if (app_->remaining().front().front() == '-') {
        throw Error(ErrorKind::kUsage, UnknownOption(*app_, app_->remaining().front()));
      }
      throw Error(ErrorKind::kUsage,
                  fmt::format("'{}' before -- is no option of record; `acltape record @help` "
                              "lists what it takes."_cli,
                              app_->remaining().front()));
    }
    if (options_.command.empty()) {
      throw Error(
          ErrorKind::kUsage,
          "record needs a program after `--`: acltape record -o t.db -- python3 script.py.");
    }
    const std::string& program = options_.command.front();
    if (program.ends_with(".py") && FindExecutable(program).empty()) {
      std::vector<std::string> words = options_.command;
      words.insert(words.begin(), "python3");
      throw Error(
          ErrorKind::kUsage,
          fmt::format("'{}' is a script of Python and no program; name the interpreter: {}.",
                      program, given().WithProgram(std::move(words)).Text()));
    }
    if (strict_ && !soft_) {
      throw Error(ErrorKind::kUsage,
                  "@strict-device is a way to run the soft device; write @soft too."_cli);
    }
    if (soft_) {
      for (const auto& [name, value] : SoftEnvironment(FindInterpreter(options_.command))) {
        options_.environment.push_back(fmt::format("{}={}", name, value));
      }
    }
    options_.levels = ParseLevels(levels_);
    if (options_.device_times && (options_.levels & wire::kLevelAcl) == 0) {
      throw Error(ErrorKind::kUsage,
                  "@device-times needs the ACL level, which sees the work of streams; leave "
                  "@level out, or write @level aten,acl."_cli);
    }
    options_.composites = !leaves_only_;
    options_.ring_bytes = ParseSize(ring_size_);
    options_.backlog_bytes = ParseSize(backlog_);
    ChooseWindows();
    options_.agent_library = AgentLibrary();
    options_.acl_agent_library = AclAgentLibrary();
    for (const std::string* library : {&options_.agent_library, &options_.acl_agent_library}) {
      if (!std::filesystem::exists(*library)) {
        throw Error(ErrorKind::kDevice,
                    fmt::format("{} is not there; build it, `acltape doctor` says how.", *library));
      }
    }
    options_.torch_kits = KitPlaces();
    PrepareKitFor(options_.command);

    FailOnLargeFiles();
    if (per_rank_) {
      RefuseTracesOfRanks(options_.output, options_.overwrite);
      of_ranks_ = std::exchange(options_.output, MachineFile(options_.output));
    }
    // A trace that is replaced lies aside until the new one is there.
    storage::SetAside replaced(options_.output, options_.overwrite, FilesOfProgram());
    if (strict_) MakeStrict();
    if (soft_) KeepFindings();
    collector::RecordSummary summary = collector::Record(options_);
    if (soft_) std::remove(options_.soft_findings.c_str());
    const int code = CodeOf(summary);
    // The program has run, and its code is what counts, whatever fails from here on.
    bool completed = true;
    try {
      CompleteAndTell(summary, replaced);
    } catch (const std::exception& error) {
      completed = false;
      if (summary.failure.empty()) {
        SayPlainly("the recording has ended, and its trace was not completed: ", PlainCause(error));
      }
    }
    if (!summary.failure.empty()) SayPlainly(summary.failure);
    return code == kExitFine && !completed ? kExitDevice : code;
  }

 private:
  // The code of the program where it failed, as a shell gives it.
  static int CodeOf(const collector::RecordSummary& summary) {
    if (summary.signal != 0) return 128 + summary.signal;
    if (summary.exit_code != 0) return summary.exit_code;
    return summary.failure.empty() ? kExitFine : kExitDevice;
  }

  // The words of the command that are files: none of them is the trace.
  std::vector<std::string> FilesOfProgram() const {
    std::vector<std::string> files;
    for (const std::string& word : options_.command) {
      std::error_code ignored;
      if (std::filesystem::is_regular_file(word, ignored)) files.push_back(word);
    }
    return files;
  }

  void CompleteAndTell(collector::RecordSummary& summary, storage::SetAside& replaced) const {
    if (!summary.failure.empty() || options_.max_bytes > 0) {
      CountWhatIsKept(options_.output, summary);
    }
    if (summary.calls == 0 && summary.failure.empty() && !keep_empty_) {
      std::error_code ignored;
      std::filesystem::remove(options_.output, ignored);
      SayProgramFailed(summary);
      SayNothingRecorded(summary);
      return;  // a trace that was to be replaced gets its name back
    }
    if (summary.failure.empty()) {
      replaced.Drop();
    } else if (!replaced.empty()) {
      Say("acltape: the trace that was to be replaced is {}\n", replaced.place());
      replaced.Keep();
    }
    CompleteDeviceValues(options_.output, options_, summary.leaves);
    const std::vector<std::string> files = Split(summary);
    std::vector<std::string> of_programs = files;
    if (per_rank_) std::erase(of_programs, RankFile(of_ranks_, -1));  // no program of its own
    const KeptSteps steps = CompleteStepsOf(of_programs, summary.leaves);
    const int64_t bytes = SizeOf(files);  // with what was added
    if (bytes >= 0) summary.file_bytes = bytes;
    if (!quiet_) SaySummary(summary, files, steps);
    if (summary.calls > 0) {
      const bool several = of_programs.size() > 1 || HoldsSeveralRanks(files.front());
      SuggestNext((several ? "acltape ranks" : "acltape info") + ShellWords(of_programs));
    }
  }

  // With --per-rank: makes a trace for each rank of the one that was recorded. Returns the files
  // that are there now.
  std::vector<std::string> Split(const collector::RecordSummary& summary) const {
    std::vector<std::string> files;
    if (per_rank_ && summary.calls > 0) {
      files = SplitByRank(options_.output, of_ranks_, options_.overwrite);
      if (files.empty() && !quiet_)
        Say("acltape: no process had a rank, so that one trace has all\n");
    }
    if (files.empty()) files.push_back(options_.output);
    return files;
  }

  static std::string ShellWords(const std::vector<std::string>& files) {
    std::string words;
    for (const std::string& file : files) words += " " + storage::ShellWord(file);
    return words;
  }

  void SayProgramFailed(const collector::RecordSummary& summary) const {
    if (quiet_) return;
    if (summary.signal != 0) {
      Say("acltape: the program was killed by signal {} ({}).\n", summary.signal,
          strsignal(summary.signal));
    } else if (summary.exit_code != 0) {
      Say("acltape: the program failed with code {}.\n", summary.exit_code);
    }
  }

  // Settings of the soft device that are given stay as they are.
  void MakeStrict() {
    for (const auto& [name, value] :
         {std::pair("ACLTAPE_SOFT_POISON", "1"), std::pair("ACLTAPE_SOFT_JITTER", "1"),
          std::pair("ACLTAPE_SOFT_BLOCKS", "exact")}) {
      const char* given = std::getenv(name);
      if (given == nullptr || *given == '\0') {
        options_.environment.push_back(fmt::format("{}={}", name, value));
      }
    }
  }

  // The file of the soft device's findings lies beside the trace while the program runs.
  void KeepFindings() {
    options_.soft_findings = std::filesystem::absolute(options_.output).string() + ".findings";
    std::remove(options_.soft_findings.c_str());
  }

  // The ledger says what the strict device found; that it found nothing has to be said.
  static void SayNothingFound(const collector::RecordSummary& summary) {
    const auto is = [](const char* kind) {
      return [kind](const storage::LedgerEntry& entry) { return entry.kind == kind; };
    };
    const auto has = [&](const char* kind) {
      return std::any_of(summary.ledger.begin(), summary.ledger.end(), is(kind));
    };
    if (!has("strict_device")) {
      Say("acltape: no recorded work ran on the soft device, so it looked at nothing\n");
    } else if (!has("unwritten_read") && !has("write_past_block") && !has("outside_block") &&
               !has("freed_memory")) {
      Say("acltape: the strict device saw no result of memory that nothing wrote, no task that "
          "leaves its block and none over freed memory\n");
    }
  }

  // Reads the options that say when calls are recorded.
  void ChooseWindows() {
    if (options_.steps_from.size() >= wire::kStepNameBytes) {
      throw Error(ErrorKind::kUsage, fmt::format("the name for @steps-from is too long; {} bytes "
                                                 "are the most, and NAME* takes a beginning."_cli,
                                                 wire::kStepNameBytes - 1));
    }
    if (!record_steps_.empty()) {
      if (leaves_only_) {
        throw Error(ErrorKind::kUsage,
                    "@record-steps needs the ranges that @no-composites leaves out; leave one of "
                    "the two out."_cli);
      }
      options_.steps = ParseNumbers("@record-steps"_cli, record_steps_);
    }
    if (!delay_.empty()) options_.delay_ns = ParseDuration("@delay"_cli, delay_);
    if (!duration_.empty()) options_.duration_ns = ParseDuration("@duration"_cli, duration_);
    if (options_.duration_ns == 0) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("@duration {} records nothing; write 5, 1.5s, 200ms or 2m."_cli, duration_));
    }
    if (!max_size_.empty()) {
      options_.max_bytes = static_cast<int64_t>(ParseSize(max_size_));
      constexpr int64_t kLeastBytes = 4 << 20;
      if (options_.max_bytes < kLeastBytes) {
        throw Error(ErrorKind::kUsage,
                    fmt::format("@max-size {} is too small for a few steps; give at least 4M."_cli,
                                max_size_));
      }
    }
    if (options_.start_closed && (options_.delay_ns || options_.steps)) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} opens the recording by itself, @start-closed waits for the "
                              "program or a signal; leave one of the two out."_cli,
                              options_.steps ? "@record-steps"_cli : "@delay"_cli));
    }
    if (!quiet_) {
      options_.memory_not_known = [](const std::string& memory) {
        Say("acltape: the program has tensors in the memory {}, which the recorder does not know: "
            "their calls are recorded without values, so that no replay or diff can judge them; "
            "the "
            "program goes on\n",
            storage::ShownValue(memory));
      };
      options_.window_changed = [](bool open, int64_t wall_ns) {
        Say("acltape: recording {} after {}\n", open ? "opened" : "closed",
            HumanNs(static_cast<double>(wall_ns)));
      };
    }
  }

  // Says in one sentence why there is no trace. What went wrong on our side has its own, more exact
  // rows in the ledger.
  void SayNothingRecorded(const collector::RecordSummary& summary) const {
    const bool ours = std::any_of(
        summary.ledger.begin(), summary.ledger.end(), [](const storage::LedgerEntry& entry) {
          return PluginFailed(entry) || entry.severity >= storage::Severity::kDataLoss;
        });
    if (ours) SayLedger(summary);
    Say("acltape: {}nothing was recorded and no trace is left{}; @keep-empty keeps such a "
        "trace.\n"_cli,
        WhyNothing(summary), ours ? "" : Advice(summary));
  }

  static bool PluginFailed(const storage::LedgerEntry& entry) {
    return entry.kind == "torch_plugin_failed" || entry.kind == "torch_kit_missing";
  }

  // "there was no torch in it: ..., so ", or an empty text.
  std::string WhyNothing(const collector::RecordSummary& summary) const {
    if (options_.steps && summary.steps_seen <= options_.steps->first &&
        summary.torch_processes + summary.acl_processes != 0) {
      return fmt::format("the program came to {} steps and the first to record was step {}, so ",
                         summary.steps_seen, options_.steps->first);
    }
    if (LacksDevice(summary)) {
      return fmt::format("'{}' needs libascendcl.so, which was not found, so ",
                         options_.command.front());
    }
    if (summary.attached_processes == 0) {
      return fmt::format(
          "acltape came into no process of '{}', as into none that is linked "
          "statically or runs a set-user-id file, so ",
          options_.command.front());
    }
    if (summary.never_opened && options_.delay_ns) {
      return fmt::format(
          "the program ended after {}, before the recording opened (@delay {}), so "_cli,
          HumanNs(static_cast<double>(summary.wall_ns)), delay_);
    }
    if (summary.never_opened) return "the recording was never opened, so ";
    const bool plugin_failed =
        std::any_of(summary.ledger.begin(), summary.ledger.end(), PluginFailed);
    const bool aten = (options_.levels & wire::kLevelAten) != 0;
    const bool acl = (options_.levels & wire::kLevelAcl) != 0;
    const bool no_torch = !aten || (summary.torch_processes == 0 && !plugin_failed);
    if (!no_torch || (acl && summary.acl_processes != 0)) return "";
    return fmt::format("there was {} in it: no process of '{}' {}, so ",
                       !acl    ? "no torch"
                       : !aten ? "no ACL program"
                               : "no torch and no ACL program",
                       options_.command.front(),
                       !acl    ? "loaded libtorch"
                       : !aten ? "called the ACL interface"
                               : "loaded libtorch or called the ACL interface");
  }

  // An ACL program that the loader did not start for want of the device's library.
  bool LacksDevice(const collector::RecordSummary& summary) const {
    constexpr int kNotLoaded = 127;
    if (summary.attached_processes != 0 || summary.exit_code != kNotLoaded) return false;
    const std::vector<std::string> needed =
        ReadElfNames(FindExecutable(options_.command.front())).needed;
    return std::find(needed.begin(), needed.end(), "libascendcl.so") != needed.end();
  }

  // Advice on a Python program whose interpreter has no torch, and else a general hint.
  std::string Advice(const collector::RecordSummary& summary) const {
    if (summary.torch_processes + summary.acl_processes != 0) return "";
    if (LacksDevice(summary)) return "; record @soft runs it on the soft device"_cli;
    const std::filesystem::path named = NamedInterpreter(options_.command);
    if (named.empty() || (options_.levels & wire::kLevelAten) == 0) {
      return "; check that the command runs the program that was meant, dynamically linked";
    }
    try {
      if (!AskInterpreter(named).torch.empty()) {
        return fmt::format("; {} has torch, but the program did not use it", named.string());
      }
    } catch (const Error&) {
      return "";
    }
    const std::filesystem::path other = InterpreterWithTorch();
    if (other.empty()) {
      return fmt::format(
          "; neither {} nor another interpreter here has torch: apt-get install "
          "python3-torch, or pip install torch",
          named.string());
    }
    // The words after the interpreter, or after the script that names it in its first line.
    std::vector<std::string> words{other.string()};
    const auto own =
        std::find_if(options_.command.begin(), options_.command.end(),
                     [&](const std::string& word) { return NamedInterpreter({word}) == named; });
    for (auto word = own; word != options_.command.end(); ++word) {
      const std::string path = word == own ? FindExecutable(*word).string() : *word;
      if (path != named) words.push_back(path);
    }
    return fmt::format("; {} has no torch, {} has it: {}", named.string(), other.string(),
                       given().WithProgram(std::move(words)).Text());
  }

  // `told` is the kind of rows that another sentence tells.
  static void SayLedger(const collector::RecordSummary& summary, std::string_view told = {}) {
    for (const storage::LedgerEntry& entry : summary.ledger) {
      if (entry.severity < storage::Severity::kNotice || entry.kind == told) continue;
      const LedgerWords words = WordsOf(entry);
      Say("acltape: {}: {}{}, {}{}{}{}\n", storage::SeverityName(entry.severity), entry.kind,
          entry.subject.empty() ? "" : " of " + entry.subject, words.is_time ? "" : "count ",
          words.count, words.cause.empty() ? "" : ": " + words.cause,
          entry.remedy.empty() ? "" : "; " + entry.remedy);
    }
  }

  void SaySummary(const collector::RecordSummary& summary, const std::vector<std::string>& files,
                  const KeptSteps& steps) const {
    SayProgramFailed(summary);
    if (summary.calls == 0 && summary.failure.empty()) {
      Say("acltape: {}nothing was recorded.\n", WhyNothing(summary));
    }
    const RecordingCostWords cost = CostOf(files.front());
    SayLedger(summary, cost.waited.empty() ? "" : "recorder_stall");
    if (strict_) SayNothingFound(summary);
    Say("acltape: {} {} {} calls, {} of them leaves{}, in {}{} ({}; {} of values kept; {})\n",
        fmt::join(files, ", "), files.size() == 1 ? "holds" : "hold", summary.calls, summary.leaves,
        steps.looked_for ? fmt::format(" in {} steps", steps.count) : "",
        summary.windows > 1 && options_.max_bytes == 0
            ? fmt::format("{} windows, in ", summary.windows)
            : "",
        HumanBytes(summary.file_bytes), summary.state, HumanBytes(summary.payload_bytes),
        HumanNs(static_cast<double>(summary.wall_ns)));
    if (!cost.took.empty()) Say("acltape: recording took {}\n", cost.took);
    if (!cost.waited.empty())
      Say("acltape: threads waited for room in full rings: {}\n", cost.waited);
    if (!cost.values.empty()) Say("acltape: values were kept at {}\n", cost.values);
    if (steps.count > 0 && steps.found_by == analyzer::kFoundByPeriod) {
      Say("acltape: the steps are {}\n", StepSource(steps.found_by));
    }
    if (!steps.looked_for) {
      Say("acltape: no steps were looked for, because of {} leaves; `acltape steps {}` does it\n",
          summary.leaves, storage::ShellWord(files.front()));
    }
  }

  collector::RecordOptions options_;
  std::string levels_ = "aten,acl";
  std::string record_steps_;
  std::string delay_;
  std::string duration_;
  std::string max_size_;
  std::string ring_size_ = "4M";
  std::string backlog_ = "4G";
  bool soft_ = false;
  bool strict_ = false;
  bool leaves_only_ = false;
  bool per_rank_ = false;
  std::string of_ranks_;  // with --per-rank: the name without the rank
  bool keep_empty_ = false;
  bool quiet_ = false;
  CLI::App* app_ = nullptr;
};

}  // namespace

std::unique_ptr<Command> MakeRecordCommand() { return std::make_unique<RecordCommand>(); }

}  // namespace acltape::cli
