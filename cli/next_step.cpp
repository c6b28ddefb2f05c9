#include "cli/next_step.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <utility>

#include "cli/command.h"
#include "cli/table.h"
#include "storage/shell_word.h"

namespace acltape::cli {
namespace {

struct NextRow {
  std::string_view command;
  int code;
  // An option that must have been given, or with '!' must not; empty: any command line.
  std::string_view option;
  // {NAME} is the value of an argument or an option. The row does not count without all of them.
  std::string_view text;
};

// The first row that fits is taken.
constexpr NextRow kNextRows[] = {
    {"run", kExitFine, "", ""},
    {"info", kExitFine, "", "steps {trace}"},
    {"steps", kExitFine, "", "plan {trace} -o plan.json"},
    {"graph", kExitFine, "!--dependencies", "graph {trace} {selection} --dependencies"},
    {"graph", kExitFine, "", "plan {trace} -o plan.json"},
    {"query", kExitFine, "!--list", "query --list"},
    {"gears", kExitFine, "", "plan {trace} -o plan.json"},
    {"captures", kExitFine, "", "lint {trace}"},
    {"joint", kExitFine, "", "plan {trace} -o plan.json"},
    {"plan", kExitFine, "", "replay {trace} --plan {--output}"},
    {"emit", kExitFine, "--output", "replay {trace} --plan {plan}"},
    {"lint", kExitFine, "--write-baseline", "lint {trace} --baseline {--write-baseline}"},
    {"lint", kExitFine, "--rules", "lint --help"},
    {"lint", kExitFine, "", "plan {trace} -o plan.json"},
    {"lint", kExitDifferences, "!--prove", "replay {trace} --mode captured"},
    {"replay", kExitFine, "--plan", "compare {trace} --plan {--plan}"},
    {"replay", kExitFine, "!--mode", "replay {trace} --mode captured"},
    {"replay", kExitFine, "", "compare {trace}"},
    {"replay", kExitDifferences, "--plan", "bisect {trace} --plan {--plan}"},
    {"replay", kExitDifferences, "--mode", "bisect {trace}"},
    {"replay", kExitDifferences, "!--spread", "replay {trace} --spread"},
    {"compare", kExitFine, "--plan", "prove {trace} --plan {--plan}"},
    {"compare", kExitFine, "", "plan {trace} -o plan.json"},
    {"compare", kExitDifferences, "!--max-regression", "lint {trace}"},
    {"prove", kExitFine, "--plan", "emit {trace} {--plan} --as torchair"},
    {"prove", kExitFine, "", "plan {trace} -o plan.json"},
    {"prove", kExitDifferences, "!--list", "prove {trace} --list"},
    {"standards", kExitFine, "!standard", "standards --help"},
    {"standards", kExitFine, "", "diff A.db B.db --standard {standard}"},
    {"trim", kExitFine, "", "replay {--output}"},
    {"pack", kExitFine, "", "info {--output}"},
    {"redact", kExitFine, "", "info {--output}"},
    {"experiment", kExitFine, "", "bisect {trace}"},
    {"experiment", kExitDifferences, "", "bisect {trace}"},
    {"bisect", kExitDifferences, "!--emit", "bisect --help"},
    {"bisect", kExitFine, "", "compare {trace}"},
    {"diff", kExitFine, "", "diff {a} {b} --all"},
    {"diff", kExitDifferences, "", "bisect {a} --against {b}"},
    {"torch", kExitFine, "", "doctor"},
    {"doctor", kExitFine, "", "record -- python3 PROGRAM.py"},
};

std::optional<std::string> suggested;

std::optional<std::string> ValueOf(const CLI::App& command, const std::string& name) {
  const CLI::Option* option = command.get_option_no_throw(name);
  if (option == nullptr) return std::nullopt;
  if (option->count() == 1) return storage::ShellWord(option->as<std::string>());
  if (option->count() == 0 && !option->get_default_str().empty()) {
    return storage::ShellWord(option->get_default_str());
  }
  return std::nullopt;
}

bool Given(const CLI::App& command, const std::string& name) {
  const CLI::Option* option = command.get_option_no_throw(name);
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

// What picks a part of a trace goes on to the next command.
std::string PartOfTrace(const CLI::App& command) {
  std::string words;
  for (const char* name : {"--process", "--level"}) {
    if (!Given(command, name) || command.get_name() == "record") continue;
    words += std::string(" ") + name + ' ' + *ValueOf(command, name);
  }
  return words;
}

}  // namespace

void SuggestNext(std::string command_line) { suggested = std::move(command_line); }

std::string NextStep(const CLI::App& command, int code) {
  if (suggested) return *suggested;
  for (const NextRow& row : kNextRows) {
    if (row.command != command.get_name() || row.code != code) continue;
    if (!row.option.empty()) {
      const bool absent = row.option.front() == '!';
      const std::string name(row.option.substr(absent ? 1 : 0));
      if (Given(command, name) == absent) continue;
    }
    const auto filled = Filled(command, row.text);
    if (!filled) continue;
    return row.text.empty() ? "" : "acltape " + *filled + PartOfTrace(command);
  }
  return "";
}

bool SpeaksToPeople(const CLI::App& command) {
  if (Given(command, "--quiet") || Given(command, "--git")) return false;
  const CLI::Option* format = command.get_option_no_throw("--format");
  return format == nullptr || format->count() == 0 ||
         format->as<int>() == static_cast<int>(Format::kTable);
}

}  // namespace acltape::cli
