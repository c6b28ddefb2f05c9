// The dataflow of a trace in the form in which diffs align it: the writer of what each call reads,
// and labels that are equal for calls of two traces that do the same.
//
// Nodes are the calls that read or write bytes. Views and allocations are not nodes; they show in
// the layouts of the calls that use them. Copies and casts are nodes, but others look through them.
// Another element type or memory order inserts and removes them without changing the meaning.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/calls/work.h"

namespace acltape::analyzer::diff {

uint64_t MixHash(uint64_t a, uint64_t b);

// The source of an input of a call; -1 stands for none.
struct FlowSource {
  int32_t node = -1;      // the node that wrote it last
  int32_t output = 0;     // number among that node's writes
  int32_t external = -1;  // index in Flow::externals of bytes that no recorded call wrote
};

struct FlowInput {
  const FormAccess* access = nullptr;
  int64_t buffer = 0;
  FlowSource source;         // the last writer
  FlowSource resolved;       // the writer that copies and casts lead back to
  int64_t offset = 0;        // elements from the start of the source's write; 0 through a copy
  bool copied = false;       // true if `resolved` goes through a copy
  uint32_t first_other = 0;  // in Flow::other_sources: writers of other parts of it
  uint32_t end_other = 0;
};

struct FlowNode {
  uint32_t call = 0;  // index in Work::calls
  int32_t form = 0;
  uint32_t first_input = 0;     // in Flow::inputs, in order of arguments
  uint32_t first_consumer = 0;  // in Flow::consumers
  uint64_t content = 0;         // hash of the numbers that a random source gave; 0: unknown
};

// Content from outside of the program: a parameter, a batch, or a buffer that changed without a
// recorded call. Each such change gives a new content.
struct FlowExternal {
  int64_t buffer = 0;
  int32_t reader = 0;  // the first node that reads it
  int32_t input = 0;   // index in Flow::inputs of that read
  bool parameter = false;
  int64_t elements = 0;  // number of elements of that read
  std::string digest;    // digest of the whole buffer; empty if none was kept
};

// The properties by which calls of one form are aligned.
struct FormLabel {
  std::string base;     // operator without overload and in-place marks: "aten::add", "aclnnAdd"
  uint64_t op = 0;      // hash of base
  uint64_t loose = 0;   // hash of op and of the number and shapes of tensors
  uint64_t exact = 0;   // hash of loose and of host arguments and strides
  bool copies = false;  // a copy or a cast: it passes its one input on
  std::vector<FormAccess> reads;  // without workspaces
  std::vector<FormAccess> writes;
};

// A read of an input by a node.
struct FlowConsumer {
  int32_t node = 0;
  int32_t input = 0;  // number of the node's input, from 0
};

class Flow {
 public:
  const Work* work = nullptr;
  std::vector<FormLabel> labels;  // by form
  std::vector<FlowNode> nodes;    // in order of calls, with one entry more than nodes
  std::vector<FlowInput> inputs;
  std::vector<FlowSource> other_sources;
  std::vector<FlowConsumer> consumers;
  std::vector<FlowExternal> externals;

  size_t size() const { return nodes.size() - 1; }
  const FormLabel& label(size_t node) const { return labels[nodes[node].form]; }
  std::span<const FlowInput> InputsOf(size_t node) const {
    return {inputs.data() + nodes[node].first_input, inputs.data() + nodes[node + 1].first_input};
  }
  std::span<const FlowConsumer> ConsumersOf(size_t node) const {
    return {consumers.data() + nodes[node].first_consumer,
            consumers.data() + nodes[node + 1].first_consumer};
  }
  const storage::Op& op(size_t node) const { return work->op(nodes[node].call); }
  int64_t call_id(size_t node) const { return work->calls[nodes[node].call].call_id; }
  // The index of the first node at or after a call of the work.
  size_t FirstNodeFrom(size_t call) const;
};

// `snapshots` are those of the trace, in order of the calls. The work must outlive the flow.
Flow BuildFlow(const Work& work, const std::vector<storage::Snapshot>& snapshots);

}  // namespace acltape::analyzer::diff
