// The frame around the commands: parsing, help, errors and exit codes.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "cli/environment/torch_kits.h"
#include "cli/frame/command.h"
#include "cli/frame/command_tree.h"
#include "cli/frame/failure.h"
#include "cli/frame/fold_spools.h"
#include "cli/frame/memory_limit.h"
#include "cli/frame/next_step.h"
#include "cli/frame/options.h"
#include "cli/frame/outputs.h"
#include "cli/frame/pager.h"
#include "cli/frame/usage.h"
#include "cli/terminal/paint.h"
#include "cli/terminal/plain_sentence.h"
#include "cli/terminal/screen.h"
#include "cli/terminal/table.h"
#include "storage/error.h"
#include "storage/reader.h"
#include "storage/visible_text.h"

namespace acltape::cli {
namespace {

constexpr const char* kFooter =
    "Calls are picked by the same words everywhere: 100-200, step:3, op:aten::mm, stream:1,\n"
    "line:train.py:41, rank:2, combined with /.\n"
    "Exit codes: 0 fine, 1 differences or findings, 2 usage, 3 unusable trace, 4 device or\n"
    "runtime error, 70 internal error, 125 cannot judge; `record` passes on the code of the "
    "recorded program.\n"
    "`acltape COMMAND @help` explains a command."_cli;

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

void Complain(const std::string& sentence, ColourWish colour) noexcept {
  try {
    const bool painted = LookAt(STDERR_FILENO, colour).colour;
    const std::string line =
        fmt::format("{} {}\n", Painted("acltape:", painted ? Paint::kError : Paint::kNone),
                    storage::VisibleText(sentence));
    std::fputs(line.c_str(), stderr);
  } catch (const std::bad_alloc&) {
    SayPlainly(sentence);
  }
}

// Output that cannot be written makes every verdict doubtful. A reader that went away, such as
// `head`, is no failure; then the code is that of a process that the signal ended.
int FinishOutput(int code, ColourWish colour) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  if (errno == EPIPE) return kExitReaderGone;
  Complain(fmt::format("the output cannot be written: {}.", std::strerror(errno)), colour);
  return kExitDevice;
}

// Tables can be picked from forms that have tables.
void CheckTableChoice(const CLI::App& app) {
  const CLI::Option* table = app.get_option_no_throw("@table"_cli);
  const CLI::Option* format = app.get_option_no_throw("@format"_cli);
  if (table == nullptr || table->count() == 0 || format == nullptr || format->count() == 0) return;
  const int form = format->as<int>();
  for (const Format one : {Format::kTable, Format::kCsv, Format::kJson}) {
    if (form == static_cast<int>(one)) return;
  }
  throw Error(
      ErrorKind::kUsage,
      "`@table` picks a table, and that `@format` prints none; leave one of the two out."_cli);
}

// Ends a command: writes its output, its complaint and what a user does next. Returns the exit
// code.
int Conclude(const CLI::App& app, const OutputOptions& output, PagedOutput& pager,
             std::string complaint, int code) {
  const CLI::Option* table = OptionOf(app, "@table"_cli);
  if (table != nullptr && table->count() > 0 && complaint.empty() && !ChosenTableWasPrinted()) {
    complaint = fmt::format("`@table` picks one of several tables, and here {} prints one."_cli,
                            app.get_name());
    code = kExitUsage;
  }
  pager.Show();
  code = FinishOutput(code, output.colour);
  if (!complaint.empty()) {
    Complain(complaint, output.colour);
  } else if (SpeaksToPeople(app)) {
    const std::string process = ChosenProcess(app);
    if (!process.empty()) std::fputs(("acltape: " + process + "\n").c_str(), stderr);
    const std::string next = NextStep(app, code);
    if (!next.empty()) std::fputs(("next: " + next + "\n").c_str(), stderr);
  }
  return code;
}

// Runs a command whose options were parsed; returns its exit code.
int RunCommand(Command& chosen, const CLI::App& app, const OutputOptions& output) {
  Screen screen = LookAt(STDOUT_FILENO, output.colour);
  const CLI::Option* verbose = app.get_option_no_throw("@verbose"_cli);
  const bool paged = screen.terminal && !output.no_pager && !chosen.TakesProgram() &&
                     app.get_option_no_throw("@format"_cli) != nullptr &&
                     (verbose == nullptr || verbose->count() == 0);
  const Screen terminal = screen;
  if (output.wide) screen.width = 0;
  SetOutputScreen(screen);

  std::string complaint;
  int code = kExitDevice;
  bool refused = false;  // the command got no memory, because it is limited
  PagedOutput pager(paged ? PagerCommand() : "", terminal);
  try {
    if (!chosen.TakesProgram()) LimitMemory(app);
    CheckFiles(app);
    CheckOutputs(app);
    CheckTableChoice(app);
    FoldSpools(app);
    if (chosen.ExecutesTrace()) UseKitOfTrace(app.get_option("trace")->as<std::string>());
    code = chosen.Run();
  } catch (...) {
    Failure failure = FailureOf(std::current_exception());
    if (failure.silent) return failure.code;
    complaint = std::move(failure.sentence);
    code = failure.code;
    refused = failure.refused;
  }
  try {
    code = Conclude(app, output, pager, complaint, code);
    // Libraries whose threads could not start wait for them for ever when the process ends.
    if (refused) _exit(code);
    return code;
  } catch (const std::exception& error) {
    // The code of a program that ran is what its caller asks for.
    if (!complaint.empty() || !chosen.TakesProgram()) {
      SayPlainly(complaint.empty() ? PlainCause(error) : complaint);
      return complaint.empty() ? kExitDevice : code;
    }
    return code;
  }
}

}  // namespace

int Main(int argc, char** argv, const std::vector<std::unique_ptr<Command>>& commands) {
  CommandTree tree(commands);
  const CLI::App& app = tree.app();
  const ColourWish& colour = tree.output().colour;
  tree.app().footer(kFooter);
  try {
    Command* chosen = tree.Parse({argv + 1, argv + argc});
    if (chosen == nullptr) {
      fmt::print(stderr, "{}", app.help());
      return kExitUsage;
    }
    return RunCommand(*chosen, *app.get_subcommand(chosen->Name()), tree.output());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    Complain(UsageSentence(app, tree.words(), error), colour);
    return kExitUsage;
  } catch (...) {
    const Failure failure = FailureOf(std::current_exception());
    if (!failure.silent) Complain(failure.sentence, colour);
    return failure.code;
  }
}

}  // namespace acltape::cli
