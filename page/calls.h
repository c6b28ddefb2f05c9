// The calls of a trace as columns of the page, with what they point to: signatures, ranges of the
// program, lines of its source, and tasks of the device where the trace has them.
#pragma once

#include <cstdint>
#include <functional>

#include "page/document.h"
#include "storage/reader.h"

namespace acltape::page {

struct CallsWritten {
  int64_t shown = 0;
  int64_t all = 0;  // calls of the chosen process
};

// Writes at most `most` calls, the earliest. `progress` may be empty.
CallsWritten WriteCalls(const storage::Reader& trace, int64_t most, Document& page,
                        const std::function<void(int64_t done, int64_t total)>& progress);

}  // namespace acltape::page
