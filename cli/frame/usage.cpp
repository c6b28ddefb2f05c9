#include "cli/frame/usage.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <regex>

#include "cli/terminal/similar.h"
#include "meaning/options.h"
#include "storage/error.h"
#include "storage/plain_file.h"

namespace acltape::cli {
namespace {

namespace fs = std::filesystem;

std::string HelpOf(const CLI::App& command) {
  return command.get_parent() == nullptr
             ? "`acltape @help` lists the commands"_cli
             : fmt::format("`acltape {} @help` explains it"_cli, command.get_name());
}

// A sentence with the place of the help. A question mark ends its own part.
std::string WithHelp(const std::string& sentence, const CLI::App& command) {
  const bool question = !sentence.empty() && sentence.back() == '?';
  return fmt::format("{}{} {}.", sentence, question ? "" : ";", HelpOf(command));
}

std::string UpperCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  return text;
}

// "acltape graph TRACE [SELECTION]".
std::string CallOf(const CLI::App& command) {
  std::string text = "acltape " + command.get_name();
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = UpperCase(option->get_name(true));
    text += option->get_required() ? " " + name : " [" + name + "]";
  }
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional() || !option->get_required()) continue;
    text += " " + option->get_name() + " " + option->get_type_name();
  }
  return text;
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> OptionsOf(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  }
  return text;
}

const CLI::Option* FindOption(const CLI::App& command, const std::string& name) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_name() == name || option->get_name(true) == name) return option;
  }
  return nullptr;
}

// "captured|eager" of an option that takes one of a few words, else an empty text.
std::string ChoicesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t colon = type.find(':');
  std::string words = colon == std::string::npos ? "" : type.substr(colon + 1);
  if (words.find(' ') != std::string::npos) return "";  // a range
  std::erase_if(words, [](char letter) { return letter == '{' || letter == '}'; });
  std::replace(words.begin(), words.end(), ',', '|');
  return words;
}

std::vector<std::string> SplitAt(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t from = 0;
  for (;;) {
    const size_t end = text.find(separator, from);
    parts.push_back(text.substr(from, end - from));
    if (end == std::string::npos) return parts;
    from = end + 1;
  }
}

bool LooksLikeOption(const std::string& word) {
  return word.size() > 1 && word[0] == '-' &&
         std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

std::string UnknownCommand(const CLI::App& app, const std::string& word) {
  if (LooksLikeOption(word)) {
    return fmt::format(
        "`{}` stands before the command, and options come after it: acltape COMMAND "
        "TRACE [options]; {}.",
        word, HelpOf(app));
  }
  std::error_code ignored;
  if (fs::is_regular_file(word, ignored)) {
    return fmt::format("`{}` is a file, and the command comes first: acltape info {}; {}.", word,
                       word, HelpOf(app));
  }
  return WithHelp(
      fmt::format("there is no command `{}`{}", word, DidYouMean(word, CommandNames(app))), app);
}

// Words that no option and no positional of the command took, in their order.
std::string Unexpected(const CLI::App& command, const std::vector<std::string>& words) {
  std::vector<std::string> extras = command.remaining();
  const auto place = [&](const std::string& word) {
    return std::find(words.begin(), words.end(), word) - words.begin();
  };
  std::stable_sort(extras.begin(), extras.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
  for (const std::string& word : extras) {
    if (LooksLikeOption(word)) return UnknownOption(command, word);
  }
  if (extras.empty()) return WithHelp("the command line has a word too many", command);
  const auto positionals =
      command.get_options([](const CLI::Option* option) { return option->get_positional(); });
  return WithHelp(fmt::format("`{}` is one argument too many: {}{}", extras.front(),
                              CallOf(command), positionals.empty() ? " takes none" : ""),
                  command);
}

// "0.500000" -> "0.5".
std::string WithoutZeros(std::string number) {
  if (number.find('.') == std::string::npos) return number;
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number;
}

// The parser's own words for a value that a validator refused, as a sentence of ours. Validators
// of this project already speak in whole sentences and are passed on.
std::string WrongValue(const CLI::App& command, const std::string& message) {
  const size_t colon = message.find(": ");
  if (colon == std::string::npos) return message;
  const std::string name = message.substr(0, colon);
  const std::string said = message.substr(colon + 2);
  const CLI::Option* option = FindOption(command, name);
  const std::string choices = option == nullptr ? "" : ChoicesOf(*option);
  std::smatch part;
  if (std::regex_search(said, part, std::regex("^Check (.*) value in ")) ||
      std::regex_search(said, part, std::regex("^(.*) not in \\{"))) {
    const std::string word = part[1];
    const bool positional = option != nullptr && option->get_positional();
    return fmt::format("`{}{}` is none of {}{}", positional ? "" : name + ' ', word, choices,
                       DidYouMean(word, SplitAt(choices, '|')));
  }
  if (std::regex_search(said, part, std::regex("^Value (.*) not in range (.*) to (.*)$"))) {
    return fmt::format("`{} {}` is out of range; it takes {} to {}", name, part[1].str(),
                       WithoutZeros(part[2]), WithoutZeros(part[3]));
  }
  if (std::regex_search(said, part, std::regex("^(.*) unit not recognized"))) {
    const bool time =
        option != nullptr && option->get_type_name().find("TIME") != std::string::npos;
    return fmt::format("`{}` does not know the unit '{}'; write {}", name, part[1].str(),
                       time ? "500ms, 30s, 5m or 2h" : "65536, 64K, 16M or 1G");
  }
  return fmt::format("`{}`: {}", name, said);
}

std::string NotConverted(const CLI::App& command, const std::string& message) {
  std::smatch part;
  if (!std::regex_search(message, part, std::regex("^Could not convert: ([^ ]*) = (.*)$"))) {
    return message;
  }
  const CLI::Option* option = FindOption(command, part[1]);
  const std::string type = option == nullptr ? "" : option->get_type_name();
  const char* kind = type.starts_with("INT")     ? "a whole number"
                     : type.starts_with("UINT")  ? "a whole number of at least 0"
                     : type.starts_with("FLOAT") ? "a number"
                                                 : "another value";
  return fmt::format("`{}` takes {}, not '{}'", part[1].str(), kind, part[2].str());
}

std::string WrongCount(const CLI::App& command, const std::string& message) {
  const std::string name = message.substr(0, message.find(": "));
  if (message.find("At Most") != std::string::npos) {
    return fmt::format("`{}` is given more than once", name);
  }
  const CLI::Option* option = FindOption(command, name);
  const std::string choices = option == nullptr ? "" : ChoicesOf(*option);
  return fmt::format("`{}` needs a value{}{}", name, choices.empty() ? "" : ": ", choices);
}

std::string MissingArgument(const CLI::App& command, const std::string& message) {
  std::vector<std::string> missing;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_required() && option->count() == 0) {
      missing.push_back(option->get_positional() ? UpperCase(option->get_name(true))
                                                 : '`' + option->get_name() + '`');
    }
  }
  if (missing.empty()) return message;
  return fmt::format("{} needs {}: {}", command.get_name(), Joined(missing), CallOf(command));
}

// The first line without its full stop.
std::string FirstLine(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  while (!line.empty() && (line.back() == '.' || line.back() == ' ')) line.pop_back();
  return line;
}

bool BeginsAs(const std::string& path, const std::string& text) {
  return storage::PlainHead(path, text.size()) == text;
}

// A plan is the only JSON file that users name in a place where a trace may stand.
bool IsPlan(const std::string& path) {
  const std::string head = storage::PlainHead(path, 4096);
  const size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string::npos && head[first] == '{';
}

std::vector<std::string> FilesBeside(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  constexpr size_t kMost = 10000;  // a folder of very many files is not searched to its end
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (names.size() == kMost) break;
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void CheckTrace(const CLI::App& command, const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    const std::string meant = MostSimilar(fs::path(path).filename().string(), FilesBeside(path));
    if (meant.empty()) return;
    throw Error(ErrorKind::kTrace, fmt::format("there is no trace '{}'; did you mean '{}'?", path,
                                               (fs::path(path).parent_path() / meant).string()));
  }
  // A command that takes a plan as its second argument tells the two apart itself.
  if (command.get_option_no_throw("plan") != nullptr) return;
  if (fs::is_regular_file(path, ignored) && IsPlan(path)) {
    const bool takes_plan = command.get_option_no_throw("@plan"_cli) != nullptr;
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}' is a plan and stands in the place of the trace; write acltape {} "
                            "TRACE{}",
                            path, command.get_name(), takes_plan ? " @plan "_cli + path : " ..."));
  }
}

}  // namespace

std::string UsageSentence(const CLI::App& app, const std::vector<std::string>& words,
                          const CLI::ParseError& error) {
  if (words.empty()) return FirstLine(error.what());
  const auto commands = app.get_subcommands(
      [&](const CLI::App* child) { return child->get_name() == words.front(); });
  if (commands.empty()) return UnknownCommand(app, words.front());
  const CLI::App* command = commands.front();
  const std::string message = FirstLine(error.what());
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return Unexpected(*command, words);
  std::string sentence = message;
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) {
    sentence = WrongValue(*command, message);
  } else if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    sentence = NotConverted(*command, message);
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    sentence = WrongCount(*command, message);
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    sentence = MissingArgument(*command, message);
  } else if (dynamic_cast<const CLI::RequiresError*>(&error) != nullptr) {
    sentence =
        std::regex_replace(message, std::regex("^(.*) requires (.*)$"), "`$1` goes with `$2` only");
  } else if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    // The value of an option that the command does not have stands where a positional may.
    for (const std::string& word : command->remaining()) {
      if (LooksLikeOption(word)) return UnknownOption(*command, word);
    }
    sentence = std::regex_replace(message, std::regex("^(.*) excludes (.*)$"),
                                  "`$1` and `$2` exclude each other");
  }
  return WithHelp(sentence, *command);
}

std::string UnknownOption(const CLI::App& command, const std::string& word) {
  std::string name = word.substr(0, word.find('='));
  const auto own = OptionsOf(command);
  const std::string sentence = fmt::format("{} has no option `{}`", command.get_name(), name);
  // "-mode" is "--mode" with a dash too few.
  if (name[1] != '-' && name.size() > 2) name = '-' + name;
  const std::string similar = MostSimilar(name, own);
  const bool near = !similar.empty() && EditDistance(name, similar) <= 1;
  std::vector<std::string> owners;
  std::vector<std::string> elsewhere;
  for (const CLI::App* other :
       command.get_parent()->get_subcommands([](const CLI::App*) { return true; })) {
    if (other == &command || other->get_group().empty()) continue;
    const auto options = OptionsOf(*other);
    elsewhere.insert(elsewhere.end(), options.begin(), options.end());
    if (std::find(options.begin(), options.end(), name) != options.end()) {
      owners.push_back(other->get_name());
    }
  }
  if (!near && !owners.empty()) {
    constexpr size_t kNamed = 3;
    const bool more = owners.size() > kNamed;
    if (more) owners.resize(kNamed);
    return WithHelp(fmt::format("{}; it is an option of {}{}", sentence, Joined(owners),
                                more ? " and others" : ""),
                    command);
  }
  if (!similar.empty()) {
    return WithHelp(fmt::format("{}; did you mean `{}`?", sentence, similar), command);
  }
  const std::string meant = MostSimilar(name, elsewhere);
  if (meant.empty()) return WithHelp(sentence, command);
  for (const CLI::App* other :
       command.get_parent()->get_subcommands([](const CLI::App*) { return true; })) {
    if (other->get_option_no_throw(meant) == nullptr) continue;
    return WithHelp(fmt::format("{}; `{}` is an option of {}", sentence, meant, other->get_name()),
                    command);
  }
  return WithHelp(sentence, command);
}

bool IsDatabase(const std::string& path) { return BeginsAs(path, "SQLite format 3"); }

void CheckFiles(const CLI::App& command) {
  for (const char* name : kTraceOptions) {
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option == nullptr) continue;
    for (const std::string& trace : option->results()) CheckTrace(command, trace);
  }
  const CLI::Option* plan = command.get_option_no_throw("@plan"_cli);
  if (plan == nullptr || plan->count() != 1) return;
  const std::string path = plan->as<std::string>();
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    const std::string meant = MostSimilar(fs::path(path).filename().string(), FilesBeside(path));
    if (meant.empty()) return;
    throw Error(ErrorKind::kUsage, fmt::format("there is no plan '{}'; did you mean '{}'?", path,
                                               (fs::path(path).parent_path() / meant).string()));
  }
  if (IsDatabase(path)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("`@plan {}` names a trace, not a plan; `acltape plan {} -o plan.json` "
                            "writes one"_cli,
                            path, path));
  }
}

}  // namespace acltape::cli
