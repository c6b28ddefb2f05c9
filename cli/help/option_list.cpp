#include "cli/help/option_list.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <regex>
#include <sstream>
#include <string_view>

#include "cli/frame/command_tree.h"

namespace acltape::cli {
namespace {

// "all|none [none]" and "TEXT:{add,list}=list" name the words that an option takes.
std::vector<std::string> ChoicesIn(const std::string& value) {
  static const std::regex kWords(R"(^\s*([a-z0-9_.]+(?:\|[a-z0-9_.]+)+)|\{([^{}]*)\})");
  std::smatch found;
  if (!std::regex_search(value, found, kWords)) return {};
  std::string words = found[1].matched ? found[1].str() : found[2].str();
  std::replace(words.begin(), words.end(), ',', ' ');
  std::replace(words.begin(), words.end(), '|', ' ');
  std::istringstream list(words);
  return {std::istream_iterator<std::string>(list), {}};
}

// Types that no file has. TEXT stands for anything.
bool MayBeFile(const CLI::Option& option) {
  static constexpr std::string_view kFiles[] = {"TEXT", "FILE", "FOLDER", "PATH"};
  const std::string type = option.get_type_name();
  return std::any_of(std::begin(kFiles), std::end(kFiles),
                     [&](std::string_view file) { return type.rfind(file, 0) == 0; });
}

OptionText Describe(const CLI::Option& option, const CLI::Formatter& formatter) {
  OptionText text;
  if (option.nonpositional()) {
    for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  } else {
    text.names.push_back(option.get_name(true));
  }
  text.value = formatter.make_option_opts(&option);
  text.value.erase(0, text.value.find_first_not_of(' '));
  text.description = option.get_description();
  text.required = option.get_required();
  text.takes_value = option.get_items_expected_max() > 0;
  text.choices = ChoicesIn(text.value);
  text.takes_file = text.takes_value && text.choices.empty() && MayBeFile(option);
  return text;
}

CommandText DescribeApp(const CLI::App& app) {
  CommandText text;
  text.name = app.get_name();
  text.summary = app.get_description();
  text.footer = app.get_footer();
  const auto* formatter = dynamic_cast<const CLI::Formatter*>(app.get_formatter().get());
  if (formatter == nullptr) return text;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // not shown by --help either
    auto& list = option->nonpositional() ? text.options : text.positionals;
    list.push_back(Describe(*option, *formatter));
  }
  return text;
}

}  // namespace

CommandText DescribeRoot(const CLI::App& root) { return DescribeApp(root); }

std::vector<CommandText> ListCommands(const CLI::App& root) {
  const auto* parser = dynamic_cast<const RootParser*>(&root);
  std::vector<CommandText> commands;
  for (const CLI::App* app : root.get_subcommands([](const CLI::App*) { return true; })) {
    if (app->get_group().empty()) continue;
    commands.push_back(DescribeApp(*app));
    commands.back().takes_program = parser != nullptr && parser->TakesProgram(app->get_name());
  }
  return commands;
}

}  // namespace acltape::cli
