// What the plug-in keeps per thread.
#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "recorder/agent/tape.h"
#include "recorder/torch/op_info.h"

namespace acltape::torch_plugin {

// A composite operator or a backward node that is active on this thread. It becomes a recorded call
// only when a leaf runs inside it.
struct Frame {
  const c10::OperatorHandle* op;   // of a composite operator
  const at::RecordFunction* node;  // of a backward node
  uint64_t begin_tick;
  uint64_t call_id;     // 0: not recorded so far
  uint64_t outer_call;  // the tape's open call before this frame, valid once recorded
};

// True while the autograd engine runs a backward pass on this thread.
bool InBackwardPass();

// Bytes of the signature that is being written; keeps its memory between calls.
class SignatureBuffer {
 public:
  SignatureBuffer() : bytes_(4096), cursor_(bytes_.data()) {}
  void Clear() { cursor_ = bytes_.data(); }
  // Room for `bytes` more bytes at the end.
  std::byte* Room(size_t bytes) {
    const size_t used = size();
    if (__builtin_expect(used + bytes > bytes_.size(), 0)) {
      bytes_.resize(2 * (used + bytes));
      cursor_ = bytes_.data() + used;
    }
    return cursor_;
  }
  void Advance(std::byte* end) { cursor_ = end; }
  const std::byte* data() const { return bytes_.data(); }
  size_t size() const { return static_cast<size_t>(cursor_ - bytes_.data()); }

 private:
  std::vector<std::byte> bytes_;
  std::byte* cursor_;
};

// A tensor among the arguments or returns of a leaf. Positions count the arguments, then the
// returns.
struct TensorAt {
  const at::Tensor* tensor;
  int position;
};

struct ThreadState {
  explicit ThreadState(agent::Tape* tape)
      : tape(tape),
        op_rows(1024),
        keep_tensors(tape->arena->payload != wire::PayloadPolicy::kNone) {}

  // The ring's index of an operator, announced at its first use in this ring.
  struct OpRow {
    const void* key = nullptr;
    const OpInfo* info = nullptr;
    uint32_t index = 0;
  };
  static size_t HashOf(const void* key) {
    return (reinterpret_cast<uintptr_t>(key) >> 4) * 0x9E3779B97F4A7C15ull >> 32;
  }
  const OpRow& Row(const c10::OperatorHandle& op) {
    const void* key = &op.schema();
    for (size_t at = HashOf(key);; ++at) {
      OpRow& row = op_rows[at & (op_rows.size() - 1)];
      if (row.key == key) return row;
      if (row.key == nullptr) return Announce(op, key);
    }
  }
  const OpRow& Announce(const c10::OperatorHandle& op, const void* key);
  // The same for a hot operator (hot_ops.h), by its index.
  const OpRow& HotRow(const c10::OperatorHandle& op, size_t index) {
    if (__builtin_expect(index >= hot_rows.size(), 0)) hot_rows.resize(index + 1);
    OpRow& row = hot_rows[index];
    if (__builtin_expect(row.key == nullptr, 0)) row = Row(op);
    return row;
  }
  // Announces a backward node, which only a record function names; returns its index.
  uint32_t AnnounceNode(const char* name);

  agent::Tape* tape;
  std::vector<OpRow> op_rows;  // open addressing, a power of two
  std::vector<OpRow> hot_rows;
  uint32_t op_count = 0;
  std::unordered_map<std::string, uint32_t> nodes;
  std::vector<Frame> frames;
  size_t frames_recorded = 0;  // the outermost this many frames are recorded calls
  int optimizer_depth = 0;
  std::vector<bool> scope_is_optimizer;
  bool in_leaf = false;
  uint64_t verify_ns = 0;  // time spent looking for buffers that changed
  uint64_t begin_ns = 0;
  uint64_t sampled_reads = 0;  // reads of inputs that were checked by sample alone
  int reported_threads = 0;    // last intra-op thread count that was sent

  // Of the leaf that is being encoded.
  SignatureBuffer signature;
  std::vector<uint64_t> slots;
  int position = 0;               // of the argument or return whose turn it is
  const bool keep_tensors;        // the payload policy wants to see them
  std::vector<TensorAt> tensors;  // defined ones; valid while the argument or return is
  uint64_t true_arguments = 0;    // bit i: argument i is the bool true

  wire::Phase phase() const {
    if (optimizer_depth > 0) return wire::Phase::kOptimizer;
    return InBackwardPass() ? wire::Phase::kBackward : wire::Phase::kForward;
  }
};

// This thread's state, or nullptr when it is not recorded.
ThreadState* CurrentThread();

// Makes every frame around a leaf a recorded call.
void RecordEnclosingFrames(ThreadState& state);

// Opens and closes a range on the thread; ranges named "Optimizer.step..." set the phase.
void BeginScope(ThreadState& state, const char* name, wire::ScopeKind kind);
void EndScope(ThreadState& state);

}  // namespace acltape::torch_plugin
