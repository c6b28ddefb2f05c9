// The hook below autograd: sees every leaf with all its arguments.
//
// It is registered for kLeafKey (dispatch_keys.h). Each recorded thread includes the key in its
// thread-local state, so every dispatch stops here before it reaches a backend. While a leaf runs
// the key is excluded: what a kernel calls in turn is part of the leaf and costs nothing extra.
#include "recorder/torch/leaf.h"

#include <ATen/Parallel.h>

#include <cstring>
#include <mutex>
#include <string>

#include "recorder/torch/arguments.h"
#include "recorder/torch/hot_ops.h"
#include "recorder/torch/modules.h"

namespace acltape::torch_plugin {

namespace {

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

void RecordLeaf(ThreadState& state, const ThreadState::OpRow& row, const c10::OperatorHandle& op,
                c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  LeafScope leaf(state, row);
  const OpInfo& info = leaf.info();
  const size_t count = info.arguments.size();
  const size_t first = stack->size() - count;
  for (size_t i = 0; i < count; ++i) {
    state.position = static_cast<int>(i);
    EncodeValue(state, (*stack)[first + i], info.arguments[i].meaning);
  }
  leaf.Begin();
  op.redispatchBoxed(BelowKey(keys, kLeafKey), stack);
  leaf.Returned();
  const size_t first_return = stack->size() - info.return_kept.size();
  for (size_t i = 0; i < info.return_kept.size(); ++i) {
    if (!info.return_kept[i]) continue;
    state.position = static_cast<int>(count + i);
    EncodeValue(state, (*stack)[first_return + i], info.return_meanings[i]);
  }
  leaf.End();
}

}  // namespace

LeafScope::LeafScope(ThreadState& state, const ThreadState::OpRow& row)
    : state_(state), row_(row), values_(state, *row.info) {
  state.in_leaf = true;
  state.signature.Clear();
  state.slots.clear();
  state.tensors.clear();
  state.true_arguments = 0;
}

LeafScope::~LeafScope() {
  state_.in_leaf = false;
  if (!open_) return;
  end_ = wire::Tick();
  Write(1);
}

void LeafScope::Begin() {
  if (state_.frames.size() != state_.frames_recorded) RecordEnclosingFrames(state_);
  agent::Tape* tape = state_.tape;
  call_id_ = tape->NextCallId();
  parent_id_ = tape->open_call;
  tape->open_call = call_id_;
  open_ = true;
  if ((call_id_ & 255) == 1 || state_.reported_threads == 0) ReportThreadCount(state_);
  if (state_.keep_tensors) {
    argument_slots_ = state_.slots.size();
    values_.BeforeCall(call_id_);
    state_.tensors.clear();
  }
  begin_ = wire::Tick();
}

void LeafScope::Returned() { end_ = wire::Tick(); }

void LeafScope::End() {
  if (state_.keep_tensors) values_.AfterCall(argument_slots_);
  Write(0);
}

// Writes the record of a finished leaf from the thread's signature bytes and slots.
void LeafScope::Write(int32_t status) {
  open_ = false;
  agent::Tape* tape = state_.tape;
  tape->open_call = parent_id_;
  const size_t slot_bytes = 8 * state_.slots.size();
  const size_t bytes = sizeof(wire::CallRecord) + slot_bytes + state_.signature.size();
  const uint32_t total = wire::RoundUp8(bytes);
  auto* record = reinterpret_cast<wire::CallRecord*>(tape->Begin(total));
  if (record == nullptr) return;
  record->header = {wire::RecordKind::kCall, 0, total};
  record->call_id = call_id_;
  record->parent_id = parent_id_;
  record->begin_tick = begin_;
  record->end_tick = end_;
  record->op_index = row_.index;
  record->signature_bytes = static_cast<uint32_t>(state_.signature.size());
  record->slot_count = static_cast<uint16_t>(state_.slots.size());
  record->phase = state_.phase();
  record->reserved0 = 0;
  record->status = status;
  auto* out = reinterpret_cast<std::byte*>(record + 1);
  std::memcpy(out, state_.slots.data(), slot_bytes);
  std::memcpy(out + slot_bytes, state_.signature.data(), state_.signature.size());
  tape->End(total);
  tape->last_tick = end_;
  auto& completed = tape->ring.slot()->completed_calls;
  completed.store(completed.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void LeafFallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
  ThreadState* state = CurrentThread();
  if (state != nullptr && !state->in_leaf) {
    const ThreadState::OpRow& row = state->Row(op);
    if (!row.info->composite) {
      RecordLeaf(*state, row, op, keys, stack);
      return;
    }
    // Autograd is off (inference mode, or no tensor among the arguments): the composite's own
    // leaves come by here in turn.
  }
  op.redispatchBoxed(BelowKey(keys, kLeafKey), stack);
}

void RegisterHotLeaves() {
  // Never destroyed, like the fallback's: operators run until the very end of the process.
  auto* library = new torch::Library(torch::Library::IMPL, "aten", kLeafKey, __FILE__, __LINE__);
  for (const auto& [name, add] : AllHotOps().leaves) add(*library, name.c_str());
}

void EnterThread() {
  c10::impl::tls_set_dispatch_key_included(kLeafKey, true);
  // Without frames nothing is registered there, not even the fall-through.
  if (agent::Arena()->record_composites != 0) {
    c10::impl::tls_set_dispatch_key_included(kCompositeKey, true);
  }
}

}  // namespace acltape::torch_plugin
