// Writes the work of one captured graph into a script: the forks and joins of its streams, the
// order between its leaves, and the updates of host arguments that vary.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "replayer/engine/plan_issue.h"
#include "replayer/engine/script.h"
#include "replayer/engine/varying.h"

namespace acltape::replayer {

// Writes the leaves of a region in the order of issue, inside a capture. Side streams are forked
// from stream 0 at the start and joined after the last leaf, so that only the events of the plan
// order leaves of different streams. Events from `fork` on are used for that: one for the fork and
// one for the join of each stream. `streams` may be more than the region's own. `write_leaf` writes
// the work of one leaf, by its index in the region.
void WriteRegion(const IssuedRegion& region, int fork, int streams,
                 const std::function<void(size_t index)>& write_leaf,
                 std::vector<Operation>& operations);

// The task groups of one capture, and the values that its graphs hold now.
struct HeldArguments {
  std::map<size_t, int> groups;  // by place
  std::map<size_t, int> values;  // by place: index in VaryingLeaf::match_of
};

// Writes `launch` as a task group, which holds the value that the leaf has in step `match`.
void WriteGroup(const VaryingLeaf& leaf, size_t match, int stream,
                const std::function<void()>& launch, HeldArguments& held, Script& script,
                std::vector<Operation>& operations);

// The streams and events by which updates run after the previous execution and before the next one
// (rule UPD-06).
struct UpdateOrder {
  int stream = 0;
  int executed = 0;  // event after the latest execution
  int updated = 0;   // event after the updates
  bool has_executed = false;
};

// Writes the updates of the leaves that hold another value than that of step `match`. `launch`
// writes the launches of a place on the stream of the updates. Returns the number of updates.
int WriteUpdates(const std::vector<const VaryingLeaf*>& leaves, size_t match,
                 const UpdateOrder& order, const std::function<void(size_t place)>& launch,
                 HeldArguments& held, std::vector<Operation>& operations);

}  // namespace acltape::replayer
