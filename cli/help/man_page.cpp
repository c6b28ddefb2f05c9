#include "cli/help/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "cli/frame/version.h"

namespace acltape::cli {
namespace {

// Text in which no character means anything to troff.
std::string Plain(std::string_view text) {
  std::string plain;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) plain += "\\&";
    if (c == '\\') {
      plain += "\\e";
    } else if (c == '-') {
      plain += "\\-";
    } else if (c == '`' || c == '\'') {
      plain += c == '`' ? "\\(ga" : "\\(aq";
    } else if (c == '~' || c == '^') {
      plain += c == '~' ? "\\(ti" : "\\(ha";
    } else {
      plain += c;
    }
    line_begins = c == '\n';
  }
  return plain;
}

std::string Upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string Head(const std::string& name, const std::string& summary) {
  return fmt::format(
      ".TH {} 1 \"{}\" \"acltape {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n",
      Plain(Upper(name)), VersionDate(), VersionNumber(), Plain(name), Plain(summary));
}

void AddOptions(std::string& page, const char* heading, const std::vector<OptionText>& options) {
  if (options.empty()) return;
  page += fmt::format(".SH {}\n", heading);
  for (const OptionText& option : options) {
    std::vector<std::string> names;
    for (const std::string& name : option.names) names.push_back("\\fB" + Plain(name) + "\\fR");
    page += fmt::format(".TP\n{}", fmt::join(names, ", "));
    if (!option.value.empty()) page += " \\fI" + Plain(option.value) + "\\fR";
    page += "\n" + Plain(option.description) + "\n";
  }
}

// Lines that stay as they are: examples and grammar.
void AddLines(std::string& page, const char* heading, std::string text) {
  constexpr std::string_view kExamples = "Examples:\n";
  if (text.starts_with(kExamples)) text.erase(0, kExamples.size());
  if (!text.empty()) page += fmt::format(".SH {}\n.nf\n{}\n.fi\n", heading, Plain(text));
}

}  // namespace

std::string CommandPage(const CommandText& command) {
  std::string page = Head("acltape-" + command.name, command.summary);
  page += fmt::format(".B acltape {}\n", Plain(command.name));
  page += "[\\fIOPTIONS\\fR]\n";
  for (const OptionText& positional : command.positionals) {
    const std::string word = "\\fI" + Plain(Upper(positional.names[0])) + "\\fR";
    page += positional.required ? word + "\n" : "[" + word + "]\n";
  }
  if (command.takes_program) page += "\\-\\- \\fIPROGRAM\\fR [\\fIARGUMENTS\\fR]\n";
  page += ".SH DESCRIPTION\n" + Plain(command.summary) + ".\n";
  AddOptions(page, "ARGUMENTS", command.positionals);
  AddOptions(page, "OPTIONS", command.options);
  AddLines(page, "EXAMPLES", command.footer);
  page +=
      ".SH \"EXIT STATUS\"\n0 fine, 1 differences or findings, 2 usage, 3 unusable trace, 4 device "
      "or runtime error, 125 cannot judge.\n.SH \"SEE ALSO\"\n.BR acltape (1)\n";
  return page;
}

std::string RootPage(const CommandText& root, const std::vector<CommandText>& commands) {
  std::string page =
      Head("acltape", "record, replay and compare what PyTorch and Ascend programs do");
  page += ".B acltape\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n" + Plain(root.summary) +
          "\n.SH COMMANDS\n";
  for (const CommandText& command : commands) {
    page += fmt::format(".TP\n.BR acltape\\-{} (1)\n{}.\n", Plain(command.name),
                        Plain(command.summary));
  }
  AddOptions(page, "OPTIONS", root.options);
  AddLines(page, "NOTES", root.footer);
  page +=
      ".SH ENVIRONMENT\n.TP\n.B ACLTAPE_CACHE\nWhere kits for other versions of PyTorch are kept; "
      "default: $XDG_CACHE_HOME/acltape, else \\(ti/.cache/acltape.\n.TP\n.B ACLTAPE_PROCESS, "
      "ACLTAPE_LEVEL\nStand for the options \\-\\-process and \\-\\-level of commands that have "
      "them.\n";
  return page;
}

}  // namespace acltape::cli
