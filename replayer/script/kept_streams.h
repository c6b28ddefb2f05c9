// Which of its calls a captured step keeps on the side streams of its plan. The others are moved to
// the main stream of their region: that takes away their concurrency and nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "replayer/plan_issue.h"

namespace acltape::replayer {

class MixedStep;

// The captured region with the calls for which `stays` is false on its main stream (stream 0), in
// the order of issue, by which memory was shared. Whatever the plan orders stays ordered: where two
// calls of one stream part, the later one waits for an event.
IssuedRegion MovedToMainStream(const IssuedRegion& region,
                               const std::function<bool(size_t at)>& stays);

// A side stream of a captured region, with the calls that a graph can hold.
struct SideStream {
  int region = 0;              // as the plan numbers it
  int stream = 0;              // from 1
  std::vector<size_t> places;  // in order of issue
};
// In order of region and stream; none without a plan.
std::vector<SideStream> SideStreamsOf(const MixedStep& step);

// Sets of calls that stay, by place, as text: "all", "none", or with commas whole streams
// ("REGION:STREAM") and calls: "0:1,812".
std::string KeptStreamsText(const MixedStep& step, const std::vector<bool>& stays);
// Throws Error kUsage, naming the word, when the plan has no such stream or the call is on none.
std::vector<bool> ParseKeptStreams(const MixedStep& step, const std::string& text);

}  // namespace acltape::replayer
