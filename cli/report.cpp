#include "cli/report.h"

#include <fmt/core.h>

namespace acltape::cli {

OpenedTrace::OpenedTrace(const std::string& path, bool discard_results) {
  if (!discard_results) {
    try {
      reader_ = std::make_unique<storage::Reader>(path, storage::Reader::Mode::kReadWrite);
      results_ = std::make_unique<storage::Results>(*reader_);
      return;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kDevice) throw;
      fmt::print(stderr, "acltape: results are not kept: {}\n", error.what());
    }
  }
  reader_ = std::make_unique<storage::Reader>(path);
}

Table NoteTable(const std::vector<replayer::Note>& notes) {
  Table table({"rule", "severity", "call_id", "calls", "verdict", "message"});
  for (const replayer::Note& note : notes) {
    table.Add({note.rule, note.severity, note.call_id == 0 ? Cell() : Cell(note.call_id),
               note.count, note.verdict, note.message});
  }
  return table;
}

}  // namespace acltape::cli
