// The difference between the given command and the command that shows a result again. A library
// says it, and the command line (cli/frame/command_line.h) alone makes a text of it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meaning/options.h"

namespace acltape::meaning {

// One option that differs.
struct OptionChange {
  // The option has this value in place of those that were given.
  OptionChange(OptionName name, std::string text)
      : option(&name.option), value(std::move(text)), given(true) {}
  // The flag is given, or the option is left out.
  OptionChange(OptionName name, bool is_given) : option(&name.option), given(is_given) {}
  OptionChange(OptionName name, const char* text) : OptionChange(name, std::string(text)) {}

  const Option* option;
  std::optional<std::string> value;  // nothing: a flag, or an option that is left out
  bool given;
};
using OptionChanges = std::vector<OptionChange>;

// The command that was given, for libraries that keep or print the command of a result.
class GivenCommand {
 public:
  GivenCommand() = default;
  explicit GivenCommand(std::function<std::string(const OptionChanges&)> print)
      : print_(std::move(print)) {}
  // The text of the command with these changes. Empty when there was no command, as in a test that
  // calls the library itself.
  std::string With(const OptionChanges& changes) const { return print_ ? print_(changes) : ""; }

 private:
  std::function<std::string(const OptionChanges&)> print_;
};

}  // namespace acltape::meaning
