// Chooses the calls that a captured step keeps on the side streams of its plan. The other calls
// move to the main stream of their region. This takes away their concurrency and changes nothing
// else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "replayer/engine/plan_issue.h"

namespace acltape::replayer::script {

class MixedStep;

// Returns the captured region with the calls for which `stays` is false moved to its main stream
// (stream 0). The order of issue stays, because memory was shared by it. All orders of the plan
// stay, too: if two calls of one stream are separated, the later one waits for an event.
IssuedRegion MovedToMainStream(const IssuedRegion& region,
                               const std::function<bool(size_t place)>& stays);

// A side stream of a captured region, with those of its calls that a graph can hold.
struct SideStream {
  int region = 0;              // as the plan numbers it
  int stream = 0;              // from 1
  std::vector<size_t> places;  // in order of issue
};
// Returns the side streams in order of region and stream. There are none without a plan.
std::vector<SideStream> SideStreamsOf(const MixedStep& step);

// Writes a set of calls that stay (by place) as text: "all", "none", or a list with commas of whole
// streams ("REGION:STREAM") and calls, such as "0:1,812".
std::string KeptStreamsText(const MixedStep& step, const std::vector<bool>& stays);
// Parses such a text. Throws Error kUsage, naming the word, if the plan has no such stream or the
// call is on no side stream.
std::vector<bool> ParseKeptStreams(const MixedStep& step, const std::string& text);

}  // namespace acltape::replayer::script
