// One trace made of several: of the ranks of a program that were recorded into files of their own.
// All ids are new (docs/schema.md, "Merged traces"), because each recording counts from 1. What
// repeats (operators, layouts, signatures, scopes, stacks, contents) is kept once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "storage/call_numbers.h"

namespace acltape::storage {

struct MergeOptions {
  std::string output;
  bool overwrite = false;
  bool contents = true;  // false: the table `payload` stays empty
  std::function<void(int64_t done, int64_t total)> progress;  // in calls; may be null
};

// Writes the trace. Recordings are copied; results of tools are not, except steps that the program
// marked. Throws Error kUsage when the traces cannot become one: other levels or other values were
// recorded, the same process is in two of them, or they hold too much for one; kTrace when one is
// damaged; and as TraceCopy.
void Merge(const std::vector<MergeSource>& sources, const MergeOptions& options);

}  // namespace acltape::storage
