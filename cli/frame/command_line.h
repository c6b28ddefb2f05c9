// The command that was given, as a value: the command, its arguments, and every option that was
// given or that a variable of the environment gave. It prints itself, with or without changes, so
// that no other place writes a command line of acltape that makes a result again.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "meaning/command_change.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace acltape::cli {

// Keeps the words of options as they were given. CLI11 itself replaces them by what they stand for:
// "captured" by a number, "64M" by bytes.
class GivenWords {
 public:
  // To be called when all options of the command are declared, and before anything is parsed.
  void Watch(CLI::App& command);
  // Forgets everything, before another command line is parsed.
  void Clear() { words_->clear(); }
  // The values of an option, in the order in which they were given.
  std::vector<std::string> Of(const CLI::Option& option) const;

 private:
  using Words = std::map<const CLI::Option*, std::vector<std::string>>;
  std::shared_ptr<Words> words_ = std::make_shared<Words>();
};

class CommandLine {
 public:
  CommandLine() = default;
  // A parsed command. `program` are the words that belong to another program (those after "--");
  // without "--" they are the words that the parser left over.
  // The command's App must outlive the value and all that is made of it.
  CommandLine(const CLI::App& command, const GivenWords& given,
              std::vector<std::string> program = {});

  // The same command with the option at this value, whatever values it had.
  CommandLine With(meaning::OptionName option, const std::string& value) const;
  CommandLine With(meaning::OptionName flag) const;
  CommandLine Without(meaning::OptionName option) const;
  CommandLine With(const meaning::OptionChanges& changes) const;
  // Returns the command with another value of an argument, such as "trace".
  CommandLine WithArgument(const std::string& name, const std::string& value) const;
  // Returns the command with other words of another program.
  CommandLine WithProgram(std::vector<std::string> words) const;
  // The same arguments and options for another command, as far as that command has them. --table is
  // left out, because another command prints other tables.
  CommandLine As(const std::string& command) const;

  bool Has(meaning::OptionName option) const;
  // The words after "acltape". Parsed again, they give the same values to the same options.
  std::vector<std::string> Words() const;
  // Text for a shell. The settings of the soft device stand before it, because results depend on
  // them.
  std::string Text() const;
  // Text for libraries, which say what is to be changed.
  meaning::GivenCommand Printer() const;

 private:
  struct Part {
    std::string name;  // "--mode"; of an argument "trace"
    bool argument = false;
    bool flag = false;
    bool takes_more = false;  // takes the words after its value too
    char delimiter = '\0';    // between values of one word
    std::vector<std::string> values;
  };

  static Part PartOf(const CLI::Option& option, std::vector<std::string> values);
  Part& Find(const meaning::Option& option);

  const CLI::App* app_ = nullptr;
  std::string command_;
  std::vector<Part> parts_;
  std::vector<std::string> program_;
};

}  // namespace acltape::cli
