#include "cli/frame/outputs.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "cli/frame/options.h"
#include "storage/new_file.h"

namespace acltape::cli {
namespace {

// Options that name what is written. `only`: the command of which that is so; empty: of all.
struct OutputName {
  const char* name;
  std::string_view only;
};
constexpr OutputName kOutputs[] = {{"@output"_cli, ""},
                                   {"@emit"_cli, ""},
                                   {"@folder"_cli, ""},
                                   {"@write-baseline"_cli, ""},
                                   {"@journal"_cli, "bisect"}};

bool IsOutput(const CLI::App& command, const CLI::Option& option) {
  return std::any_of(std::begin(kOutputs), std::end(kOutputs), [&](const OutputName& output) {
    return option.check_name(output.name) &&
           (output.only.empty() || output.only == command.get_name());
  });
}

// A baseline may be read and then written anew.
bool MayBeBoth(const CLI::Option& read, const CLI::Option& written) {
  return read.check_name("@baseline"_cli) && written.check_name("@write-baseline"_cli);
}

}  // namespace

void CheckOutputs(const CLI::App& command) {
  for (const CLI::Option* output : command.get_options()) {
    if (output->count() == 0 || !IsOutput(command, *output)) continue;
    std::string trace;
    std::vector<std::string> reads;
    for (const CLI::Option* option : command.get_options()) {
      if (option->count() == 0 || IsOutput(command, *option) || MayBeBoth(*option, *output)) {
        continue;
      }
      const std::vector<std::string>& words = option->results();
      if (option->get_name() == "trace") {
        trace = words.front();
      } else {
        reads.insert(reads.end(), words.begin(), words.end());
      }
    }
    for (const std::string& path : output->results()) {
      storage::RefuseWhatIsRead(path, trace, reads);
    }
  }
}

}  // namespace acltape::cli
