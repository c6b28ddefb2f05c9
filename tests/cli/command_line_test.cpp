#include "cli/frame/command_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/frame/command_tree.h"
#include "cli/frame/options.h"
#include "cli/help/option_list.h"
#include "storage/error.h"

namespace acltape::cli {
namespace {

using Words = std::vector<std::string>;
// The words that CLI11 found for each option and argument of a command, by its name.
using Results = std::map<std::string, Words>;

Results ResultsOf(const CLI::App& command) {
  Results results;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() > 0) results[option->get_name()] = option->results();
  }
  return results;
}

// A command line that was given, what CLI11 made of it, and the command that was printed of it.
struct Case {
  Words given;
  Results results;
  std::string printed;

  friend std::ostream& operator<<(std::ostream& out, const Case& one) {
    out << "given:";
    for (const std::string& word : one.given) out << " [" << word << "]";
    return out << "\nprinted: " << one.printed;
  }
};

// Nothing when the words are no command line.
std::optional<Case> Parse(CommandTree& tree, const Words& words) {
  try {
    Command* command = tree.Parse(words);
    if (command == nullptr) return std::nullopt;
    return Case{words, ResultsOf(*tree.app().get_subcommand(command->Name())),
                command->given().Text()};
  } catch (const CLI::ParseError&) {
    return std::nullopt;
  }
}

// The words of printed commands after "acltape", as a shell reads them.
std::vector<Words> SplitByShell(const std::vector<Case>& cases) {
  const std::string script = testing::TempDir() + "command_lines.sh";
  const std::string output = testing::TempDir() + "command_lines.words";
  {
    std::ofstream file(script);
    file << "acltape() { for word in \"$@\"; do printf '%s\\0' \"$word\"; done; printf '\\1\\0'; "
            "}\n";
    for (const Case& one : cases) file << one.printed << '\n';
  }
  EXPECT_EQ(std::system(("sh " + script + " > " + output).c_str()), 0);
  std::ifstream file(output);
  std::vector<Words> split(1);
  for (std::string word; std::getline(file, word, '\0');) {
    if (word == "\1") {
      split.emplace_back();
    } else {
      split.back().push_back(word);
    }
  }
  split.pop_back();
  std::filesystem::remove(script);
  std::filesystem::remove(output);
  return split;
}

// Values of every kind that an option may take, and such that a shell or a parser may take for
// something else.
const Words kValues = {"3",
                       "20",
                       "0.25",
                       "0.95",
                       "64M",
                       "5m",
                       "10-20",
                       "1,2",
                       "aten",
                       "acl",
                       "add",
                       "a=b",
                       "plan:p",
                       "12s",
                       "",
                       " ",
                       "two words",
                       "it's",
                       "\"q\"",
                       "-x",
                       "-5",
                       "--",
                       "--mode",
                       "++",
                       "$HOME `id`",
                       "a\\b",
                       "gr\xc3\xb6\xc3\x9f"
                       "e \xf0\x9f\x98\x80",
                       "new\nline",
                       "[a,b]",
                       "a,b,\"c\"",
                       "=x",
                       "*?~#!;",
                       "replay",
                       "%s",
                       "'",
                       "--plan=x",
                       "tab\there",
                       "{calls}"};

bool IsFlag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

bool IsWord(const std::string& value) {
  return (!value.empty() && value.front() == '-') || value == "++";
}

// The words that name an option with a value, or an argument's value.
void Append(const CLI::Option& option, const std::string& value, Words& options, Words& arguments) {
  if (!option.nonpositional()) {
    arguments.push_back(value);
  } else if (IsFlag(option)) {
    options.push_back(option.get_name() + (value == "true" ? "" : "=" + value));
  } else {
    options.insert(options.end(), {option.get_name(), value});
  }
}

// Command lines of one command.
class Builder {
 public:
  Builder(CommandTree& tree, const CommandText& text)
      : tree_(tree), app_(*tree.app().get_subcommand(text.name)), text_(text) {}

  const std::vector<CLI::Option*> options() const {
    std::vector<CLI::Option*> options = app_.get_options([](CLI::Option*) { return true; });
    std::erase(options, app_.get_help_ptr());
    return options;
  }

  Words ValuesFor(const CLI::Option& option) const {
    if (IsFlag(option)) return {"true", "false"};
    Words values = kValues;
    for (const auto* list : {&text_.options, &text_.positionals}) {
      for (const OptionText& described : *list) {
        const auto& names = described.names;
        if (std::find(names.begin(), names.end(), option.get_name()) == names.end()) continue;
        values.insert(values.end(), described.choices.begin(), described.choices.end());
      }
    }
    return values;
  }

  // Values that an option takes, to be used for it in later command lines.
  Words& AcceptedOf(const CLI::Option& option) { return accepted_[option.get_name()]; }

  // The command with this option and what it cannot be without.
  std::optional<Case> With(const CLI::Option& option, const Words& values) const {
    Words options, arguments;
    for (const CLI::Option* other : this->options()) {
      if (other == &option) {
        for (const std::string& value : values) Append(option, value, options, arguments);
      } else if (other->get_required() ||
                 option.get_needs().count(const_cast<CLI::Option*>(other)) ||
                 (!option.nonpositional() && !other->nonpositional() && Precedes(*other, option))) {
        Append(*other, AnyValue(*other), options, arguments);
      }
    }
    return Parse(tree_, Line(options, arguments));
  }

  // As many options and arguments as go together, each with the value that `choose` prefers.
  std::optional<Case> WithMany(bool odd) const {
    std::optional<Case> most;
    Words options, arguments;
    for (const CLI::Option* option : this->options()) {
      const Words& values = accepted_.at(option->get_name());
      Words with = options, with_arguments = arguments;
      const size_t repeat = option->get_items_expected_max() > 1 && option->nonpositional() ? 2 : 1;
      for (size_t i = 0; i < repeat; ++i) {
        // Another odd value for each option.
        const size_t index = odd ? values.size() - 1 - (options.size() + i) % values.size() : 0;
        Append(*option, values[index], with, with_arguments);
      }
      Words missing = with, missing_arguments = with_arguments;
      for (const CLI::Option* other : this->options()) {
        if (!other->get_required() || other == option) continue;
        if (!other->nonpositional()
                ? !Precedes(*other, *option) && Precedes(*option, *other)
                : std::find(with.begin(), with.end(), other->get_name()) == with.end()) {
          Append(*other, AnyValue(*other), missing, missing_arguments);
        }
      }
      if (auto parsed = Parse(tree_, Line(missing, missing_arguments))) {
        most = std::move(parsed);
        options = std::move(with);
        arguments = std::move(with_arguments);
      }
    }
    return most;
  }

 private:
  // True if argument `a` stands before `b`.
  bool Precedes(const CLI::Option& a, const CLI::Option& b) const {
    if (a.nonpositional() || b.nonpositional()) return false;
    const auto all = this->options();
    return std::find(all.begin(), all.end(), &a) < std::find(all.begin(), all.end(), &b);
  }

  std::string AnyValue(const CLI::Option& option) const {
    if (IsFlag(option)) return "true";
    const auto known = accepted_.find(option.get_name());
    if (known != accepted_.end() && !known->second.empty()) return known->second.front();
    return option.nonpositional() ? "3" : "t.db";
  }

  Words Line(const Words& options, const Words& arguments) const {
    Words words{text_.name};
    const bool dashes = std::any_of(arguments.begin(), arguments.end(), IsWord);
    if (!dashes) words.insert(words.end(), arguments.begin(), arguments.end());
    words.insert(words.end(), options.begin(), options.end());
    if (dashes) {
      // An option that takes several words takes the first dashes as their end.
      const CLI::Option* last =
          options.size() < 2 ? nullptr : app_.get_option_no_throw(options[options.size() - 2]);
      if (last != nullptr && last->get_allow_extra_args()) words.emplace_back("--");
      words.emplace_back("--");
      words.insert(words.end(), arguments.begin(), arguments.end());
    }
    return words;
  }

  CommandTree& tree_;
  CLI::App& app_;
  const CommandText& text_;
  std::map<std::string, Words> accepted_;
};

TEST(CommandLine, OfEveryCommandWithEveryOptionParsesAgainToTheSameValues) {
  const auto all = AllCommands();
  CommandTree tree(all);
  std::vector<Case> cases;
  size_t commands = 0, options = 0;
  for (const CommandText& text : ListCommands(tree.app())) {
    ++commands;
    Builder builder(tree, text);
    for (const CLI::Option* option : builder.options()) {
      ++options;
      Words& values = builder.AcceptedOf(*option);
      for (const std::string& value : builder.ValuesFor(*option)) {
        std::optional<Case> one = builder.With(*option, {value});
        if (!one || one->results.count(option->get_name()) == 0) continue;
        values.push_back(value);
        cases.push_back(std::move(*one));
      }
      ASSERT_FALSE(values.empty()) << "acltape " << text.name << " takes none of these values for "
                                   << option->get_name() << "; add one that it takes";
      const bool text_option =
          option->get_type_name().rfind("TEXT", 0) == 0 && option->get_type_name() == "TEXT";
      if (text_option && option->nonpositional()) {
        // Lone dashes always begin the program of a command that runs one.
        EXPECT_EQ(values.size() + (text.takes_program ? 1 : 0), kValues.size())
            << text.name << " " << option->get_name();
      }
      if (option->get_items_expected_max() > 1 && option->nonpositional()) {
        if (auto one = builder.With(*option, {values.front(), values.back()})) {
          cases.push_back(std::move(*one));
        }
      }
    }
    for (const bool odd : {false, true}) {
      if (auto one = builder.WithMany(odd)) cases.push_back(std::move(*one));
    }
  }
  EXPECT_GT(commands, 25u);
  EXPECT_GT(options, 300u);
  EXPECT_GT(cases.size(), 3000u);

  RecordProperty("commands", std::to_string(commands));
  RecordProperty("options", std::to_string(options));
  RecordProperty("command_lines", std::to_string(cases.size()));
  const std::vector<Words> split = SplitByShell(cases);
  ASSERT_EQ(split.size(), cases.size());
  const auto fresh = AllCommands();
  CommandTree again(fresh);
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::optional<Case> parsed = Parse(again, split[i]);
    ASSERT_TRUE(parsed) << cases[i] << "\nis no command line";
    EXPECT_EQ(parsed->results, cases[i].results) << cases[i];
    EXPECT_EQ(parsed->printed, cases[i].printed) << cases[i];
  }
}

std::string TextOf(const Words& words) {
  const auto all = AllCommands();
  CommandTree tree(all);
  return tree.Parse(words)->given().Text();
}

TEST(CommandLine, HasTheWordsThatWereGivenAndNotWhatTheyStandFor) {
  EXPECT_EQ(TextOf({"replay", "my trace.db", "--mode=captured", "--max-memory", "2G"}),
            "acltape replay 'my trace.db' --mode captured --max-memory 2G");
  EXPECT_EQ(TextOf({"bisect", "t.db", "--budget", "5m", "--run-steps", "1,2", "--plant", "a@1",
                    "--plant", "b@2"}),
            "acltape bisect t.db --run-steps 1,2 --plant a@1 --plant b@2 --budget 5m");
  EXPECT_EQ(TextOf({"record", "-o", "t.db", "--", "python3", "a b.py", "--seed"}),
            "acltape record --output t.db -- python3 'a b.py' --seed");
}

TEST(CommandLine, ChangesAreMadeOnACopy) {
  const auto all = AllCommands();
  CommandTree tree(all);
  const CommandLine given = tree.Parse({"bisect", "t.db", "--bad", "plan:p.json", "--plant", "a@1",
                                        "--plant", "b@2", "--table", "summary", "--in-graph"})
                                ->given();
  EXPECT_EQ(given.Without("bad").With("plan", "p.json").As("experiment").Text(),
            "acltape experiment t.db --plant a@1 --plant b@2 --plan p.json");
  EXPECT_EQ(given.With("plant", "c d").Without("table").With("git").Text(),
            "acltape bisect t.db --bad plan:p.json --in-graph --plant 'c d' --git");
  EXPECT_EQ(given.Printer().With({{"calls", "1,2"}, {"in-graph", false}, {"bad", false}}),
            "acltape bisect t.db --plant a@1 --plant b@2 --table summary --calls 1,2");
  EXPECT_EQ(given.Text(),
            "acltape bisect t.db --bad plan:p.json --in-graph --plant a@1 --plant b@2 --table "
            "summary");
  EXPECT_TRUE(given.Has("in-graph"));
  EXPECT_FALSE(given.Has("calls"));
}

TEST(CommandLine, OfALibraryWithoutACommandIsEmpty) {
  EXPECT_EQ(meaning::GivenCommand().With({{"calls", "1"}}), "");
}

TEST(CommandLine, HasTheSettingsOfTheSoftDeviceBeforeIt) {
  setenv("ACLTAPE_SOFT_FAULTS", "aclnnMm #2 flip=23", 1);
  const std::string text = TextOf({"replay", "t.db"});
  unsetenv("ACLTAPE_SOFT_FAULTS");
  EXPECT_EQ(text, "ACLTAPE_SOFT_FAULTS='aclnnMm #2 flip=23' acltape replay t.db");
}

// The operators of a trace are those of the PyTorch that it was recorded with. Other ones differ in
// their last bits.
TEST(CommandLine, OfEveryCommandThatTakesADeviceAsksForTheKitOfTheTrace) {
  const std::map<std::string, Words> lines = {
      {"bisect", {"bisect", "t.db"}},
      {"compare", {"compare", "t.db"}},
      {"experiment", {"experiment", "t.db"}},
      {"export", {"export", "t.db", "--to", "cpp", "--calls", "1", "-o", "f"}},
      {"gate", {"gate", "t.db", "--baseline", "b.json", "--times"}},
      {"lint", {"lint", "t.db", "--prove"}},
      {"plan", {"plan", "t.db", "--calibrate"}},
      {"prove", {"prove", "t.db"}},
      {"replay", {"replay", "t.db"}},
      {"trim", {"trim", "t.db", "--calls", "1", "-o", "s.db"}},
  };
  const auto all = AllCommands();
  CommandTree tree(all);
  size_t with_device = 0;
  for (const CLI::App* command : tree.app().get_subcommands({})) {
    if (OptionOf(*command, "trace") == nullptr) continue;
    if (OptionOf(*command, "@device-lib"_cli) == nullptr) continue;
    ++with_device;
    ASSERT_EQ(lines.count(command->get_name()), 1u) << "add a line for " << command->get_name();
  }
  EXPECT_EQ(with_device, lines.size());
  for (const auto& [name, words] : lines) {
    const auto fresh = AllCommands();
    CommandTree parsed(fresh);
    EXPECT_TRUE(parsed.Parse(words)->ExecutesTrace()) << name;
  }
}

class Variables : public testing::Test {
 protected:
  void Set(const char* process, const char* level) {
    setenv("ACLTAPE_PROCESS", process, 1);
    setenv("ACLTAPE_LEVEL", level, 1);
  }
  void TearDown() override {
    unsetenv("ACLTAPE_PROCESS");
    unsetenv("ACLTAPE_LEVEL");
  }
};

TEST_F(Variables, StandForOptionsThatWereNotGivenAndArePrintedAsThose) {
  Set("rank:1", "acl");
  EXPECT_EQ(TextOf({"replay", "t.db"}), "acltape replay t.db --process rank:1 --level acl");
  EXPECT_EQ(TextOf({"replay", "t.db", "--level", "aten", "--process", "2"}),
            "acltape replay t.db --process 2 --level aten");
  Set("", "");
  EXPECT_EQ(TextOf({"replay", "t.db"}), "acltape replay t.db");
}

TEST_F(Variables, OfAProcessStandBehindARankThatASelectionNames) {
  Set("rank:0", "");
  EXPECT_EQ(TextOf({"lint", "t.db", "rank:1/step:3"}),
            "acltape lint t.db rank:1/step:3 --process rank:1");
  EXPECT_EQ(TextOf({"query", "t.db", "top_ops", "--calls", "step:3/rank:1", "--process", "rank:1"}),
            "acltape query t.db top_ops --calls step:3/rank:1 --process rank:1");
}

TEST_F(Variables, AndARankInASelectionMayNotNameAnotherProcessThanTheOption) {
  const auto all = AllCommands();
  CommandTree tree(all);
  try {
    tree.Parse({"lint", "t.db", "rank:1/step:3", "--process", "rank:0"});
    ADD_FAILURE() << "it was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_STREQ(error.what(),
                 "the calls are those of rank:1 and --process is rank:0; give one of them");
  }
}

TEST_F(Variables, AreNothingToACommandWithoutTheOption) {
  Set("rank:1", "no level");
  EXPECT_EQ(TextOf({"info", "t.db"}), "acltape info t.db");
  EXPECT_EQ(TextOf({"record", "--level", "aten"}), "acltape record --level aten");
}

TEST_F(Variables, OfNoLevelIsRefusedByName) {
  Set("", "leaves");
  const auto all = AllCommands();
  CommandTree tree(all);
  try {
    tree.Parse({"replay", "t.db"});
    ADD_FAILURE() << "it was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_STREQ(error.what(),
                 "the variable ACLTAPE_LEVEL is 'leaves', which is no level; it takes aten or acl, "
                 "as --level does.");
  }
}

}  // namespace
}  // namespace acltape::cli
