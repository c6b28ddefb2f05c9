// Options that several commands declare in the same way.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <string>

#include "cli/table.h"

namespace acltape::cli {

// Declares an option that takes one of a few words.
template <typename Value>
void AddChoice(CLI::App& app, const std::string& flag, Value& value,
               const std::map<std::string, Value>& choices, const std::string& description) {
  std::string words;
  std::string chosen;
  for (const auto& [word, choice] : choices) {
    words += (words.empty() ? "" : "|") + word;
    if (choice == value) chosen = word;
  }
  app.add_option(flag, value, description)
      ->transform(CLI::CheckedTransformer(choices).description(words))
      ->option_text(words + " [" + chosen + "]");
}

// --format table|csv|json
inline void AddFormatOption(CLI::App& app, Format& format) {
  AddChoice(app, "--format", format,
            {{"table", Format::kTable}, {"csv", Format::kCsv}, {"json", Format::kJson}},
            "How to print");
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

// --device-lib: the library of the C interface, and what it is for.
inline void AddDeviceOption(CLI::App& app, std::string& path,
                            const std::string& purpose = "to run on") {
  app.add_option(
      "--device-lib", path,
      "ACL library " + purpose + ": a toolkit folder or libascendcl.so (default: the soft device)");
}

// --memory SIZE: bytes of the trace's contents that stay in memory.
inline void AddMemoryOption(CLI::App& app, int64_t& bytes) {
  app.add_option("--memory", bytes,
                 "Bytes of recorded values that stay in memory between uses (64M, 2G; default: "
                 "512M); the device's own memory is not counted")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->check(AtLeast(0))
      ->option_text("SIZE");
}

}  // namespace acltape::cli
