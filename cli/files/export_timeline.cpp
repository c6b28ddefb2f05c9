#include "cli/files/export_timeline.h"

#include <memory>

#include "cli/choices/selection.h"
#include "cli/terminal/progress.h"
#include "meaning/options.h"
#include "storage/reader.h"
#include "timeline/chrome_writer.h"
#include "timeline/output_file.h"
#include "timeline/perfetto_writer.h"
#include "timeline/timeline.h"

namespace acltape::cli {

Table ExportTimeline(const TimelineFile& file) {
  const storage::Reader reader(file.trace, file.part);
  timeline::TimelineOptions options;
  if (!file.calls.empty()) {
    const Selection selection = Selection::Parse(file.calls);
    if (selection.asks_step() && reader.Steps().empty()) {
      throw Error(ErrorKind::kUsage,
                  file.trace +
                      " has no steps to pick from; record with @steps-from RANGE or pick calls by "
                      "number."_cli);
    }
    const auto lines = std::make_shared<CallLines>(reader, selection.asks_line());
    options.wanted = [selection, lines](const timeline::CallKey& call) {
      SelectionSubject subject{call.call_id, call.step, call.stream, call.name, call.full_name,
                               "",           0};
      lines->Tell(call.call_id, subject);
      return selection.Contains(subject);
    };
  }
  timeline::OutputFile output(file.path, {.overwrite = file.overwrite, .trace = file.trace});
  std::unique_ptr<timeline::EventWriter> writer;
  if (file.perfetto) {
    writer = std::make_unique<timeline::PerfettoWriter>(output);
  } else {
    writer = std::make_unique<timeline::ChromeWriter>(output);
  }
  Progress progress("export");
  const int64_t calls = reader.CallCount(/*leaves_only=*/false);
  options.progress = [&](int64_t done) { progress.Update(done, calls); };
  const timeline::TimelineCounts counts = timeline::WriteTimeline(reader, options, *writer);
  output.Finish();
  progress.Clear();

  Table table({"quantity", "value"});
  const std::pair<const char*, int64_t> kRows[] = {
      {"calls", counts.calls},
      {"slices, with ranges, steps and work of the device", counts.slices},
      {"pieces of work of the device", counts.device_slices},
      {"arrows", counts.arrows},
      {"values of memory", counts.memory_values},
      {"tracks", counts.tracks},
      {"bytes before compression", output.bytes()}};
  table.Add({"file", file.path});
  for (const auto& [quantity, value] : kRows) table.Add({quantity, value});
  return table;
}

}  // namespace acltape::cli
