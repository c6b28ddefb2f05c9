// The arrows of one kind that begin at calls, in order of the calls where they begin. A call knows
// by itself which arrows end at it, not which begin; so these rows are read beside the calls.
#pragma once

#include <memory>
#include <vector>

#include "storage/reader.h"
#include "timeline/event_writer.h"

namespace acltape::timeline {

class CallLookup;

class Arrows {
 public:
  virtual ~Arrows() = default;
  // Adds the arrows that begin at this call and those that end there. Calls come in ascending
  // order.
  virtual void At(int64_t call_id, std::vector<Arrow>& begins, std::vector<Arrow>& ends) = 0;
};

// The kinds of arrows that the trace has rows for.
std::vector<std::unique_ptr<Arrows>> FindArrows(const storage::Reader& trace, CallLookup& calls);

}  // namespace acltape::timeline
