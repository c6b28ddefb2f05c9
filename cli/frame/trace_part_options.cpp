#include "cli/frame/trace_part_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "cli/frame/options.h"
#include "storage/error.h"
#include "storage/process_choice.h"

namespace acltape::cli {
namespace {

using storage::Level;

constexpr const char* kProcessVariable = "ACLTAPE_PROCESS";
constexpr const char* kLevelVariable = "ACLTAPE_LEVEL";

constexpr std::pair<std::string_view, Level> kLevels[] = {{"aten", Level::kAten},
                                                          {"acl", Level::kAcl}};

std::optional<Level> LevelNamed(std::string_view name) {
  for (const auto& [word, level] : kLevels) {
    if (word == name) return level;
  }
  return std::nullopt;
}

bool IsOneOf(const CLI::App& command, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), command.get_name()) != names.end();
}

const char* ValueOf(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

// The value of the option, or else of the variable. Of a command with this option, a variable with
// a value is added to the command line.
std::string GivenOr(const char* variable, meaning::OptionName name, const CLI::App& command,
                    CommandLine& given) {
  const CLI::Option* option = OptionOf(command, std::string(name.option.spelling));
  if (option != nullptr && option->count() > 0) return option->as<std::string>();
  std::string value = ValueOf(variable);
  if (option != nullptr && !value.empty()) given = given.With(name, value);
  return value;
}

// "rank:2" of the selection "rank:2/step:3"; empty when it names no rank. What is wrong with it is
// said where the selection is read.
std::string RankIn(std::string_view selection) {
  while (!selection.empty()) {
    const std::string_view term = selection.substr(0, selection.find('/'));
    if (term.starts_with(storage::kRankPrefix)) return std::string(term);
    selection.remove_prefix(std::min(selection.size(), term.size() + 1));
  }
  return "";
}

// The process that a selection of calls picks by its rank, if it does. It becomes the command's
// option, so that command lines made of this one stay at the process without the selection.
void TakeRankOfCalls(const CLI::App& command, CommandLine& given, std::string& process) {
  std::string rank;
  for (const std::string& name : {std::string("selection"), std::string("@calls"_cli)}) {
    const CLI::Option* calls = command.get_option_no_throw(name);
    if (calls != nullptr && calls->count() > 0) rank = RankIn(calls->as<std::string>());
  }
  if (rank.empty()) return;
  const CLI::Option* option = OptionOf(command, "@process"_cli);
  const bool chosen = option != nullptr && option->count() > 0;
  if (chosen && process != rank) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the calls are those of {} and @process is {}; give one of them"_cli,
                            rank, process));
  }
  process = rank;
  if (option != nullptr) given = given.With("process", rank);
}

}  // namespace

void DeclareTracePart(CLI::App& command) {
  const bool trace = command.get_option_no_throw("trace") != nullptr;
  // The value is read by ReadTracePart.
  const std::function<void(const std::string&)> nothing = [](const std::string&) {};
  const bool two_traces = command.get_option_no_throw("a") != nullptr;
  if ((trace || two_traces) && !IsOneOf(command, {"info", "pack", "redact"})) {
    AddOption(command, "process", nothing,
              two_traces ? "Of traces with several processes: rank:N, or the number of one that "
                           "both have (default: $ACLTAPE_PROCESS)"
                         : "Of a trace with several processes: the number of one, or rank:N "
                           "(default: $ACLTAPE_PROCESS)");
  }
  const bool works_on_calls = trace || two_traces;
  if (works_on_calls && !IsOneOf(command, {"info", "pack", "redact", "captures", "record"})) {
    AddOption(command, "level", nothing,
              "Of a trace with both levels: leaves of PyTorch or calls of the ACL interface "
              "(default: $ACLTAPE_LEVEL, else aten where its leaves can be replayed)")
        ->check(CLI::IsMember({"aten", "acl"}).description("aten|acl"))
        ->option_text("aten|acl");
  }
}

storage::TracePart ReadTracePart(const CLI::App& command, CommandLine& given) {
  storage::TracePart part;
  part.process = GivenOr(kProcessVariable, "process", command, given);
  TakeRankOfCalls(command, given, part.process);
  // The level of `record` is that of the recording.
  if (IsOneOf(command, {"record"})) return part;
  const std::string level = GivenOr(kLevelVariable, "level", command, given);
  part.level = LevelNamed(level);
  if (!level.empty() && !part.level && OptionOf(command, "@level"_cli) != nullptr) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the variable {} is '{}', which is no level; it takes aten or acl, as "
                            "@level does."_cli,
                            kLevelVariable, level));
  }
  return part;
}

bool ProcessIsPickedByVariable() { return *ValueOf(kProcessVariable) != '\0'; }

bool PickedByOptions(const storage::TracePart& part) {
  return part.process != ValueOf(kProcessVariable) ||
         part.level != LevelNamed(ValueOf(kLevelVariable));
}

std::vector<std::string> EnvironmentOf(const storage::TracePart& part) {
  std::vector<std::string> settings;
  if (!part.process.empty()) {
    settings.push_back(fmt::format("{}={}", kProcessVariable, part.process));
  }
  for (const auto& [word, level] : kLevels) {
    if (part.level == level) settings.push_back(fmt::format("{}={}", kLevelVariable, word));
  }
  return settings;
}

}  // namespace acltape::cli
