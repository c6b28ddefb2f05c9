// Cuts the active calls of a step into captured and eager regions so that the step saves most.
//
// A captured region saves host time per step, in nanoseconds:
//   sum of host_ns of its calls
//   - launch_ns                         one execution of its graph
//   - update_ns of its calls            task updates before it
//   - input_ns of each input it reads   copies to a fixed place, once per region
//   - (capture_ns + capture_ns of its calls) / expected_replays
// Eager calls save nothing. A hard barrier is a call that cannot be captured, so no captured region
// holds it. A soft barrier costs an update or a copy. A region may hold it where it gains more by
// going on than the barrier costs.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace acltape::analyzer::plan {

struct CutCall {
  double host_ns = 0;     // saved by capturing it
  double update_ns = 0;   // 0: it needs no update
  double capture_ns = 0;  // to capture it, once
  std::string barrier;    // why it cannot be captured; empty: it can
  // The execution of a graph of the program that holds the call already; -1: none. Such calls are a
  // captured region of their own, which saves nothing, and other regions end beside it.
  int32_t execution = -1;
  // No region reaches across the beginning of this call.
  bool begins_region = false;
  int32_t entries = 1;          // entries that it puts into the queue of its stream
  std::vector<int32_t> inputs;  // moving inputs that it reads: indices in CutProblem::input_ns
};

struct CutProblem {
  std::vector<CutCall> calls;
  std::vector<double> input_ns;
  double launch_ns = 0;
  double capture_ns = 0;  // cost of each graph, once, besides its calls
  double expected_replays = 1;
  // The fewest calls of a captured region.
  size_t minimum_region = 1;
  // Limits for all regions together: the number of graphs, and the stream numbers (budget.h). Each
  // region is captured on `streams` streams.
  int64_t most_captures = std::numeric_limits<int64_t>::max();
  int64_t most_stream_numbers = std::numeric_limits<int64_t>::max();
  int32_t streams = 1;
};

// The calls [first, end) by place.
struct CutRegion {
  size_t first = 0;
  size_t end = 0;
  bool captured = false;
  bool already = false;  // captured by the program itself
  double saving_ns = 0;  // saving of captured regions that are not captured already
  std::string reason;    // why it is eager, or why it ends where it does
  // The additional saving of a step if nothing barred this eager region's capture and its updates
  // cost nothing. Limits are left aside.
  double gain_ns = 0;
};

struct Cuts {
  std::vector<CutRegion> regions;  // in order, all calls
  double saving_ns = 0;
  // Both count regions that the program captured already too.
  int64_t captures() const;
  size_t captured_calls() const;
};

// Finds the cuts that save most, by dynamic programming over the places at which a region can
// usefully begin or end. It takes O(s * n) for n calls of which s are hard or soft barriers. If the
// limit on stream numbers matters and there are more than 512 calls, a region that is longer than
// one queue begins and ends at barriers only.
Cuts CutBest(const CutProblem& problem);

// Makes the cuts of a simple policy: it captures all calls except barriers and those that `eager`
// marks, in the longest runs. `why` is the reason of the marked calls.
Cuts CutAround(const CutProblem& problem, const std::vector<bool>& eager, const std::string& why);

// The saving of one captured region [first, end), as the problem computes it.
double SavingOf(const CutProblem& problem, size_t first, size_t end);

}  // namespace acltape::analyzer::plan
