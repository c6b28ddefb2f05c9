#include "cli/frame/fold_spools.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <string>

#include "cli/frame/options.h"
#include "cli/terminal/progress.h"
#include "meaning/options.h"
#include "recorder/collector/fold.h"
#include "storage/error.h"
#include "storage/visible_text.h"

namespace acltape::cli {

void FoldSpoolOf(const std::string& trace) {
  try {
    Progress progress("reading what was received");
    const collector::Folded folded =
        collector::FoldSpool(trace, [&](int64_t done, int64_t all) { progress.Update(done, all); });
    progress.Clear();
    if (!folded.done && !folded.kept.empty()) {
      fmt::print(
          stderr,
          "acltape: the recorder of '{}' was killed, and its spool has lost a part: {} calls "
          "are whole there and {} in the trace; the trace is left as it is, and the spool "
          "is kept as '{}'.\n",
          storage::VisibleText(trace), folded.calls, folded.calls_before,
          storage::VisibleText(folded.kept));
    }
    if (folded.goes_on != 0) {
      fmt::print(stderr,
                 "acltape: the recorder of '{}' was killed; its keeper goes on recording until the "
                 "program (process {}) has ended, and what it keeps is not in the trace yet.\n",
                 storage::VisibleText(trace), folded.goes_on);
    }
    if (!folded.done) return;
    if (!folded.kept.empty()) {
      fmt::print(
          stderr,
          "acltape: the recorder of '{}' was killed, and its spool has lost a part: {} calls "
          "are whole there and {} were in the trace; the trace has those of the spool now, "
          "and the earlier trace is kept as '{}'.\n",
          storage::VisibleText(trace), folded.calls, folded.calls_before,
          storage::VisibleText(folded.kept));
      return;
    }
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

void FoldSpools(const CLI::App& command) {
  for (const char* name : kTraceOptions) {
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option == nullptr) continue;
    for (const std::string& trace : option->results()) FoldSpoolOf(trace);
  }
}

}  // namespace acltape::cli
