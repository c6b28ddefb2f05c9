#include "cli/frame/next_step.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "analyzer/calls/level.h"
#include "analyzer/calls/record_more.h"
#include "analyzer/calls/unknown_memory.h"
#include "analyzer/program/leaves.h"
#include "cli/frame/command.h"
#include "cli/frame/options.h"
#include "cli/frame/trace_part_options.h"
#include "cli/terminal/table.h"
#include "meaning/options.h"
#include "storage/database.h"
#include "storage/error.h"
#include "storage/process_choice.h"
#include "storage/reader.h"
#include "storage/shell_word.h"

namespace acltape::cli {
namespace {

struct NextRow {
  std::string_view command;
  int code;
  // An option that must have been given, or with '!' must not; kOfLeaves; empty: any command line.
  std::string_view option;
  // {NAME} is the value of an argument or an option. The row does not count without all of them.
  std::string_view text;
};

// The row counts if the captures that the command spoke of are captures of PyTorch's leaves.
constexpr std::string_view kOfLeaves = "leaves";

// The first row that fits is taken.
constexpr NextRow kNextRows[] = {
    {"run", kExitFine, "", ""},
    {"info", kExitFine, "", "steps {trace}"},
    {"steps", kExitFine, "", "plan {trace} -o plan.json"},
    {"graph", kExitFine, "!@dependencies"_cli, "graph {trace} {selection} @dependencies"_cli},
    {"graph", kExitFine, "", "plan {trace} -o plan.json"},
    {"gears", kExitFine, "", "plan {trace} -o plan.json"},
    {"captures", kExitFine, "", "lint {trace}"},
    {"waits", kExitFine, "", "query {trace} host_waits"},
    {"ranks", kExitFine, "@rules"_cli, "ranks @help"_cli},
    {"ranks", kExitFine, "", "replay {trace} @ranks all"_cli},
    {"joint", kExitFine, "", "plan {trace} -o plan.json"},
    {"plan", kExitFine, "", "replay {trace} @plan {@output}"_cli},
    {"emit", kExitFine, "@output"_cli, "replay {trace} @plan {plan}"_cli},
    {"lint", kExitFine, "@write-baseline"_cli, "lint {trace} @baseline {@write-baseline}"_cli},
    {"lint", kExitFine, "@rules"_cli, "lint @help"_cli},
    {"lint", kExitFine, "", "plan {trace} -o plan.json"},
    {"lint", kExitDifferences, kOfLeaves, "replay {trace} @mode captured"_cli},
    {"lint", kExitDifferences, "!@prove"_cli, "lint {trace} @prove"_cli},
    {"gate", kExitFine, "@write-baseline"_cli, "gate {trace} @baseline {@write-baseline}"_cli},
    {"gate", kExitFine, "", ""},
    {"replay", kExitFine, "@ranks"_cli, "ranks {trace}"},
    {"replay", kExitFine, "@plan"_cli, "compare {trace} @plan {@plan}"_cli},
    {"replay", kExitFine, "!@mode"_cli, "replay {trace} @mode captured"_cli},
    {"replay", kExitFine, "", "compare {trace}"},
    {"replay", kExitDifferences, "@plan"_cli, "bisect {trace} @plan {@plan}"_cli},
    {"replay", kExitDifferences, "@mode"_cli, "bisect {trace}"},
    {"replay", kExitDifferences, "!@spread"_cli, "replay {trace} @spread"_cli},
    {"compare", kExitFine, "@plan"_cli, "prove {trace} @plan {@plan}"_cli},
    {"compare", kExitFine, "", "plan {trace} -o plan.json"},
    {"prove", kExitFine, "@plan"_cli, "emit {trace} {@plan} @as torchair"_cli},
    {"prove", kExitFine, "", "plan {trace} -o plan.json"},
    {"prove", kExitDifferences, "!@list"_cli, "prove {trace} @list"_cli},
    {"standards", kExitFine, "!standard", "standards ascend"},
    {"standards", kExitFine, "", "diff @help"_cli},
    {"trim", kExitFine, "", "replay {@output}"_cli},
    {"pack", kExitFine, "", "info {@output}"_cli},
    {"redact", kExitFine, "", "info {@output}"_cli},
    {"bisect", kExitDifferences, "!@emit"_cli, "bisect @help"_cli},
    {"bisect", kExitFine, "", "compare {trace}"},
    {"diff", kExitFine, "@ranks"_cli, ""},
    {"diff", kExitFine, "", "diff {a} {b} @all"_cli},
    {"diff", kExitDifferences, "", "bisect {a} @against {b}"_cli},
    {"torch", kExitFine, "", "doctor"},
    {"doctor", kExitFine, "", "record @help"_cli},
};

std::optional<std::string> suggested;

std::optional<std::string> ValueOf(const CLI::App& command, const std::string& name) {
  const CLI::Option* option = OptionOf(command, name);
  if (option == nullptr) return std::nullopt;
  if (option->count() == 1) return storage::ShellWord(option->as<std::string>());
  if (option->count() == 0 && !option->get_default_str().empty()) {
    return storage::ShellWord(option->get_default_str());
  }
  return std::nullopt;
}

bool Given(const CLI::App& command, const std::string& name) {
  const CLI::Option* option = OptionOf(command, name);
  return option != nullptr && option->count() > 0;
}

std::optional<std::string> Filled(const CLI::App& command, std::string_view text) {
  std::string filled;
  while (!text.empty()) {
    const size_t open = text.find('{');
    filled += text.substr(0, open);
    if (open == std::string_view::npos) break;
    const size_t close = text.find('}', open);
    const auto value = ValueOf(command, std::string(text.substr(open + 1, close - open - 1)));
    if (!value) return std::nullopt;
    filled += *value;
    text.remove_prefix(close + 1);
  }
  return filled;
}

// Options that pick a part of a trace go on to the next command.
std::string PartOfTrace(const CLI::App& command) {
  std::string words;
  for (const char* name : {"@process"_cli, "@level"_cli}) {
    if (!Given(command, name) || command.get_name() == "record") continue;
    words += std::string(" ") + name + ' ' + *ValueOf(command, name);
  }
  return words;
}

// Answers what rows ask about the trace of the command. The trace is opened once, and only if a row
// asks.
class TraceFacts {
 public:
  explicit TraceFacts(const CLI::App& command) : command_(command) {}

  // True of a trace without a step that commands could plan or execute. A process that was picked,
  // or a level that is not the preferred one, has steps of its own, which the trace does not keep.
  bool LacksSteps() {
    if (trace() == nullptr || Given(command_, "@process"_cli)) return false;
    const analyzer::Level level = analyzer::PreferredLevel(*trace());
    if (Given(command_, "@level"_cli)) {
      const auto given = OptionOf(command_, "@level"_cli)->as<std::string>();
      if ((given == "acl") != (level == analyzer::Level::kAcl)) return false;
    }
    return !analyzer::HasStepsOfLeaves(*trace(), level);
  }
  // True of a trace of which too much lies in memory that the recorder does not know, so that
  // commands refuse to execute it.
  bool LacksMemory() {
    return trace() != nullptr && analyzer::CoverageOfMemory(*trace()).lacks_values();
  }
  // True of a trace that keeps no results of its device, so that there is nothing to compare with,
  // and random operators cannot be executed.
  bool LacksResults() { return trace() != nullptr && analyzer::LacksDeviceLevel(*trace()); }
  // True of a trace that keeps no contents, such as a redacted one. What executes it has to make
  // them up.
  bool LacksValues() { return trace() != nullptr && !Any("SELECT EXISTS (SELECT 1 FROM payload)"); }
  // True if captures are asked about leaves of PyTorch. These are proven by a captured replay, and
  // calls of the interface by issuing them again.
  bool CapturesLeaves() {
    if (trace() == nullptr) return false;
    if (Given(command_, "@level"_cli)) {
      return OptionOf(command_, "@level"_cli)->as<std::string>() == "aten";
    }
    return !Any("SELECT EXISTS (SELECT 1 FROM op WHERE dialect LIKE 'acl%')");
  }

 private:
  const storage::Reader* trace() {
    if (looked_) return reader_.get();
    looked_ = true;
    const CLI::Option* trace = OptionOf(command_, "trace");
    if (trace == nullptr || trace->count() != 1) return nullptr;
    try {
      reader_ = std::make_unique<storage::Reader>(trace->as<std::string>());
    } catch (const Error&) {
      reader_.reset();
    }
    return reader_.get();
  }
  bool Any(const char* query) {
    storage::Statement row(trace()->database(), query);
    return row.Next() && row.Integer(0) != 0;
  }

  const CLI::App& command_;
  bool looked_ = false;
  std::unique_ptr<storage::Reader> reader_;
};

bool StartsWithOneOf(std::string_view command_line, std::initializer_list<std::string_view> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return command_line.starts_with(name); });
}

std::string NextByTable(const CLI::App& command, int code) {
  TraceFacts facts(command);
  for (const NextRow& row : kNextRows) {
    if (row.command != command.get_name() || row.code != code) continue;
    if (row.option == kOfLeaves) {
      if (!facts.CapturesLeaves()) continue;
    } else if (!row.option.empty()) {
      const bool absent = row.option.front() == '!';
      const std::string name(row.option.substr(absent ? 1 : 0));
      if (Given(command, name) == absent) continue;
    }
    const auto filled = Filled(command, row.text);
    if (!filled) continue;
    // These end with a sentence alone where the trace has no steps.
    if (StartsWithOneOf(*filled, {"plan ", "compare ", "prove "}) && facts.LacksSteps()) continue;
    const bool executes = StartsWithOneOf(*filled, {"replay ", "compare ", "bisect ", "prove "});
    if (executes && (facts.LacksMemory() || facts.LacksResults())) continue;
    if (row.text == "lint {trace} @prove"_cli && facts.CapturesLeaves()) continue;
    std::string made_up;
    if (executes && facts.LacksValues()) {
      if (StartsWithOneOf(*filled, {"bisect ", "prove "})) continue;
      made_up = " @data synthesised"_cli;
    }
    return row.text.empty() ? "" : "acltape " + *filled + made_up + PartOfTrace(command);
  }
  return "";
}

}  // namespace

void SuggestNext(std::string command_line) { suggested = std::move(command_line); }

std::string NextWithoutCapture(const std::string& trace, int64_t steps) {
  return steps < 2 ? "" : "acltape steps " + storage::ShellWord(trace);
}

std::string NextStep(const CLI::App& command, int code) {
  if (suggested) {
    const bool ours = suggested->starts_with("acltape ");
    return ours ? *suggested + PartOfTrace(command) : *suggested;
  }
  try {
    return NextByTable(command, code);
  } catch (const Error&) {
    return "";  // the command could do without what is wrong there
  }
}

std::string ChosenProcess(const CLI::App& command) {
  const CLI::Option* trace = OptionOf(command, "trace");
  if (trace == nullptr || trace->count() != 1) return "";
  const CLI::Option* process = OptionOf(command, "@process"_cli);
  const bool picked = process == nullptr || process->count() > 0 || ProcessIsPickedByVariable();
  if (picked) return "";
  for (const std::string_view all : {"query", "export", "ranks"}) {  // they show all processes
    if (command.get_name() == all) return "";
  }
  try {
    return storage::ChosenProcessText(storage::Reader(trace->as<std::string>()));
  } catch (const Error&) {
    return "";
  }
}

bool SpeaksToPeople(const CLI::App& command) {
  if (Given(command, "@quiet"_cli) || Given(command, "@git"_cli)) return false;
  const CLI::Option* format = OptionOf(command, "@format"_cli);
  return format == nullptr || format->count() == 0 ||
         format->as<int>() == static_cast<int>(Format::kTable);
}

}  // namespace acltape::cli
