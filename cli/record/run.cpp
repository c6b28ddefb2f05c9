#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cli/environment/interpreter.h"
#include "cli/environment/soft_environment.h"
#include "cli/environment/torch_kits.h"
#include "cli/frame/options.h"
#include "cli/frame/usage.h"
#include "cli/record/commands.h"
#include "storage/error.h"
#include "storage/pointers.h"

namespace acltape::cli {
namespace {

class RunCommand final : public Command {
 public:
  std::string Name() const override { return "run"; }
  std::string Summary() const override { return "Run a program on the soft device"; }
  std::string Examples() const override {
    return "  acltape run -- python3 train.py --device npu\n"
           "  acltape run -- .venv/bin/torchrun train.py\n"
           "The program's output and exit code are its own.";
  }
  bool TakesProgram() const override { return true; }
  void SetProgram(std::vector<std::string> words) override { program_ = std::move(words); }

  void Declare(CLI::App& app) override {
    app.prefix_command();  // the program may come without "--"
    app_ = &app;
  }

  int Run() override {
    const std::vector<std::string> before = app_->remaining();
    if (!before.empty() && before.front().front() == '-') {
      throw Error(ErrorKind::kUsage, UnknownOption(*app_, before.front()));
    }
    if (!before.empty() && !program_.empty()) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("'{}' stands before --, after which the program begins; write "
                              "acltape run -- PROGRAM [ARGUMENTS].",
                              before.front()));
    }
    if (program_.empty()) program_ = before;
    if (program_.empty()) {
      throw Error(ErrorKind::kUsage, "run needs a program: acltape run -- python3 script.py.");
    }
    const auto settings = SoftEnvironment(FindInterpreter(program_));
    PrepareKitFor(program_);
    for (const auto& [name, value] : settings) {
      setenv(name.c_str(), value.c_str(), 1);
    }
    const std::vector<char*> words = storage::PointersTo(program_);
    execvp(words[0], words.data());
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}' cannot be started: {}.", program_.front(), std::strerror(errno)));
  }

 private:
  std::vector<std::string> program_;
  CLI::App* app_ = nullptr;
};

}  // namespace

std::unique_ptr<Command> MakeRunCommand() { return std::make_unique<RunCommand>(); }

}  // namespace acltape::cli
