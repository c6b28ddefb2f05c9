#include "cli/tables/merged_traces.h"

#include <fmt/format.h>

#include "analyzer/ranks/clocks.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/table.h"
#include "storage/merge.h"

namespace acltape::cli {

MergedTraces::MergedTraces(const std::vector<std::string>& paths) {
  std::vector<const storage::Reader*> traces;
  for (const std::string& path : paths) {
    traces_.push_back(std::make_unique<storage::Reader>(path));
    traces.push_back(traces_.back().get());
  }
  sources_ = analyzer::ranks::AlignClocks(traces);
}

void MergedTraces::Write(const std::string& output, bool overwrite, bool contents) const {
  Progress progress("merge");
  storage::Merge(sources_,
                 {.output = output,
                  .overwrite = overwrite,
                  .contents = contents,
                  .progress = [&](int64_t done, int64_t total) { progress.Update(done, total); }});
  progress.Clear();
}

TemporaryMerge::TemporaryMerge(const std::vector<std::string>& paths)
    : traces_(paths), path_(folder_.path() + "/merged.db") {
  traces_.Write(path_, false, false);
}

std::string ClockText(const storage::MergeSource& source) {
  if (source.error_ns == 0) return source.clock;
  if (source.error_ns < 0) return "not known how exact: " + source.clock;
  return fmt::format("within {}: {}", HumanNs(static_cast<double>(source.error_ns)), source.clock);
}

}  // namespace acltape::cli
