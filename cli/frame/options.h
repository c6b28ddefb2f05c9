// The ways in which commands declare the options of meaning/options.h.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "cli/terminal/table.h"
#include "meaning/options.h"

namespace acltape::cli {

// The help of an option where a command says nothing else.
inline std::string HelpOr(const std::string& help, meaning::OptionName name) {
  return help.empty() ? std::string(name.option.help) : help;
}

// Names the value of an option as the table does.
inline CLI::Option* NameValue(CLI::Option* declared, meaning::OptionName name) {
  if (!name.option.value.empty()) declared->type_name(std::string(name.option.value));
  return declared;
}

template <typename Value>
CLI::Option* AddOption(CLI::App& app, meaning::OptionName name, Value& value,
                       const std::string& help = "") {
  return NameValue(app.add_option(std::string(name.option.spelling), value, HelpOr(help, name)),
                   name);
}

// Hands the value to a function.
inline CLI::Option* AddOption(CLI::App& app, meaning::OptionName name,
                              const std::function<void(const std::string&)>& take,
                              const std::string& help) {
  return NameValue(
      app.add_option_function<std::string>(std::string(name.option.spelling), take, help), name);
}

inline CLI::Option* AddFlag(CLI::App& app, meaning::OptionName name, bool& value,
                            const std::string& help = "") {
  return app.add_flag(std::string(name.option.spelling), value, HelpOr(help, name));
}

// Declares an option that takes one of a few words.
template <typename Value>
void AddChoice(CLI::App& app, meaning::OptionName name, Value& value,
               const std::map<std::string, Value>& choices, const std::string& help = "") {
  std::string words;
  std::string chosen;
  for (const auto& [word, choice] : choices) {
    words += (words.empty() ? "" : "|") + word;
    if (choice == value) chosen = word;
  }
  AddOption(app, name, value, help)
      ->transform(CLI::CheckedTransformer(choices).description(words))
      ->option_text(words + " [" + chosen + "]");
}

// --format table|csv|json
inline void AddFormatOption(CLI::App& app, Format& format) {
  AddChoice(app, "format", format,
            {{"table", Format::kTable}, {"csv", Format::kCsv}, {"json", Format::kJson}});
}

// A whole number from `least` on; the message of CLI11's own range would name its upper end.
inline CLI::Validator AtLeast(int64_t least) {
  return CLI::Validator(
      [least](std::string& word) -> std::string {
        int64_t number = 0;
        if (CLI::detail::lexical_cast(word, number) && number >= least) return "";
        return "'" + word + "' is not a whole number of at least " + std::to_string(least);
      },
      "");
}

// Declares an option that takes a whole number from `least` on. The help shows its default.
template <typename Value>
void AddCount(CLI::App& app, meaning::OptionName name, Value& value, int64_t least,
              const std::string& help) {
  AddOption(app, name, value, help)->check(AtLeast(least))->capture_default_str();
}

// A time in seconds; a user may write it with a unit: 200ms, 60s, 5m, 1h.
inline CLI::Option* AddTime(CLI::App& app, meaning::OptionName name, double& seconds,
                            const std::string& description) {
  return AddOption(app, name, seconds, description)
      ->transform(CLI::AsNumberWithUnit(
          std::map<std::string, double>{{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}},
          CLI::AsNumberWithUnit::CASE_SENSITIVE, "TIME"))
      ->option_text("TIME");
}

// The arguments and options that name traces; each may name several.
inline constexpr const char* kTraceOptions[] = {"trace", "traces", "more",
                                                "a",     "b",      "@against"_cli};

// The option of a command by its name, null: there is none. CLI11's own function for this ends the
// process when it gets no memory.
inline const CLI::Option* OptionOf(const CLI::App& command, const std::string& name) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->check_name(name)) return option;
  }
  return nullptr;
}

// -o or --output: what is written.
inline CLI::Option* AddOutputOption(CLI::App& app, std::string& path, const std::string& help) {
  return app.add_option("-o,@output"_cli, path, help);
}

// --device-lib: the library of the C interface, and what it is for.
inline void AddDeviceOption(CLI::App& app, std::string& path,
                            const std::string& purpose = "to run on") {
  AddOption(
      app, "device-lib", path,
      "ACL library " + purpose + ": a toolkit folder or libascendcl.so (default: the soft device)");
}

// --memory SIZE: bytes of the trace's contents that stay in memory.
inline void AddMemoryOption(CLI::App& app, int64_t& bytes) {
  AddOption(app, "memory", bytes,
            "Bytes of recorded values that stay in memory between uses (64M, 2G; default: "
            "512M); the device's own memory is not counted")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->check(AtLeast(0))
      ->option_text("SIZE");
}

}  // namespace acltape::cli
