// The hook below autograd: sees every leaf with all its arguments.
//
// It is registered for kLeafKey (dispatch_keys.h). Each recorded thread includes the key in its
// thread-local state, so every dispatch stops here before it reaches a backend. While a leaf runs
// the key is excluded: what a kernel calls in turn is part of the leaf and costs nothing extra.
#include "recorder/torch/leaf.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <cstring>
#include <mutex>
#include <string>

#include "recorder/torch/arguments.h"
#include "recorder/torch/hot_ops.h"
#include "recorder/torch/modules.h"

namespace acltape::torch_plugin {

namespace {

// OpenBLAS has threads of its own, which torch's count does not limit; 0 with another BLAS.
int BlasThreads() {
  const auto count = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  return count == nullptr ? 0 : count();
}

// The thread counts decide the order of additions, so a replay must know them.
void ReportThreadCount(ThreadState& state) {
  if (state.reported_threads == 0 && state.tape->arena->record_modules != 0) {
    static std::once_flag once;
    std::call_once(once, FollowModules);
  }
  const int threads = at::get_num_threads();
  if (threads == state.reported_threads) return;
  state.reported_threads = threads;
  state.tape->WriteMeta("torch_threads", std::to_string(threads).c_str());
  if (const int blas = BlasThreads(); blas > 0) {
    state.tape->WriteMeta("blas_threads", std::to_string(blas).c_str());
  }
}

void RecordLeaf(ThreadState& state, const ThreadState::OpRow row, const c10::OperatorHandle& op,
                c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  LeafScope leaf;
  leaf.Enter(state, row);
  const OpInfo& info = *row.info;
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

__attribute__((always_inline)) inline void LeafScope::Open(ThreadState& state) {
  state_ = &state;
  state.in_leaf = true;
  state.position = 0;
  state.true_arguments = 0;
  state.signature.Clear();
  state.slots.Clear();
  excluded_ = state.keys->excluded();
  state.keys->set_excluded(excluded_ | c10::DispatchKeySet({kLeafKey, kCompositeKey}));
}

ACLTAPE_HOT ThreadState* LeafScope::Enter(size_t hot) {
  ThreadState* state = CurrentThread();
  if (__builtin_expect(state == nullptr || state->in_leaf, 0)) return nullptr;
  op_index_ = state->HotRow(hot);
  if (__builtin_expect(state->keep_tensors, 0)) {
    state->tensors.Clear();
    values_.emplace(*state, *state->Row(*HotHandle(hot)).info);
  }
  Open(*state);
  return state;
}

void LeafScope::Enter(ThreadState& state, const ThreadState::OpRow& row) {
  op_index_ = row.index;
  if (state.keep_tensors) {
    state.tensors.Clear();
    values_.emplace(state, *row.info);
  }
  Open(state);
}

ACLTAPE_HOT LeafScope::~LeafScope() {
  if (state_ == nullptr) return;
  state_->in_leaf = false;
  state_->keys->set_excluded(excluded_);
  if (__builtin_expect(open_, 0)) Fail();
}

ACLTAPE_HOT void LeafScope::Begin() {
  ThreadState& state = *state_;
  if (state.frames.size() != state.frames_recorded) RecordEnclosingFrames(state);
  agent::Tape* tape = state.tape;
  call_id_ = tape->NextCallId();
  parent_id_ = tape->open_call;
  tape->open_call = call_id_;
  open_ = true;
  if (__builtin_expect((call_id_ & 255) == 1 || state.reported_threads == 0, 0)) {
    ReportThreadCount(state);
  }
  if (values_) values_->BeforeCall(call_id_);
  begin_ = wire::Tick();
}

// Writes the record of a finished leaf from the thread's signature bytes and slots.
__attribute__((always_inline)) inline void LeafScope::Write(int32_t status) {
  open_ = false;
  ThreadState& state = *state_;
  agent::Tape* tape = state.tape;
  tape->open_call = parent_id_;
  const size_t slots = state.slots.size();
  const size_t signature_bytes = state.signature.size();
  const uint32_t total = wire::RoundUp8(sizeof(wire::CallRecord) + 8 * slots + signature_bytes);
  auto* record = reinterpret_cast<wire::CallRecord*>(tape->Begin(total));
  if (record == nullptr) return;
  record->header = {wire::RecordKind::kCall, 0, total};
  record->call_id = call_id_;
  record->parent_id = parent_id_;
  record->begin_tick = begin_;
  record->end_tick = end_;
  record->op_index = op_index_;
  record->signature_bytes = static_cast<uint32_t>(signature_bytes);
  record->slot_count = static_cast<uint16_t>(slots);
  record->phase = state.phase();
  record->reserved0 = 0;
  record->status = status;
  auto* out = reinterpret_cast<std::byte*>(record + 1);
  std::memcpy(out, state.slots.begin(), 8 * slots);
  std::memcpy(out + 8 * slots, state.signature.begin(), signature_bytes);
  tape->End(total);
  tape->last_tick = end_;
  auto& completed = tape->ring.slot()->completed_calls;
  completed.store(completed.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

ACLTAPE_HOT void LeafScope::End() {
  if (values_) values_->AfterCall();
  Write(0);
}

__attribute__((cold)) void LeafScope::Fail() {
  end_ = wire::Tick();
  Write(1);
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

void EnterThread() {
  c10::impl::tls_set_dispatch_key_included(kLeafKey, true);
  // Without frames nothing is registered there, not even the fall-through.
  if (agent::Arena()->record_composites != 0) {
    c10::impl::tls_set_dispatch_key_included(kCompositeKey, true);
  }
}

}  // namespace acltape::torch_plugin
