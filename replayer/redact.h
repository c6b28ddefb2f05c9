// Makes a copy of a trace without the values that the program computed. Shapes, types, calls, times
// and statistics stay.
//
// Dropped: contents of tensors and their digests, values that the program read back from tensors,
// the command line, environment, names of host, processes and threads, paths, source locations,
// names of scopes, addresses of handles, texts that the program passed as arguments, and results of
// tools (their messages quote values).
// Kept: the numbers that the program passed to operators and the words by which operators choose
// (redact_words.h), because a replay needs them; names of operators and of their arguments;
// and the range, mean, norm and counts of NaN and infinities of each content. A redacted trace can
// be replayed with Data::kSynthesised.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "storage/reader.h"

namespace acltape::replayer {

struct RedactOptions {
  std::string output;
  bool overwrite = false;
  std::set<std::string> keep;  // "meta", "scopes", "stacks": not dropped
  std::function<void(int64_t done, int64_t total)> progress;
};

struct RedactReport {
  int64_t contents = 0;       // dropped, distinct
  int64_t content_bytes = 0;  // bytes of the dropped contents, before compression
  int64_t snapshots = 0;      // rows that had contents or digests
  int64_t statistics = 0;     // rows of `snapshots` that have statistics now
  int64_t host_values = 0;    // results of host reads that were dropped
  int64_t bytes = 0;          // size of the file
  int64_t bytes_before = 0;
};

// Throws Error kUsage for an unknown word in `keep`, and the errors of storage::TraceCopy.
RedactReport Redact(const storage::Reader& reader, const RedactOptions& options);

}  // namespace acltape::replayer
