// Writes the report page of a trace: one HTML file that needs no server and no network.
//
//   std::ofstream file("t.html", std::ios::binary);
//   const PageReport report = WritePage(reader, {.title = "t.db"}, file);
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

#include "storage/reader.h"

namespace acltape::page {

struct PageOptions {
  std::string title;
  std::string plan_file;  // empty: the stored plan, else one made in memory
  std::string journal;    // journal of a bisection; empty: the one beside the trace
  const storage::Reader* against = nullptr;  // a trace to stand beside this one
  int64_t most_calls = 2000000;              // the earliest ones are shown
  // Called with the name of a part, and how much of it is done.
  std::function<void(const char* part, int64_t done, int64_t total)> progress;
};

struct PageReport {
  int64_t calls_shown = 0;
  int64_t calls = 0;
};

// Throws Error kUsage when a file that the options name is not fit for the trace, kTrace when the
// trace is damaged, kDevice when the stream fails.
PageReport WritePage(const storage::Reader& trace, const PageOptions& options, std::ostream& out);

}  // namespace acltape::page
