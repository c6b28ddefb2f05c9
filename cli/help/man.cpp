#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <map>

#include "cli/frame/options.h"
#include "cli/help/commands.h"
#include "cli/help/man_page.h"
#include "cli/help/option_list.h"
#include "storage/error.h"
#include "storage/new_file.h"

namespace acltape::cli {
namespace {

// A page that this command wrote before.
bool IsManPage(const std::string& path) {
  constexpr std::string_view kHead = ".TH ACLTAPE";
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) && line.starts_with(kHead);
}

class ManCommand final : public Command {
 public:
  std::string Name() const override { return "man"; }
  std::string Summary() const override {
    return "Print the manual page of a command, or write all";
  }
  std::string Examples() const override {
    return "  acltape man replay | man -l -\n"
           "  acltape man @folder ~/.local/share/man/man1\n"
           "An installation has the pages where `man acltape` and `man acltape-replay` find them."_cli;
  }

  void Declare(CLI::App& app) override {
    app_ = &app;
    app.add_option("command", command_, "The command (default: acltape itself)")
        ->type_name("COMMAND");
    AddOption(app, "folder", folder_, "Write the pages of all commands into this folder")
        ->excludes("command");
  }

  int Run() override {
    const CLI::App& root = *app_->get_parent();
    const std::vector<CommandText> commands = ListCommands(root);
    const std::string first = RootPage(DescribeRoot(root), commands);
    if (folder_.empty()) {
      fmt::print("{}", command_.empty() ? first : PageOf(commands));
      return kExitFine;
    }
    std::map<std::string, std::string> pages = {{"acltape.1", first}};
    for (const CommandText& command : commands) {
      pages.emplace("acltape-" + command.name + ".1", CommandPage(command));
    }
    for (const auto& [name, page] : pages) storage::JudgeOutput(Path(name), Rules());
    std::error_code ignored;
    std::filesystem::create_directories(folder_, ignored);
    for (const auto& [name, page] : pages) storage::WriteNewFile(Path(name), page, Rules());
    return kExitFine;
  }

 private:
  std::string PageOf(const std::vector<CommandText>& commands) const {
    for (const CommandText& command : commands) {
      if (command.name == command_) return CommandPage(command);
    }
    throw Error(ErrorKind::kUsage, fmt::format("there is no command '{}'; `acltape @help` lists "
                                               "them."_cli,
                                               command_));
  }
  std::string Path(const std::string& name) const {
    return (std::filesystem::path(folder_) / name).string();
  }
  static storage::OutputRules Rules() {
    return {.is_own = IsManPage, .remedy = "it is no page of acltape, so name another folder"};
  }

  CLI::App* app_ = nullptr;
  std::string command_;
  std::string folder_;
};

}  // namespace

std::unique_ptr<Command> MakeManCommand() { return std::make_unique<ManCommand>(); }

}  // namespace acltape::cli
