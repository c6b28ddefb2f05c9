// Cuts the active calls of a step into captured and eager regions so that a step saves most.
//
// Saving of a captured region, nanoseconds of host time per step:
//   sum of host_ns of its calls
//   - launch_ns                         one execution of its graph
//   - update_ns of its calls            task updates before it
//   - input_ns of each input it reads   copies to a fixed place, once per region
//   - (capture_ns + capture_ns of its calls) / expected_replays
// Eager calls save nothing. A hard barrier lies in no captured region; a soft one (update, copy)
// may, where the region gains more by going on than the barrier costs.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace acltape::analyzer {

struct CutCall {
  double host_ns = 0;           // that capturing it saves
  double update_ns = 0;         // 0: it needs no update
  double capture_ns = 0;        // to capture it, once
  std::string barrier;          // why it cannot be captured; empty: it can
  bool begins_region = false;   // no region reaches across its beginning
  int32_t entries = 1;          // that it puts into the queue of its stream
  std::vector<int32_t> inputs;  // moving inputs that it reads: indices in CutProblem::input_ns
};

struct CutProblem {
  std::vector<CutCall> calls;
  std::vector<double> input_ns;
  double launch_ns = 0;
  double capture_ns = 0;  // of each graph, once, besides its calls
  double expected_replays = 1;
  // Of a captured region, calls.
  size_t minimum_region = 1;
  // Limits on all regions together: graphs, and stream numbers (budget.h) where each region is
  // captured on `streams` streams.
  int64_t most_captures = std::numeric_limits<int64_t>::max();
  int64_t most_stream_numbers = std::numeric_limits<int64_t>::max();
  int32_t streams = 1;
};

// Calls [first, end) by place.
struct CutRegion {
  size_t first = 0;
  size_t end = 0;
  bool captured = false;
  double saving_ns = 0;  // of captured regions
  std::string reason;    // why it is eager, or why it ends where it does
  // Of eager regions: what a step would save more if nothing barred their capture and no update of
  // theirs cost anything, limits left aside.
  double gain_ns = 0;
};

struct Cuts {
  std::vector<CutRegion> regions;  // in order, all calls
  double saving_ns = 0;
  int64_t captures() const;
  size_t captured_calls() const;
};

// The cuts that save most, by dynamic programming over the places at which a region can pay to
// begin or end: O(s * n) for n calls of which s are barriers, hard or soft. Under limits that bind
// on stream numbers, for more than 512 calls, a region longer than one queue begins and ends at
// barriers only.
Cuts CutBest(const CutProblem& problem);

// The cuts of a policy: all calls but barriers and those marked are captured, in the longest runs.
// `why` is the reason of the marked ones.
Cuts CutAround(const CutProblem& problem, const std::vector<bool>& eager, const std::string& why);

// What the problem says such regions save.
double SavingOf(const CutProblem& problem, size_t first, size_t end);

}  // namespace acltape::analyzer
