#include "cli/frame/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "replayer/session.h"
#include "storage/shell_word.h"

namespace acltape::cli {
namespace {

// True if a parser may take the word for something else than an argument of the command.
bool NeedsDashes(const std::string& word) {
  return (!word.empty() && word.front() == '-') || word == "++";
}

// The words of values that may stand together, with a delimiter. A parser leaves out an empty value
// between others, so that it stands alone.
std::vector<std::string> Joined(const std::vector<std::string>& values, char delimiter) {
  std::vector<std::string> words;
  for (const std::string& value : values) {
    if (words.empty() || value.empty() || words.back().empty()) {
      words.push_back(value);
    } else {
      words.back() += delimiter + value;
    }
  }
  return words;
}

}  // namespace

void GivenWords::Watch(CLI::App& command) {
  for (CLI::Option* option : command.get_options([](CLI::Option*) { return true; })) {
    if (option == command.get_help_ptr()) continue;
    // CLI11 puts what transforms a value before what was declared earlier.
    option->transform([words = words_, option](std::string word) {
      (*words)[option].push_back(word);
      return word;
    });
  }
}

std::vector<std::string> GivenWords::Of(const CLI::Option& option) const {
  const auto found = words_->find(&option);
  return found != words_->end() ? found->second : option.results();
}

CommandLine::Part CommandLine::PartOf(const CLI::Option& option, std::vector<std::string> values) {
  Part part;
  part.name = option.get_name();
  part.argument = !option.nonpositional();
  part.flag = option.get_items_expected_max() == 0;
  part.takes_more = option.get_allow_extra_args();
  part.delimiter = option.get_delimiter();
  part.values = std::move(values);
  return part;
}

CommandLine::CommandLine(const CLI::App& command, const GivenWords& given,
                         std::vector<std::string> program)
    : app_(&command), command_(command.get_name()), program_(std::move(program)) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() > 0) parts_.push_back(PartOf(*option, given.Of(*option)));
  }
  if (program_.empty() && command.get_prefix_command()) program_ = command.remaining();
}

CommandLine::Part& CommandLine::Find(const meaning::Option& option) {
  const auto found = std::find_if(parts_.begin(), parts_.end(),
                                  [&](const Part& part) { return part.name == option.spelling; });
  if (found != parts_.end()) return *found;
  Part part;
  part.name = option.spelling;
  return parts_.emplace_back(std::move(part));
}

CommandLine CommandLine::With(const meaning::OptionChanges& changes) const {
  CommandLine changed = *this;
  for (const meaning::OptionChange& change : changes) {
    if (!change.given) {
      std::erase_if(changed.parts_,
                    [&](const Part& part) { return part.name == change.option->spelling; });
      continue;
    }
    Part& part = changed.Find(*change.option);
    part.flag = !change.value;
    part.values = {change.value.value_or("true")};
  }
  return changed;
}

CommandLine CommandLine::With(meaning::OptionName option, const std::string& value) const {
  return With({{option, value}});
}

CommandLine CommandLine::With(meaning::OptionName flag) const { return With({{flag, true}}); }

CommandLine CommandLine::Without(meaning::OptionName option) const {
  return With({{option, false}});
}

bool CommandLine::Has(meaning::OptionName option) const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [&](const Part& part) { return part.name == option.option.spelling; });
}

CommandLine CommandLine::WithArgument(const std::string& name, const std::string& value) const {
  CommandLine changed = *this;
  for (Part& part : changed.parts_) {
    if (part.argument && part.name == name) part.values = {value};
  }
  return changed;
}

CommandLine CommandLine::WithProgram(std::vector<std::string> words) const {
  CommandLine changed = *this;
  changed.program_ = std::move(words);
  return changed;
}

CommandLine CommandLine::As(const std::string& command) const {
  CommandLine other = Without("table");
  const CLI::App* app = app_->get_parent()->get_subcommand(command);
  other.app_ = app;
  other.command_ = command;
  std::erase_if(other.parts_, [&](const Part& part) {
    const auto options = app->get_options();
    return std::none_of(options.begin(), options.end(),
                        [&](const CLI::Option* own) { return own->get_name() == part.name; });
  });
  return other;
}

std::vector<std::string> CommandLine::Words() const {
  std::vector<std::string> words{command_};
  std::vector<std::string> arguments;
  for (const Part& part : parts_) {
    if (part.argument) arguments.insert(arguments.end(), part.values.begin(), part.values.end());
  }
  const bool dashes = std::any_of(arguments.begin(), arguments.end(), NeedsDashes);
  if (!dashes) words.insert(words.end(), arguments.begin(), arguments.end());
  bool takes_more = false;
  for (const Part& part : parts_) {
    if (part.argument) continue;
    takes_more = part.takes_more;
    for (const std::string& value :
         part.delimiter == '\0' ? part.values : Joined(part.values, part.delimiter)) {
      if (part.flag) {
        words.push_back(value == "true" ? part.name : part.name + "=" + value);
      } else {
        words.insert(words.end(), {part.name, value});
      }
    }
  }
  if (dashes) {
    // An option that takes more words takes the dashes too, as the end of its own.
    if (takes_more) words.emplace_back("--");
    words.emplace_back("--");
    words.insert(words.end(), arguments.begin(), arguments.end());
  }
  if (!program_.empty()) {
    words.emplace_back("--");
    words.insert(words.end(), program_.begin(), program_.end());
  }
  return words;
}

std::string CommandLine::Text() const {
  std::string text = replayer::SoftDeviceSettings() + "acltape";
  for (const std::string& word : Words()) text += " " + storage::ShellWord(word);
  return text;
}

meaning::GivenCommand CommandLine::Printer() const {
  return meaning::GivenCommand(
      [line = *this](const meaning::OptionChanges& changes) { return line.With(changes).Text(); });
}

}  // namespace acltape::cli
