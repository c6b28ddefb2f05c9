// How far errors spread: which calls of a replay are wrong by themselves, which only read wrong
// values, and where an error ends.
//
// Two replays tell it. In the carried one leaves read what earlier leaves computed, in the golden
// one what was recorded (Inputs in replayer/replay.h). A call that differs in the golden replay is
// wrong by itself. One that differs in the carried replay alone has inherited the error of a call
// whose results it reads, directly or through others; the edges are the RAW hazards of
// analyzer/graph/hazards.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/work/work.h"

namespace acltape::replayer {

// An output of a replay that differs from the recording.
struct WrongOutput {
  int64_t call_id = 0;
  bool has_values = false;  // else only the digest is known to differ
  double max_rel = 0;
  int64_t max_ulp = 0;  // -1: a NaN against a number
};

// Calls of the template step that were captured as one graph; within it errors are carried in the
// golden replay too.
struct GraphRange {
  int64_t first_call = 0;
  int64_t last_call = 0;
};

// A call that differs in the golden replay.
struct OwnError {
  int64_t call_id = 0;
  // It reads a result of its own graph that differs as well, which may be the reason.
  bool beside_another = false;
  WrongOutput worst;    // its output with the greatest relative error, in the golden replay
  int64_t reaches = 0;  // other calls that differ and read its results, directly or through others
  int64_t last_call = 0;  // the last of those; 0: none
  int64_t steps = 0;      // in how many steps those are
  int64_t absorbed = 0;   // calls that read what it made wrong and give right results
};

// Calls that differ in the carried replay by the fewest reads between them and an own error.
struct SpreadBand {
  int64_t first_hops = 0;  // 0: own errors; both ends belong to the band
  int64_t last_hops = 0;
  int64_t calls = 0;
  bool has_values = false;
  double max_rel = 0;
  int64_t max_ulp = 0;  // -1: a NaN against a number
};

// Reads wrong values and gives right results.
struct AbsorbingCall {
  int64_t call_id = 0;
  int64_t source_call = 0;  // the first call whose wrong result it reads
};

struct SpreadReport {
  std::vector<OwnError> own;         // in order of call_id
  int64_t inherited = 0;             // calls
  std::vector<int64_t> unexplained;  // differ carried, not golden, and read nothing that differs
  int64_t hidden = 0;                // differ golden, not carried: wrong inputs made up for it
  std::vector<AbsorbingCall> absorbing;  // in order of call_id
  std::vector<SpreadBand> bands;
};

// `graphs` is empty for an eager replay.
SpreadReport FindSpread(const analyzer::Work& work, const std::vector<WrongOutput>& carried,
                        const std::vector<WrongOutput>& golden,
                        const std::vector<GraphRange>& graphs);

}  // namespace acltape::replayer
