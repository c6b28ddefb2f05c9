// The frame around the commands: parsing, help, errors and exit codes.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>

#include "analyzer/level.h"
#include "cli/command.h"
#include "cli/torch_kits.h"
#include "storage/error.h"
#include "storage/process_choice.h"
#include "storage/reader.h"

namespace acltape::cli {
namespace {

constexpr char kVersion[] = "acltape 0.1.0";
constexpr char kFooter[] =
    "Calls are picked by the same words everywhere: 100-200, step:3, op:aten::mm, stream:1,\n"
    "line:train.py:41, combined with /.\n"
    "Exit codes: 0 fine, 1 differences or findings, 2 usage, 3 unusable trace, 4 device or\n"
    "runtime error, 125 cannot judge; `record` passes on the code of the recorded program.\n"
    "`acltape COMMAND --help` explains a command.";

// The operators that a trace asks for are those of the PyTorch that it was recorded with. A trace
// that cannot be read is the command's to complain about.
void UseKitOfTrace(const std::string& trace) {
  std::string identity, library;
  try {
    const storage::Reader reader(trace);
    identity = reader.Meta("torch_identity");
    library = reader.Meta("torch_library");
  } catch (const Error&) {
    return;
  }
  if (!identity.empty()) UseKit(identity, library);
}

// Every command that works on the calls of a trace can be told which process's. The choice goes
// into the environment: processes that the command starts open the trace too.
void AddProcessOption(CLI::App& command) {
  constexpr std::string_view kOfAllProcesses[] = {"info", "query", "pack", "redact"};
  const bool of_all = std::find(std::begin(kOfAllProcesses), std::end(kOfAllProcesses),
                                command.get_name()) != std::end(kOfAllProcesses);
  if (of_all || command.get_option_no_throw("trace") == nullptr) return;
  command
      .add_option_function<std::string>(
          "--process",
          [](const std::string& process) { setenv(storage::kProcessVariable, process.c_str(), 1); },
          "Of a trace with several processes: the number of one, or rank:N (default: "
          "$ACLTAPE_PROCESS)")
      ->type_name("PROCESS");
}

// Every command that works on the calls of a trace can be told which level of one with both, and
// says so in the same way to what it starts.
void AddLevelOption(CLI::App& command) {
  constexpr std::string_view kOfNoLevel[] = {"info",   "query",    "pack",
                                             "redact", "captures", "record"};
  const bool none = std::find(std::begin(kOfNoLevel), std::end(kOfNoLevel), command.get_name()) !=
                    std::end(kOfNoLevel);
  const bool works_on_calls = command.get_option_no_throw("trace") != nullptr ||
                              command.get_option_no_throw("a") != nullptr;
  if (none || !works_on_calls) return;
  command
      .add_option_function<std::string>(
          "--level",
          [](const std::string& level) { setenv(analyzer::kLevelVariable, level.c_str(), 1); },
          "Of a trace with both levels: leaves of PyTorch or calls of the ACL interface (default: "
          "$ACLTAPE_LEVEL, else aten where its leaves can be replayed)")
      ->check(CLI::IsMember({"aten", "acl"}).description("aten|acl"))
      ->option_text("aten|acl");
}

void Complain(const std::string& sentence) { fmt::print(stderr, "acltape: {}\n", sentence); }

// CLI11 reports errors over two lines with a hint; here an error is one sentence.
int UsageError(const CLI::ParseError& error) {
  std::string sentence = error.what();
  sentence = sentence.substr(0, sentence.find('\n'));
  while (!sentence.empty() && (sentence.back() == '.' || sentence.back() == ' ')) {
    sentence.pop_back();
  }
  Complain(sentence + "; `acltape --help` lists what it takes.");
  return kExitUsage;
}

}  // namespace

int Main(int argc, char** argv) {
  CLI::App app("Records what a PyTorch or Ascend program dispatches, replays and compares it.",
               "acltape");
  app.footer(kFooter);
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(34);

  const auto commands = AllCommands();
  Command* chosen = nullptr;
  for (const auto& command : commands) {
    CLI::App* child = app.add_subcommand(command->Name(), command->Summary());
    if (command->Hidden()) child->group("");
    child->footer("Examples:\n" + command->Examples());
    child->callback([&chosen, &command] { chosen = command.get(); });
    command->Declare(*child);
    AddProcessOption(*child);
    AddLevelOption(*child);
  }

  // The recorded program's words must not be read as ours, whatever they look like.
  std::vector<std::string> words(argv + 1, argv + argc);
  std::vector<std::string> program;
  const auto named = std::find_if(commands.begin(), commands.end(), [&](const auto& command) {
    return !words.empty() && words.front() == command->Name();
  });
  if (named != commands.end() && (*named)->TakesProgram()) {
    const auto dashes = std::find(words.begin(), words.end(), "--");
    if (dashes != words.end()) {
      program.assign(dashes + 1, words.end());
      words.erase(dashes, words.end());
    }
    (*named)->SetProgram(std::move(program));
  }

  try {
    std::reverse(words.begin(), words.end());  // CLI11 takes the words from the back
    app.parse(words);
    if (chosen == nullptr) {
      fmt::print(stderr, "{}", app.help());
      return kExitUsage;
    }
    if (chosen->ExecutesTrace()) {
      const CLI::Option* trace = app.get_subcommand(chosen->Name())->get_option("trace");
      UseKitOfTrace(trace->as<std::string>());
    }
    return chosen->Run();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    return UsageError(error);
  } catch (const Error& error) {
    Complain(error.what());
    return static_cast<int>(error.kind());
  } catch (const std::bad_alloc&) {
    Complain("out of memory.");
  } catch (const std::exception& error) {
    Complain(fmt::format("unexpected failure: {}", error.what()));
  }
  return kExitDevice;
}

}  // namespace acltape::cli
