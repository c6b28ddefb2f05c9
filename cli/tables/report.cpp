#include "cli/tables/report.h"

#include <fmt/core.h>

#include "cli/tables/where.h"

namespace acltape::cli {

OpenedTrace::OpenedTrace(const std::string& path, bool discard_results,
                         const storage::TracePart& part) {
  if (!discard_results) {
    try {
      reader_ = std::make_unique<storage::Reader>(path, storage::Reader::Mode::kReadWrite, part);
      results_ = std::make_unique<storage::Results>(*reader_);
      return;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kDevice) throw;
      fmt::print(stderr, "acltape: results are not kept: {}\n", error.what());
    }
  }
  reader_ = std::make_unique<storage::Reader>(path, part);
}

Table NoteTable(const std::vector<replayer::Note>& notes, const analyzer::SourceLines& lines) {
  Table table({"rule", "severity", "call_id", "calls", "verdict", "message"});
  for (const replayer::Note& note : notes) {
    table.Add({note.rule, note.severity, note.call_id == 0 ? Cell() : Cell(note.call_id),
               note.count, note.verdict, note.message});
  }
  return WithLines(table, "call_id", lines);
}

Table RegionTable(const std::vector<replayer::RegionReport>& regions,
                  const analyzer::SourceLines& lines) {
  Table table({"region", "first_call", "last_call", "kind", "leaves", "tasks", "streams", "waits",
               "why not captured"});
  int64_t number = 0;
  for (const replayer::RegionReport& region : regions) {
    table.Add({++number, region.first_call, region.last_call,
               region.captured ? "captured" : "eager", region.leaves, region.tasks, region.streams,
               region.waits, region.captured ? Cell() : Cell(region.reason)});
  }
  return WithLines(table, "first_call", lines);
}

}  // namespace acltape::cli
