// The graphs that a program captured and executes itself, with what they hold, in the order in
// which the program asked for it.
//
// A program over PyTorch is looked at by its leaves: a graph holds the leaves whose calls of the
// device its capture stored, and an execution stands for them at the place of the replay. A program
// on the ACL interface is looked at by its calls.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/executions/footprint.h"

namespace acltape::analyzer::executions {

// Less often executed, a graph is no loop of the program.
constexpr size_t kFewestExecutions = 2;

struct OwnGraph {
  int64_t model_id = 0;
  int32_t thread = 0;      // the thread that captured it
  int64_t begin_call = 0;  // ids of the calls that begin and end the capture
  int64_t end_call = 0;
  int64_t end_ns = 0;
  std::vector<uint32_t> held;  // entries of the work that it holds, in order
  // Entries that the capturing thread made during the capture, whose device work no graph holds: it
  // ran then, and no execution repeats it.
  std::vector<uint32_t> outside;
  int64_t outside_stream = 0;      // the stream of the first of them
  size_t launches = 0;             // tasks that change memory
  std::vector<uint32_t> executed;  // indices in OwnGraphs::turns
  Footprint footprint;             // the bytes that each execution uses; empty if there is none
};

// An entry that ran by itself, or an execution.
struct Turn {
  int64_t call_id = 0;
  int64_t begin_ns = 0;
  int32_t graph = -1;  // index in OwnGraphs::graphs; -1: an entry
  uint32_t entry = 0;  // index in OwnGraphs::work
  int64_t stream = 0;  // the stream of an execution
};

struct OwnGraphs {
  const Work* work = nullptr;    // the entries: leaves of PyTorch, or calls of the interface
  const Work* calls = nullptr;   // the calls of the interface
  std::vector<OwnGraph> graphs;  // in order of capture; those whose capture ended well
  std::vector<Turn> turns;       // in order of call ids
  // By entry: the index of the graph that holds it; kAlone, or kUpdate for work that a task update
  // put into a graph.
  static constexpr int32_t kAlone = -1;
  static constexpr int32_t kUpdate = -2;
  std::vector<int32_t> graph_of;
  std::vector<char> updatable;  // by entry: its launches lie in a task group that updates change

  bool HasExecutions() const;
};

// Finds the graphs. `work` are leaves beside `calls`, or `calls` itself. Both must outlive the
// result.
OwnGraphs FindOwnGraphs(const Work& work, const Work& calls);

// Finds for each buffer the first entry that names it, views and allocations included.
std::unordered_map<int64_t, uint32_t> FirstEntries(const Work& work);

// Lists for each buffer the entries that ran alone and read it, in order.
std::unordered_map<int64_t, std::vector<uint32_t>> LoneReaders(const OwnGraphs& graphs);

// True if an entry without a line says nothing of where it comes from. Work of autograd itself
// never has one.
inline bool NeedsLine(const Work& work, uint32_t entry) {
  return work.calls[entry].phase != storage::Phase::kBackward;
}

}  // namespace acltape::analyzer::executions
