// Writes a leaf of a program into a script: its calls, its contents and its results. Replays and
// experiments share this part.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/lowering/lowering.h"
#include "replayer/engine/script.h"
#include "replayer/values/contents.h"

namespace acltape::replayer {

// Returns where element 0 of a tensor lies.
using SpotOf = std::function<Spot(int64_t buffer_id, const storage::Layout& layout)>;

// The memory that the calls of a leaf use.
struct LeafMemory {
  SpotOf place;
  Spot nothing;      // place of tensors without elements
  Spot temporaries;  // LoweredProgram::temporary_bytes, for this leaf alone while it runs
  Spot workspace;
};

// The calls [first, end) of a script.
struct CallRange {
  int first = 0;
  int end = 0;
};

// Adds the calls of a lowered leaf to the script.
CallRange AddCalls(const analyzer::Leaf& leaf, const analyzer::lowering::Lowering& lowering,
                   const LeafMemory& memory, Script& script);
// Writes the launches of these calls.
void WriteLaunches(const CallRange& calls, int stream, std::vector<Operation>& operations);

// Adds a content that comes from the recording. The feed and the contents must outlive the script.
int AddFeed(Contents& contents, const Feed& feed, std::string name, Script& script);
// Adds the recorded result of a leaf. Loading it throws Error kTrace if the trace lacks it.
int AddResult(const analyzer::Program& program, Contents& contents, int64_t leaf, size_t write,
              std::string name, Script& script);

// Returns true if the recorded result of a leaf is packed in another order than that of addresses.
bool IsStrided(const analyzer::Program& program, int64_t leaf, size_t write);
// Returns the bytes of a result without those between its elements.
int64_t ResultBytes(const storage::Layout& layout);
// Writes the upload of a recorded result to `to`, which is the place of its element 0.
void WriteResult(const analyzer::Program& program, Contents& contents, int64_t leaf, size_t write,
                 std::string name, const Spot& to, Script& script,
                 std::vector<Operation>& operations);

// Places of results that are kept because the step overwrites them later, by place of the leaf and
// write.
using KeptResults = std::map<std::pair<size_t, int>, Spot>;
// Writes the copies of a leaf's results to where they are kept, before anything can overwrite them.
void WriteKept(const analyzer::Program& program, int64_t leaf, size_t place,
               const KeptResults& kept, const SpotOf& place_of, int stream,
               std::vector<Operation>& operations);

}  // namespace acltape::replayer
