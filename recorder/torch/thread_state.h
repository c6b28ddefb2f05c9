// State of the plug-in for each thread.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "recorder/agent/tape.h"
#include "recorder/agent/window.h"
#include "recorder/torch/op_info.h"
#include "recorder/torch/scratch.h"

namespace c10 {
class OperatorHandle;
}
namespace at {
class Tensor;
struct RecordFunction;
}  // namespace at

namespace acltape::torch_plugin {

// Hot operators (hot_ops.h) have an index below kMaxHotOps.
constexpr size_t kMaxHotOps = 256;
constexpr uint32_t kNotHot = ~uint32_t{0};

// A composite operator or a backward node that is active on this thread. It becomes a recorded call
// only when a leaf runs inside it.
struct Frame {
  const c10::OperatorHandle* op;   // the composite operator, if it is one
  const at::RecordFunction* node;  // the backward node, if it is one
  uint64_t begin_tick;
  uint64_t call_id;     // 0: not recorded so far
  uint64_t outer_call;  // the tape's open call before this frame, valid once recorded
  uint32_t hot;         // index of a composite among the hot operators, or kNotHot
};

// A tensor among the arguments or returns of a leaf. Positions count the arguments, then the
// returns.
struct TensorAt {
  const at::Tensor* tensor;
  int position;
};

class LeafValues;
class ForwardCalls;
struct ForeignHeader;  // allocator.h
struct OpaqueCall;

// The parts of the leaf at hand that could not be recorded, see guard.h.
enum class LeafLoss : uint8_t { kNothing, kArguments, kCall };

// The code that runs for every leaf is laid out in one piece: between two leaves a model's own code
// fills the instruction cache, so each line that the recorder touches is one that has to come back.
#define ACLTAPE_HOT __attribute__((hot))

struct ThreadState {
  explicit ThreadState(agent::Tape* tape);
  ~ThreadState();

  // The ring's index of an operator, announced at its first use in this ring.
  struct OpRow {
    const void* key = nullptr;
    const OpInfo* info = nullptr;
    uint32_t index = 0;
  };
  static size_t HashOf(const void* key) {
    return base::SpreadBits(reinterpret_cast<uintptr_t>(key) >> 4) >> 32;
  }
  const OpRow& Row(const c10::OperatorHandle& op);
  // Finds the row of an operator that the dispatcher does not know, by its description.
  const OpRow& Row(const OpInfo* info, uint32_t dialect) {
    for (size_t slot = HashOf(info);; ++slot) {
      OpRow& row = op_rows[slot & (op_rows.size() - 1)];
      if (row.key == info) return row;
      if (row.key == nullptr) return Announce(info, info, dialect);
    }
  }
  const OpRow& Announce(const OpInfo* info, const void* key, uint32_t dialect);
  // Gives the index of a hot operator's row.
  uint32_t HotRow(size_t hot) {
    const uint32_t row = hot_rows[hot];
    return __builtin_expect(row != 0, 1) ? row - 1 : AnnounceHot(hot);
  }
  uint32_t AnnounceHot(size_t hot);
  // Announces a backward node, which only a record function names; returns its index.
  uint32_t AnnounceNode(const char* name);

  // The fixed part of the leaf's record. Encoding may move it.
  wire::CallRecord& call() { return *reinterpret_cast<wire::CallRecord*>(record.begin()); }

  wire::Phase phase() {
    if (__builtin_expect(tape->optimizer_depth == 0 && follow_nodes && !maybe_backward, 1)) {
      return wire::Phase::kForward;
    }
    return LookUpPhase();
  }
  wire::Phase LookUpPhase();

  // The header that the thread last found for one of some storages, see foreign.cpp.
  ForeignHeader*& KnownForeign(const void* storage) {
    return known_foreign[HashOf(storage) % kKnownForeign];
  }

  // Members that every leaf touches come first, so that they share cache lines.
  agent::Tape* const tape;
  c10::impl::PODLocalDispatchKeySet* const keys;       // the thread's own
  static constexpr uint16_t kPlaceElsewhere = 0xffff;  // a device whose memory is not known
  bool in_leaf = false;
  bool leaf_begun = false;  // the leaf has a call id and no record so far
  LeafLoss loss = LeafLoss::kNothing;
  const bool keep_tensors;         // the payload policy wants to see them
  const bool follow_nodes;         // backward nodes come by
  const bool keep_lines;           // lines of the program's source
  bool maybe_backward = false;     // a backward node came by and the engine was not seen idle since
  uint16_t place = 0;              // meaning::LeafPlace of the leaf so far, or kPlaceElsewhere
  int position = 0;                // position of the argument or return whose turn it is
  uint64_t true_arguments = 0;     // bit i: argument i is the bool true
  c10::DispatchKeySet excluded;    // before the leaf
  uint64_t report_at = 0;          // the call id of the next ReportEnvironment (leaf.cpp)
  agent::TimedHook hook = {};      // the leaf, where it is timed
  uint64_t next_node = 0;          // number that the engine will give the next node of this thread
  size_t frames_recorded = 0;      // the outermost this many frames are recorded calls
  Scratch<uint64_t, 16> slots;     // slots of the leaf that is being encoded
  Scratch<std::byte, 512> record;  // record of the leaf: a CallRecord, then signature bytes
  Scratch<Frame, 16> frames;
  Scratch<TensorAt, 16> tensors;       // defined ones; valid while the argument or return is
  uint32_t hot_rows[kMaxHotOps] = {};  // the ring's index plus one, 0: not announced so far

  static constexpr size_t kKnownForeign = 128;
  ForeignHeader* known_foreign[kKnownForeign] = {};
  std::unique_ptr<LeafValues> values;     // when keep_tensors
  ForwardCalls* forward_calls = nullptr;  // once the thread has made an autograd node
  int reported_threads = 0;               // last intra-op thread count that was sent
  std::vector<OpRow> op_rows;             // open addressing, a power of two
  uint32_t op_count = 0;                  // used rows
  std::unordered_map<std::string, uint32_t> nodes;
  std::unique_ptr<OpaqueCall> opaque;  // opaque.h
  uint64_t verify_ns = 0;              // time spent looking for buffers that changed
  uint64_t begin_ns = 0;
  uint64_t sampled_reads = 0;  // reads of inputs that were checked by sample alone
};

// The thread's state once it has one; CurrentThread looks after it.
extern __thread ThreadState* t_state __attribute__((tls_model("initial-exec")));
// Makes the thread's state, or tells that it has none. Without memory the next use tries again.
ThreadState* FirstUse();

// This thread's state, or nullptr when it is not recorded.
inline ThreadState* CurrentThread() {
  ThreadState* state = t_state;
  if (__builtin_expect(state != nullptr && agent::t_tape == state->tape, 1)) return state;
  return FirstUse();
}

// Makes every frame around a leaf a recorded call. May throw.
void RecordEnclosingFrames(ThreadState& state);

// Opens and closes a range on the thread; ranges named "Optimizer.step..." set the phase.
void BeginScope(ThreadState& state, const char* name, wire::ScopeKind kind);
void EndScope(ThreadState& state);

}  // namespace acltape::torch_plugin
