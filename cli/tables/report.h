// Parts that the replaying commands share: opening a trace to which they also write results, and
// tables that several of them print.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analyzer/program/source_lines.h"
#include "cli/terminal/table.h"
#include "replayer/replay.h"
#include "storage/reader.h"
#include "storage/results.h"

namespace acltape::cli {

// A trace together with the results that a command adds to it. A trace in a read-only place is
// still replayed; then there is nowhere to keep results, which is said on stderr.
class OpenedTrace {
 public:
  OpenedTrace(const std::string& path, bool discard_results, const storage::TracePart& part);
  const storage::Reader& reader() const { return *reader_; }
  storage::Results* results() const { return results_.get(); }  // null: nothing is kept

 private:
  std::unique_ptr<storage::Reader> reader_;
  std::unique_ptr<storage::Results> results_;
};

Table NoteTable(const std::vector<replayer::Note>& notes, const analyzer::SourceLines& lines);

// The regions of a captured step, in order: the graphs, and what runs eagerly between them.
Table RegionTable(const std::vector<replayer::RegionReport>& regions,
                  const analyzer::SourceLines& lines);

}  // namespace acltape::cli
