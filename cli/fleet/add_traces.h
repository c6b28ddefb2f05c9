// Adds traces to a folder of fleet tables. The Python package acltape does it, with pyarrow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/terminal/table.h"

namespace acltape::cli {

struct TracesToAdd {
  std::string folder;
  std::vector<std::string> traces;
  std::string run;         // empty: the name of each trace's file
  int64_t rank = -1;       // rank of the one trace; -1: as the trace says
  std::string label;       // a word by which questions group parts; may be empty
  bool overwrite = false;  // parts that are there are replaced
};

// A table for one row of each part that is added.
Table TableOfParts();

// Adds the traces and shows how far it is. `parts` gets a row for each part as it is added, so that
// it has those that were added when this throws: Error kUsage if the folder or a name cannot be
// used, kTrace if a trace cannot be read, kDevice if no interpreter with pyarrow is there or the
// disk is full.
void AddTraces(const TracesToAdd& given, Table& parts);

}  // namespace acltape::cli
