#include "cli/fold_spools.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <string>

#include "cli/progress.h"
#include "meaning/options.h"
#include "recorder/collector/fold.h"
#include "storage/error.h"
#include "storage/visible_text.h"

namespace acltape::cli {
namespace {

void Fold(const std::string& trace) {
  try {
    Progress progress("reading what was received");
    const collector::Folded folded =
        collector::FoldSpool(trace, [&](int64_t done, int64_t all) { progress.Update(done, all); });
    progress.Clear();
    if (!folded.done) return;
    fmt::print(stderr,
               "acltape: the recorder of '{}' was killed; of the {} calls that it had received, {} "
               "were in the trace, and now all are.\n",
               storage::VisibleText(trace), folded.calls, folded.calls_before);
  } catch (const Error& error) {
    fmt::print(stderr,
               "acltape: the recorder of '{}' was killed, and what it had received besides is not "
               "in the trace: {}\n",
               storage::VisibleText(trace), storage::VisibleText(error.what()));
  }
}

}  // namespace

void FoldSpools(const CLI::App& command) {
  for (const char* name : {"trace", "a", "b", "@against"_cli}) {
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option != nullptr && option->count() == 1) Fold(option->as<std::string>());
  }
}

}  // namespace acltape::cli
