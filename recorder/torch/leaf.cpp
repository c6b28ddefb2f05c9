// The boxed fallback below autograd: sees every leaf with all its arguments.
//
// It is registered for kLeafKey (dispatch_keys.h). Each recorded thread includes the key in its
// thread-local state, so every dispatch stops here before it reaches a backend. While a leaf runs
// the key is excluded: what a kernel calls in turn is part of the leaf and costs nothing extra.
#include "recorder/torch/leaf.h"

#include <ATen/Parallel.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstring>
#include <mutex>
#include <string>

#include "recorder/torch/allocator.h"
#include "recorder/torch/arguments.h"
#include "recorder/torch/dispatch_keys.h"
#include "recorder/torch/modules.h"
#include "recorder/torch/thread_state.h"
#include "recorder/torch/values.h"

namespace acltape::torch_plugin {

namespace {

c10::DispatchKeySet Below(c10::DispatchKeySet keys) {
  return keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kLeafKey);
}

// Writes the record of a finished leaf from the thread's signature bytes and slots.
void WriteCall(ThreadState& state, uint32_t op_index, uint64_t call_id, uint64_t parent_id,
               uint64_t begin, uint64_t end, int32_t status) {
  const size_t slot_bytes = 8 * state.slots.size();
  const size_t bytes = sizeof(wire::CallRecord) + slot_bytes + state.signature.size();
  const uint32_t total = wire::RoundUp8(bytes);
  auto* record = reinterpret_cast<wire::CallRecord*>(state.tape->Begin(total));
  if (record == nullptr) return;
  record->header = {wire::RecordKind::kCall, 0, total};
  record->call_id = call_id;
  record->parent_id = parent_id;
  record->begin_tick = begin;
  record->end_tick = end;
  record->op_index = op_index;
  record->signature_bytes = static_cast<uint32_t>(state.signature.size());
  record->slot_count = static_cast<uint16_t>(state.slots.size());
  record->phase = state.phase();
  record->reserved0 = 0;
  record->status = status;
  auto* out = reinterpret_cast<std::byte*>(record + 1);
  std::memcpy(out, state.slots.data(), slot_bytes);
  std::memcpy(out + slot_bytes, state.signature.data(), state.signature.size());
  state.tape->End(total);
  state.tape->last_tick = end;
  auto& completed = state.tape->ring.slot()->completed_calls;
  completed.store(completed.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// The thread count decides the order of additions, so a replay must know it.
void ReportThreadCount(ThreadState& state) {
  if (state.reported_threads == 0 && state.tape->arena->record_modules != 0) {
    static std::once_flag once;
    std::call_once(once, FollowModules);
  }
  const int threads = at::get_num_threads();
  if (threads == state.reported_threads) return;
  state.reported_threads = threads;
  state.tape->WriteMeta("torch_threads", std::to_string(threads).c_str());
}

void RecordLeaf(ThreadState& state, const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                torch::jit::Stack* stack) {
  const ThreadState::OpRow row = state.Row(op);
  const OpInfo& info = *row.info;
  if (info.composite) {
    // Autograd is off (inference mode, or no tensor among the arguments): the composite's own
    // leaves come by here in turn.
    op.redispatchBoxed(Below(keys), stack);
    return;
  }
  agent::Tape* tape = state.tape;
  if (state.frames.size() != state.frames_recorded) RecordEnclosingFrames(state);
  struct InLeaf {
    explicit InLeaf(ThreadState& state) : state(state) { state.in_leaf = true; }
    ~InLeaf() { state.in_leaf = false; }
    ThreadState& state;
    c10::impl::ExcludeDispatchKeyGuard guard{c10::DispatchKeySet({kLeafKey, kCompositeKey})};
  } in_leaf(state);

  state.signature.Clear();
  state.slots.clear();
  const size_t count = info.arguments.size();
  const size_t first = stack->size() - count;
  for (size_t i = 0; i < count; ++i) {
    EncodeValue(state, (*stack)[first + i], info.arguments[i].meaning);
  }
  const size_t argument_slots = state.slots.size();
  const uint64_t call_id = tape->NextCallId();
  const uint64_t parent_id = tape->open_call;
  const wire::PayloadPolicy payload = tape->arena->payload;
  tape->open_call = call_id;
  if ((call_id & 255) == 1 || state.reported_threads == 0) ReportThreadCount(state);

  LeafValues values(state, info, call_id);
  if (payload != wire::PayloadPolicy::kNone) values.BeforeCall(*stack, first);
  const uint64_t begin = wire::Tick();
  try {
    op.redispatchBoxed(Below(keys), stack);
  } catch (...) {
    tape->open_call = parent_id;
    WriteCall(state, row.index, call_id, parent_id, begin, wire::Tick(), 1);
    throw;
  }
  const uint64_t end = wire::Tick();
  const size_t first_return = stack->size() - info.return_kept.size();
  for (size_t i = 0; i < info.return_kept.size(); ++i) {
    if (info.return_kept[i]) {
      EncodeValue(state, (*stack)[first_return + i], info.return_meanings[i]);
    }
  }
  if (payload != wire::PayloadPolicy::kNone) {
    values.AfterCall(*stack, first_return, argument_slots);
  }
  tape->open_call = parent_id;
  WriteCall(state, row.index, call_id, parent_id, begin, end, 0);
}

}  // namespace

void LeafFallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
  ThreadState* state = CurrentThread();
  if (__builtin_expect(state == nullptr || state->in_leaf, 0)) {
    op.redispatchBoxed(Below(keys), stack);
    return;
  }
  RecordLeaf(*state, op, keys, stack);
}

void EnterThread() {
  c10::impl::tls_set_dispatch_key_included(kLeafKey, true);
  // Without frames nothing is registered there, not even the fall-through.
  if (agent::Arena()->record_composites != 0) {
    c10::impl::tls_set_dispatch_key_included(kCompositeKey, true);
  }
}

}  // namespace acltape::torch_plugin
