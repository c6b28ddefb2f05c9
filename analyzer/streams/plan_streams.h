// Puts the nodes of a captured region on streams, with the figures that say how good it is.
//
//   StreamCertificate certificate;
//   const StreamAssignment streams = PlanStreams(dag, {.streams = 4}, &certificate);
//
// Candidates are list schedules by critical path for each number of streams (Graham 1966; Topcuoglu
// et al., HEFT, 2002), and the minimum chain cover (chain_cover.h), its chains merged where they
// overlap least. The one with the least simulated makespan (schedule.h) is improved by moving and
// exchanging nodes of its critical path; a step and a further stream are accepted only for a gain
// above the noise. Waits between two streams whose further order costs nothing in the simulation
// become one.
//
// A region of over kMostClosureNodes nodes gets list schedules only, and its width is not known.
#pragma once

#include <string>
#include <vector>

#include "analyzer/plan/budget.h"
#include "analyzer/streams/dag.h"
#include "analyzer/streams/schedule.h"

namespace acltape::analyzer {

inline constexpr size_t kMostClosureNodes = 8192;

struct StreamOptions {
  int32_t streams = 4;  // at most; 0: as many as can run at the same time
  StreamCosts costs;
  double noise = 0.01;  // share of the makespan below which a gain is none
  // Also where one stream is as fast: the best assignment to several.
  bool several_if_slower = false;
};

// Nanoseconds as simulated. Node numbers as in the Dag.
struct StreamCertificate {
  int32_t nodes = 0;
  int32_t edges = 0;
  int32_t covers = -1;  // edges of the transitive reduction; -1: not known
  int32_t width = -1;   // most nodes that can run at the same time; -1: not known
  int32_t streams = 1;
  int32_t waits = 0;         // between nodes
  int32_t records = 0;       // between nodes
  int32_t events = 0;        // for those
  int32_t forks = 0;         // each a wait on a side stream; one record on the origin serves all
  int32_t joins = 0;         // each a record on a side stream and a wait on the origin
  int32_t merged_waits = 0;  // waits less by merging
  GraphLoad load;            // what the captured region takes of the device
  double one_stream_ns = 0;
  double makespan_ns = 0;
  MakespanBound bound;
  // What the makespan could at most be too long by, as a share of the bound.
  double gap = 0;
  // Records and waits, forks and joins too: their time on all streams, as a share of all time in
  // use.
  double synchronisation = 0;
  // Pairs of nodes with an edge that the assignment leaves without an order, by the race checker.
  int32_t races = 0;
  std::string reason;  // of one stream: a sentence; empty for several
};

// Deterministic: equal Dags and options give equal assignments. Durations that are all 0 count as
// equal. Precondition: that of Dag.
StreamAssignment PlanStreams(const Dag& dag, const StreamOptions& options,
                             StreamCertificate* certificate = nullptr);

}  // namespace acltape::analyzer
