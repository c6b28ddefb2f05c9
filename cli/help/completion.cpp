#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/help/commands.h"
#include "cli/help/completion_scripts.h"
#include "cli/help/option_list.h"

namespace acltape::cli {
namespace {

class CompletionCommand final : public Command {
 public:
  std::string Name() const override { return "completion"; }
  std::string Summary() const override {
    return "Print the script that completes this command in a shell";
  }
  std::string Examples() const override {
    return "  source <(acltape completion bash)\n"
           "  acltape completion zsh > ~/.zsh/site-functions/_acltape\n"
           "  acltape completion fish > ~/.config/fish/completions/acltape.fish\n"
           "An installation has them where the shells look.";
  }

  void Declare(CLI::App& app) override {
    app_ = &app;
    app.add_option("shell", shell_, "The shell")
        ->check(CLI::IsMember({"bash", "zsh", "fish"}))
        ->required();
  }

  int Run() override {
    const CLI::App& root = *app_->get_parent();
    const auto write = shell_ == "bash"  ? BashCompletion
                       : shell_ == "zsh" ? ZshCompletion
                                         : FishCompletion;
    fmt::print("{}", write(DescribeRoot(root), ListCommands(root)));
    return kExitFine;
  }

 private:
  CLI::App* app_ = nullptr;
  std::string shell_;
};

}  // namespace

std::unique_ptr<Command> MakeCompletionCommand() { return std::make_unique<CompletionCommand>(); }

}  // namespace acltape::cli
