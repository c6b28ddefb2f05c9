// The collectives and messages of HCCL that a trace holds, of all of its processes, and operators
// that communicate.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/reader.h"

namespace acltape::analyzer::ranks {

// Numbers that are read from a trace lie between this and its negative.
inline constexpr int64_t kMost = int64_t{1} << 62;

// One recorded call, as the view `collective` shows it; of a batch, one of its messages; or an
// operator that communicates (fused_operators.h), which has no count and no bytes.
struct Collective {
  int64_t call_id = 0;
  int64_t process_id = 0;
  std::string communicator;  // name; the ranks of one communicator have the same one
  int64_t rank = 0;          // in the communicator
  int64_t ranks = 0;
  std::string op;  // "HcclAllReduce"
  std::optional<int64_t> count;
  std::string dtype;      // "fp32"; empty: the call names none
  std::string reduction;  // "sum"
  std::optional<int64_t> root;
  std::string matrix;           // JSON array: elements from each rank to each rank
  std::optional<int64_t> peer;  // the other rank of a message
  bool sends = false;           // this rank gives the message
  bool computes = false;        // an operator that communicates in the middle of its work
  int64_t sent_bytes = 0;       // 0: none, or not known
  int64_t received_bytes = 0;
  int64_t stream_id = 0;
  int64_t model_id = 0;  // the capture that it belongs to; 0: it ran as it was called
  int64_t begin_ns = 0;
  int64_t asked_call = 0;  // the leaf of PyTorch that asked for it; the call itself where none did

  // "HcclAllReduce(count 4, fp32, sum)".
  std::string Text() const;
};

// A collective that ran: when it was called, or once for each execution of its graph.
struct Run {
  const Collective* what = nullptr;
  int64_t call_id = 0;     // the collective, or the execution of the graph
  int64_t begin_ns = 0;    // when the host issued that
  int64_t arrived_ns = 0;  // when the stream came to it by the device's clock; else begin_ns
};

// The graphs that a process captured and executed, with collectives or without.
struct GraphUse {
  int64_t captured = 0;
  int64_t executions = 0;
};

// The collectives and messages of all processes of a trace.
struct Communication {
  std::vector<Collective> collectives;       // in order of their calls
  std::map<int64_t, std::vector<Run>> runs;  // by process, in order of issue
  // Rank in the whole job of each process that has a communicator.
  std::map<int64_t, int64_t> ranks;
  std::map<int64_t, GraphUse> graphs;  // by process; one without graphs has no entry
  // Calls in which the host of a process waits for its device: begin and end, in order.
  std::map<int64_t, std::vector<std::pair<int64_t, int64_t>>> host_waits;
  bool on_device = false;  // arrived_ns is by the device's clock
  bool in_parts = false;   // only windows of a process were recorded

  // How many collectives and messages the process had come to up to the call, its own included: the
  // clock that the ranks of a program share. By leaves of PyTorch they count from when the program
  // asked for them, by calls of the device from when they were issued, which may be later.
  int64_t CountUpTo(int64_t process_id, int64_t call_id, storage::Level level) const;

  // "rank 3".
  std::string NameOf(int64_t process_id) const;
  // "rank 0, rank 3", in the order of the ranks.
  std::string NamesOf(std::vector<int64_t> process_ids) const;
};

// The rank of a process is what its environment says; else its rank in its largest communicator.
Communication LoadCommunication(const storage::Reader& trace);

}  // namespace acltape::analyzer::ranks
