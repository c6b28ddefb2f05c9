// One command of `acltape`. A command declares its options, runs, and carries its own help; adding
// one means a file that implements this interface, its maker in the commands.h of its folder, and a
// row in cli/commands.cpp.
#pragma once

#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/frame/command_line.h"
#include "storage/trace_part.h"

namespace CLI {
class App;
}

namespace acltape::cli {

// Exit codes besides those of ErrorKind (storage/error.h).
constexpr int kExitFine = 0;
constexpr int kExitDifferences = 1;  // differences or findings
constexpr int kExitUsage = 2;
constexpr int kExitDevice = 4;
constexpr int kExitReaderGone = 128 + SIGPIPE;  // as of a process that the signal ended

class Command {
 public:
  virtual ~Command() = default;
  virtual std::string Name() const = 0;
  virtual std::string Summary() const = 0;   // one sentence
  virtual std::string Examples() const = 0;  // lines of shell, shown at the end of --help
  // Commands that only acltape itself runs are not listed in the help.
  virtual bool Hidden() const { return false; }
  // The words after a lone "--" belong to another program and are handed to SetProgram.
  virtual bool TakesProgram() const { return false; }
  virtual void SetProgram(std::vector<std::string> /*words*/) {}
  // True when the command, with the options that it was given, executes operators of its argument
  // `trace`. It then runs with the kit of the libtorch that the trace was recorded with.
  virtual bool ExecutesTrace() const { return false; }
  virtual void Declare(CLI::App& app) = 0;
  // Called after parsing, before Run: what was given, and the part of the trace that was asked for.
  void Take(CommandLine given, storage::TracePart part) {
    given_ = std::move(given);
    part_ = std::move(part);
  }
  const CommandLine& given() const { return given_; }
  // Returns the exit code; throws acltape::Error.
  virtual int Run() = 0;

 protected:
  // To be handed to each reader of the trace, by commands that work on the calls of a trace.
  const storage::TracePart& part() const { return part_; }

 private:
  CommandLine given_;
  storage::TracePart part_;
};

// Parses the command line, runs the command that it names, prints errors to stderr; returns the
// exit code. Help lists the commands in their order here.
int Main(int argc, char** argv, const std::vector<std::unique_ptr<Command>>& commands);

}  // namespace acltape::cli
