// All commands, declared to CLI11 with the options that many of them share.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/frame/command.h"
#include "cli/terminal/screen.h"

namespace acltape::cli {

// How a command's output is shown; every command that prints tables takes these options.
struct OutputOptions {
  ColourWish colour = ColourWish::kAuto;
  bool wide = false;
  bool no_pager = false;
};

// The parser of the whole command line. It knows what the parsers of its commands cannot say.
class RootParser final : public CLI::App {
 public:
  using CLI::App::App;
  bool TakesProgram(const std::string& command) const { return takes_program_.contains(command); }
  void SetTakesProgram(const std::string& command) { takes_program_.insert(command); }

 private:
  std::set<std::string> takes_program_;
};

class CommandTree {
 public:
  // The commands must outlive the tree.
  explicit CommandTree(const std::vector<std::unique_ptr<Command>>& commands);
  CommandTree(const CommandTree&) = delete;
  CommandTree& operator=(const CommandTree&) = delete;

  CLI::App& app() { return app_; }
  const OutputOptions& output() const { return output_; }
  // The words that were parsed, without those of another program.
  const std::vector<std::string>& words() const { return words_; }

  // Parses the words after "acltape" and gives the command what it needs to run. Returns null when
  // no command is named. Throws CLI::ParseError, and Error kUsage for a variable of the environment
  // that stands for an option and that the command does not take. Called again, it parses another
  // command line; variables of options that are not given keep their values, so that only one
  // command of a tree should run.
  Command* Parse(std::vector<std::string> words);

 private:
  void Declare(Command& command);
  std::vector<std::string> TakeProgram();

  RootParser app_;
  const std::vector<std::unique_ptr<Command>>& commands_;
  OutputOptions output_;
  GivenWords given_;
  std::vector<std::string> words_;
  Command* chosen_ = nullptr;
};

}  // namespace acltape::cli
