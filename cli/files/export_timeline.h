// The part of `acltape export` that writes timelines.
#pragma once

#include <string>

#include "cli/terminal/table.h"
#include "storage/trace_part.h"

namespace acltape::cli {

struct TimelineFile {
  std::string trace;
  std::string calls;  // a selection; empty: all
  std::string path;
  storage::TracePart part;
  bool perfetto = true;  // else for Chrome
  bool overwrite = false;
};

// Writes the file and returns what it holds. Error kUsage when the file is there already or the
// selection picks nothing.
Table ExportTimeline(const TimelineFile& file);

}  // namespace acltape::cli
