// The commands and options of acltape as plain values, read from the parser that --help prints.
// What describes the command line elsewhere (manual pages, completions) is made of them.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace acltape::cli {

struct OptionText {
  std::vector<std::string> names;    // "-o", "--output"; of a positional its word
  std::string value;                 // as --help has it: "FILE REQUIRED", "INT=1"; empty: a flag
  std::vector<std::string> choices;  // the words that it takes, where they are few
  std::string description;
  bool required = false;
  bool takes_value = false;
  bool takes_file = false;  // a value that may be the name of a file
};

struct CommandText {
  std::string name;
  std::string summary;
  std::string footer;  // examples
  bool takes_program = false;
  std::vector<OptionText> options;
  std::vector<OptionText> positionals;
};

// Every command that --help lists, in its order. `root` is the parser of the whole command line.
std::vector<CommandText> ListCommands(const CLI::App& root);
// Describes what `acltape` itself takes and says.
CommandText DescribeRoot(const CLI::App& root);

}  // namespace acltape::cli
