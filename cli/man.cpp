#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>

#include "cli/commands.h"
#include "cli/man_page.h"
#include "cli/option_list.h"
#include "cli/options.h"
#include "storage/error.h"

namespace acltape::cli {
namespace {

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
    std::error_code ignored;
    std::filesystem::create_directories(folder_, ignored);
    Write("acltape.1", first);
    for (const CommandText& command : commands) {
      Write("acltape-" + command.name + ".1", CommandPage(command));
    }
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
  void Write(const std::string& name, const std::string& page) const {
    const std::filesystem::path path = std::filesystem::path(folder_) / name;
    std::ofstream out(path);
    out << page;
    out.close();
    if (!out) {
      throw Error(ErrorKind::kDevice, fmt::format("cannot write '{}'; name another folder with "
                                                  "@folder."_cli,
                                                  path.string()));
    }
  }

  CLI::App* app_ = nullptr;
  std::string command_;
  std::string folder_;
};

}  // namespace

std::unique_ptr<Command> MakeManCommand() { return std::make_unique<ManCommand>(); }

}  // namespace acltape::cli
