// Puts the nodes of a captured region on streams and rates the result.
//
//   StreamCertificate certificate;
//   const StreamAssignment streams = PlanStreams(dag, {.streams = 4}, &certificate);
//
// The candidates are list schedules by critical path for each number of streams (Graham 1966;
// Topcuoglu et al., HEFT, 2002), and the minimum chain cover (chain_cover.h) with those chains
// merged that overlap least. The candidate with the least simulated makespan (schedule.h) is
// improved: nodes of its critical path are moved and exchanged. A change or a further stream is
// accepted only for a gain above the noise. Several waits between two streams become one wait if
// the simulation shows no loss.
//
// Nodes without tasks are no reason for a stream. They join the stream of their first reader
// (without_work.h).
//
// A region of more than kMostClosureNodes nodes gets list schedules only, and its width is not
// known.
#pragma once

#include <string>
#include <vector>

#include "analyzer/streams/budget.h"
#include "analyzer/streams/dag.h"
#include "analyzer/streams/schedule.h"

namespace acltape::analyzer::streams {

inline constexpr size_t kMostClosureNodes = 8192;

struct StreamOptions {
  int32_t streams = 4;  // at most; 0: as many as can run at the same time
  StreamCosts costs;
  // A gain below this share of the makespan counts as none.
  double noise = 0.01;
  // Asks for several streams even if one stream is as fast.
  bool several_if_slower = false;
};

// Figures of an assignment. Times are simulated nanoseconds; node numbers are those of the Dag.
struct StreamCertificate {
  int32_t nodes = 0;
  int32_t edges = 0;
  int32_t covers = -1;  // edges of the transitive reduction; -1: not known
  int32_t width = -1;   // most nodes that can run at the same time; -1: not known
  int32_t streams = 1;
  int32_t waits = 0;    // between nodes
  int32_t records = 0;  // between nodes
  int32_t events = 0;   // events that these records use
  // Each fork is a wait on a side stream. One record on the origin serves all forks.
  int32_t forks = 0;
  // Each join is a record on a side stream and a wait on the origin.
  int32_t joins = 0;
  int32_t merged_waits = 0;  // waits that merging saved
  GraphLoad load;            // resources of the device that the region takes
  double one_stream_ns = 0;
  double makespan_ns = 0;
  MakespanBound bound;
  // The most by which the makespan can exceed the optimum, as a share of the bound.
  double gap = 0;
  // The share of records and waits, with those of forks and joins, in the busy time of all streams.
  double synchronisation = 0;
  // Pairs of nodes with an edge that the assignment does not order, as counted by the race checker.
  int32_t races = 0;
  // A sentence that says why there is only one stream. It is empty for several streams.
  std::string reason;
};

// Plans deterministically: equal Dags and options give equal assignments. If all durations are 0,
// they count as equal. Precondition: the nodes are numbered as Dag requires.
StreamAssignment PlanStreams(const Dag& dag, const StreamOptions& options,
                             StreamCertificate* certificate = nullptr);

}  // namespace acltape::analyzer::streams
