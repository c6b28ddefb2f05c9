#include "cli/help/completion_scripts.h"

#include <fmt/format.h>

#include <string_view>

namespace acltape::cli {
namespace {

std::string Joined(const std::vector<std::string>& words, std::string_view between) {
  return fmt::format("{}", fmt::join(words, between));
}

// One line, so that a description fits beside its option.
std::string OneLine(std::string text) {
  for (char& c : text) c = c == '\n' ? ' ' : c;
  return text;
}

// Puts a backslash before each of the characters.
std::string Escaped(std::string_view text, std::string_view characters) {
  std::string escaped;
  for (const char c : text) {
    if (characters.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// Inside single quotes of bash and zsh.
std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::vector<std::string> AllNames(const CommandText& command) {
  std::vector<std::string> names;
  for (const OptionText& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

}  // namespace

std::string BashCompletion(const CommandText& root, const std::vector<CommandText>& commands) {
  std::vector<std::string> first = AllNames(root);
  std::string cases;
  for (const CommandText& command : commands) {
    first.push_back(command.name);
    cases +=
        fmt::format("    {})\n      options='{}'\n", command.name, Joined(AllNames(command), " "));
    for (const OptionText& positional : command.positionals) {
      if (!positional.choices.empty()) {
        cases += fmt::format("      words='{}'\n", Joined(positional.choices, " "));
      }
    }
    cases += "      case $before in\n";
    for (const OptionText& option : command.options) {
      if (!option.takes_value) continue;
      cases += fmt::format("        {}) kind={} words='{}' ;;\n", Joined(option.names, "|"),
                           option.takes_file        ? "file"
                           : option.choices.empty() ? "none"
                                                    : "word",
                           Joined(option.choices, " "));
    }
    cases += "      esac ;;\n";
  }
  return fmt::format(R"(# Completes acltape in bash. Made by `acltape completion bash`.
_acltape() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  local kind=any options='' words='' i
  COMPREPLY=()
  # bash takes "--option=word" for three words.
  [[ $current == = ]] && current='' && before="=$before"
  [[ $before == = ]] && before==${{COMP_WORDS[COMP_CWORD-2]}}
  before=${{before#=}}
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W '{}' -- "$current")
    return
  fi
  # Another program follows a lone "--".
  for ((i = 2; i < COMP_CWORD; i++)); do
    [[ ${{COMP_WORDS[i]}} == -- ]] || continue
    compopt -o filenames 2>/dev/null
    if ((i + 1 == COMP_CWORD)); then
      mapfile -t COMPREPLY < <(compgen -c -f -- "$current")
    else
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
    fi
    return
  done
  case ${{COMP_WORDS[1]}} in
{}  esac
  case $kind in
    word) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
    none) ;;
    file)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    any)
      if [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
      else
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current"; compgen -f -- "$current")
      fi ;;
  esac
}}
complete -F _acltape acltape
)",
                     Joined(first, " "), cases);
}

std::string ZshCompletion(const CommandText& root, const std::vector<CommandText>& commands) {
  std::string list, cases;
  for (const CommandText& command : commands) {
    list += fmt::format("    {}\n", Quoted(command.name + ":" + OneLine(command.summary)));
    cases += fmt::format("    {})\n      _arguments -s", command.name);
    for (const OptionText& option : command.options) {
      std::string value;
      if (option.takes_value) {
        value = !option.choices.empty() ? ":value:(" + Joined(option.choices, " ") + ")"
                : option.takes_file     ? ":file:_files"
                                        : ":value: ";
      }
      const std::string text = "[" + Escaped(OneLine(option.description), "[]\\") + "]" + value;
      for (const std::string& name : option.names) {
        cases += fmt::format(" \\\n        {}", Quoted(name + text));
      }
    }
    for (const OptionText& positional : command.positionals) {
      cases += " \\\n        " +
               Quoted("::" + positional.names[0] + ":" +
                      (positional.choices.empty() ? std::string("_files")
                                                  : "(" + Joined(positional.choices, " ") + ")"));
    }
    if (command.takes_program) cases += " \\\n        '*::program:_normal'";
    cases += " ;;\n";
  }
  return fmt::format(R"(#compdef acltape
# Completes acltape in zsh. Made by `acltape completion zsh`.
_acltape() {{
  local -a commands
  commands=(
{})
  if (( CURRENT == 2 )); then
    _describe command commands
    compadd -- {}
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
_acltape "$@"
)",
                     list, Joined(AllNames(root), " "), cases);
}

std::string FishCompletion(const CommandText& root, const std::vector<CommandText>& commands) {
  // Inside single quotes of fish a backslash stands before a quote and a backslash.
  const auto quoted = [](std::string_view text) { return "'" + Escaped(text, "'\\") + "'"; };
  std::string script = "# Completes acltape in fish. Made by `acltape completion fish`.\n";
  const auto add_names = [&](const OptionText& option) {
    for (const std::string& name : option.names) {
      script += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
  };
  for (const OptionText& option : root.options) {
    script += "complete -c acltape -n __fish_use_subcommand";
    add_names(option);
    script += " -d " + quoted(OneLine(option.description)) + "\n";
  }
  for (const CommandText& command : commands) {
    script += fmt::format("complete -c acltape -f -n __fish_use_subcommand -a {} -d {}\n",
                          command.name, quoted(OneLine(command.summary)));
    const std::string seen =
        "complete -c acltape -n " + quoted("__fish_seen_subcommand_from " + command.name);
    for (const OptionText& option : command.options) {
      script += seen;
      add_names(option);
      if (option.takes_value) {
        script += option.takes_file ? " -r -F" : " -x";
        if (!option.choices.empty()) script += " -a " + quoted(Joined(option.choices, " "));
      }
      script += " -d " + quoted(OneLine(option.description)) + "\n";
    }
    for (const OptionText& positional : command.positionals) {
      if (positional.choices.empty()) continue;
      script += seen + " -a " + quoted(Joined(positional.choices, " ")) + "\n";
    }
  }
  return script;
}

}  // namespace acltape::cli
