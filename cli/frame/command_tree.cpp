#include "cli/frame/command_tree.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cli/frame/memory_limit.h"
#include "cli/frame/options.h"
#include "cli/frame/trace_part_options.h"
#include "cli/frame/version.h"
#include "cli/terminal/table.h"

namespace acltape::cli {
namespace {

void AddOutputOptions(CLI::App& command, OutputOptions& options) {
  if (command.get_option_no_throw("@format"_cli) == nullptr) return;
  AddFlag(command, "wide", options.wide,
          "On a terminal: every column, and lines as long as they are");
  AddOption(command, "color", options.colour,
            "Colours in tables: on a terminal that has them unless NO_COLOR is set, or always")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, ColourWish>{{"auto", ColourWish::kAuto},
                                                                    {"always", ColourWish::kAlways},
                                                                    {"never", ColourWish::kNever}})
              .description("auto|always|never"))
      ->option_text("auto|always|never [auto]");
  AddOption(
      command, "table", [](const std::string& name) { ChooseTable(name); },
      "Of several tables print only this one, such as summary");
  AddFlag(command, "no-pager", options.no_pager,
          "On a terminal: print long output without $ACLTAPE_PAGER, $PAGER or less");
}

}  // namespace

CommandTree::CommandTree(const std::vector<std::unique_ptr<Command>>& commands)
    : app_("Records what a PyTorch or Ascend program dispatches, replays and compares it.",
           "acltape"),
      commands_(commands) {
  app_.set_version_flag("@version"_cli, VersionText());
  app_.require_subcommand(0, 1);
  app_.get_formatter()->column_width(34);
  for (const auto& command : commands_) Declare(*command);
}

void CommandTree::Declare(Command& command) {
  CLI::App* child = app_.add_subcommand(command.Name(), command.Summary());
  if (command.Hidden()) child->group("");
  if (command.TakesProgram()) app_.SetTakesProgram(command.Name());
  child->footer("Examples:\n" + command.Examples());
  child->callback([this, &command] { chosen_ = &command; });
  command.Declare(*child);
  DeclareTracePart(*child);
  AddMaxMemoryOption(*child);
  AddOutputOptions(*child, output_);
  given_.Watch(*child);
}

// The recorded program's words must not be read as ours, whatever they look like.
std::vector<std::string> CommandTree::TakeProgram() {
  std::vector<std::string> program;
  const auto named = std::find_if(commands_.begin(), commands_.end(), [&](const auto& command) {
    return !words_.empty() && words_.front() == command->Name();
  });
  if (named == commands_.end() || !(*named)->TakesProgram()) return program;
  const auto dashes = std::find(words_.begin(), words_.end(), "--");
  if (dashes != words_.end()) {
    program.assign(dashes + 1, words_.end());
    words_.erase(dashes, words_.end());
  }
  (*named)->SetProgram(program);
  return program;
}

Command* CommandTree::Parse(std::vector<std::string> words) {
  words_ = std::move(words);
  chosen_ = nullptr;
  given_.Clear();
  std::vector<std::string> program = TakeProgram();
  std::vector<std::string> reversed(words_.rbegin(), words_.rend());
  app_.parse(std::move(reversed));  // CLI11 takes the words from the back
  if (chosen_ == nullptr) return nullptr;
  const CLI::App& command = *app_.get_subcommand(chosen_->Name());
  CommandLine given(command, given_, std::move(program));
  storage::TracePart part = ReadTracePart(command, given);
  chosen_->Take(std::move(given), std::move(part));
  return chosen_;
}

}  // namespace acltape::cli
