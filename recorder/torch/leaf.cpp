// The hook below autograd: sees every leaf with all its arguments.
//
// It is registered for kLeafKey (dispatch_keys.h). Each recorded thread includes the key in its
// thread-local state, so every dispatch stops here before it reaches a backend. While a leaf runs
// the key is excluded: what a kernel calls in turn is part of the leaf and costs nothing extra.
#include "recorder/torch/leaf.h"

#include <ATen/Parallel.h>
#include <ATen/SequenceNumber.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "recorder/agent/python_line.h"
#include "recorder/agent/soft_device.h"
#include "recorder/torch/arguments.h"
#include "recorder/torch/boxed_kernels.h"
#include "recorder/torch/forward_calls.h"
#include "recorder/torch/frames.h"
#include "recorder/torch/hot_ops.h"
#include "recorder/torch/modules.h"
#include "recorder/torch/python_keys.h"
#include "recorder/torch/values.h"
#include "recorder/wire/rank_variables.h"

namespace acltape::torch_plugin {

namespace {

// OpenBLAS has threads of its own, which torch's count does not limit; 0 with another BLAS.
int BlasThreads() {
  const auto count = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  return count == nullptr ? 0 : count();
}

// Records the rank of this process once it is known: a launcher has put it into the environment, or
// the program does so before its first collective.
void RecordRank(ThreadState& state) {
  static std::atomic<pid_t> told_by{0};  // a forked child tells its own
  if (told_by.load(std::memory_order_relaxed) == getpid()) return;
  for (const char* name : wire::kRankVariables) {
    const char* rank = std::getenv(name);
    if (rank == nullptr) continue;
    told_by.store(getpid(), std::memory_order_relaxed);
    state.tape->WriteMeta(wire::kRankKey, rank);
    return;
  }
}

// Reports the numbers of threads from time to time. They decide the order of additions, so a replay
// needs them. The first call also does the work that has to wait for the first leaf.
__attribute__((cold, noinline)) void ReportEnvironment(ThreadState& state) {
  static std::atomic<bool> keys_hidden{false};
  if (!keys_hidden.load(std::memory_order_relaxed)) keys_hidden = HideKeysFromPython();
  state.report_at = state.call().call_id + (keys_hidden ? 256 : 1);
  if (state.reported_threads == 0 && state.tape->arena->record_modules != 0) {
    static std::once_flag once;
    std::call_once(once, FollowModules);
  }
  RecordRank(state);
  // The recorder of the ACL level does it at the first call of the interface.
  if ((state.tape->arena->levels & wire::kLevelAcl) == 0) agent::ReportSoftDevice(*state.tape);
  const int threads = at::get_num_threads();
  if (threads == state.reported_threads) return;
  state.reported_threads = threads;
  state.tape->WriteMeta("torch_threads", std::to_string(threads).c_str());
  if (const int blas = BlasThreads(); blas > 0) {
    state.tape->WriteMeta("blas_threads", std::to_string(blas).c_str());
  }
}

__attribute__((always_inline)) inline void Open(ThreadState& state, uint32_t op_index) {
  agent::BeginHook(state.tape->own, state.hook);
  state.in_leaf = true;
  state.loss = LeafLoss::kNothing;
  state.position = 0;
  state.true_arguments = 0;
  state.place = meaning::kPlaceHost;
  state.record.Truncate(sizeof(wire::CallRecord));
  state.slots.Clear();
  state.call().op_index = op_index;
  state.excluded = state.keys->excluded();
  state.keys->set_excluded(state.excluded | kOurKeys);
}

// A leaf that cannot be recorded. It is entered all the same, so that what its kernel calls is not
// taken for leaves.
__attribute__((cold, noinline)) void OpenUnknown(ThreadState& state) {
  state.tensors.Clear();
  Open(state, 0);
  state.loss = LeafLoss::kCall;
}

__attribute__((always_inline)) inline void Close(ThreadState& state) {
  if (__builtin_expect(state.keep_tensors, 0)) state.values->Finish();
  state.in_leaf = false;
  state.keys->set_excluded(state.excluded);
}

// Writes the record of a finished leaf.
__attribute__((always_inline)) inline void WriteLeaf(ThreadState& state, uint8_t status) {
  state.leaf_begun = false;
  agent::Tape* tape = state.tape;
  wire::CallRecord& call = state.call();
  tape->open_call = call.parent_id;
  if (__builtin_expect(state.loss == LeafLoss::kArguments, 0)) {
    state.record.Truncate(sizeof(wire::CallRecord));
    state.slots.Clear();
    state.place = ThreadState::kPlaceElsewhere;
  }
  const size_t bytes = state.record.size();
  const size_t slots = state.slots.size();
  const uint32_t total = wire::RoundUp8(bytes + 8 * slots);
  const uint16_t place =
      state.place == ThreadState::kPlaceElsewhere ? uint16_t{meaning::kPlaceNotKnown} : state.place;
  call.header = {wire::RecordKind::kCall, place, total};
  call.signature_bytes = static_cast<uint32_t>(bytes - sizeof(call));
  call.slot_count = static_cast<uint16_t>(slots);
  call.phase = state.phase();
  call.status = status;
  std::byte* out = tape->Begin(total + kScratchSlack);
  if (__builtin_expect(out == nullptr, 0)) return tape->CountCall();
  CopyBlocks(out, state.record.begin(), bytes);
  CopyBlocks(out + bytes, state.slots.begin(), 8 * slots);
  tape->End(total);
  tape->last_tick = call.end_tick;
  tape->CountCall();
}

}  // namespace

void LoseArguments(ThreadState& state) {
  if (state.loss == LeafLoss::kNothing) state.loss = LeafLoss::kArguments;
  state.tensors.Clear();
}

bool RecordsLeaves(ThreadState& state) {
  if (__builtin_expect(agent::IsOpen(*state.tape), 1)) return true;
  // So that the first recorded leaf is not taken for the one that made the nodes of these.
  if (state.follow_nodes) state.next_node = at::sequence_number::peek();
  return false;
}

ACLTAPE_HOT ThreadState* EnterLeaf(size_t hot) {
  ThreadState* state = CurrentThread();
  if (__builtin_expect(state == nullptr || state->in_leaf || !RecordsLeaves(*state), 0)) {
    return nullptr;
  }
  const bool known = Guarded(wire::LeftOut::kCalls, [&] {
    if (__builtin_expect(state->keep_tensors, 0)) {
      state->values->Start(*state->Row(*HotHandle(hot)).info);
    }
    Open(*state, state->HotRow(hot));
  });
  if (__builtin_expect(!known, 0)) OpenUnknown(*state);
  return state;
}

const ThreadState::OpRow* FindRow(ThreadState& state, const c10::OperatorHandle& op) {
  const ThreadState::OpRow* row = nullptr;
  Guarded(wire::LeftOut::kCalls, [&] { row = &state.Row(op); });
  return row;
}

void EnterLeaf(ThreadState& state, const ThreadState::OpRow& row) {
  if (state.keep_tensors) state.values->Start(*row.info);
  Open(state, row.index);
}

ACLTAPE_HOT void BeginLeaf(ThreadState& state) {
  if (__builtin_expect(state.loss == LeafLoss::kCall, 0)) return;
  if (state.frames.size() != state.frames_recorded) {
    Guarded(wire::LeftOut::kRanges, [&] { RecordEnclosingFrames(state); });
  }
  agent::Tape* tape = state.tape;
  wire::CallRecord& call = state.call();
  const uint64_t call_id = tape->NextCallId();
  call.call_id = call_id;
  call.parent_id = tape->open_call;
  tape->open_call = call_id;
  state.leaf_begun = true;
  if (state.follow_nodes) {
    const uint64_t next = at::sequence_number::peek();
    if (next != state.next_node) {
      Guarded(wire::LeftOut::kRanges, [&] { NoteForwardCall(state, next, call_id); });
    }
  }
  if (__builtin_expect(call_id >= state.report_at, 0)) {
    Guarded(wire::LeftOut::kContents, [&] { ReportEnvironment(state); });
  }
  if (__builtin_expect(state.keep_tensors, 0)) {
    Guarded(wire::LeftOut::kContents, [&] { state.values->BeforeCall(call_id); });
  }
  if (state.keep_lines) call.place_id = agent::LeafLine(*tape, call_id);
  if (agent::IsTimed(state.hook)) agent::NoteRealCall(tape->own, state.hook);
  call.begin_tick = agent::Tick();
}

__attribute__((always_inline)) static inline void FinishLeaf(ThreadState& state) {
  if (__builtin_expect(state.loss == LeafLoss::kCall, 0)) return Close(state);
  if (__builtin_expect(state.keep_tensors, 0)) {
    Guarded(wire::LeftOut::kContents, [&] { state.values->AfterCall(); });
  }
  WriteLeaf(state, 0);
  Close(state);
}

__attribute__((cold, noinline)) static void FinishTimedLeaf(ThreadState& state) {
  const bool known = state.loss != LeafLoss::kCall;
  agent::OwnTime& own = state.tape->own;
  agent::NoteReturn(own, state.hook);
  FinishLeaf(state);
  if (known) {
    const wire::CallRecord& call = state.call();
    agent::EndTimedHook(own, state.hook, call.end_tick - call.begin_tick);
  }
  state.hook.begin_tick = 0;
}

ACLTAPE_HOT void EndLeaf(ThreadState& state) {
  if (agent::IsTimed(state.hook)) return FinishTimedLeaf(state);
  FinishLeaf(state);
}

__attribute__((cold)) void AbandonLeaf(ThreadState& state) {
  state.hook.begin_tick = 0;
  if (state.leaf_begun) {
    state.call().end_tick = agent::Tick();
    WriteLeaf(state, 1);
  }
  Close(state);
}

void RecordLeaf(ThreadState& state, const ThreadState::OpRow& known, const c10::OperatorHandle& op,
                c10::DispatchKeySet keys, c10::DispatchKey key, torch::jit::Stack* stack) {
  const ThreadState::OpRow row = known;  // encoding may announce others, which moves the rows
  EnterLeaf(state, row);
  LeafScope leaf(state);
  const OpInfo& info = *row.info;
  const size_t count = info.arguments.size();
  const size_t first = stack->size() - count;
  leaf.Encode([&] {
    for (size_t i = 0; i < count; ++i) {
      state.position = static_cast<int>(i);
      EncodeValue(state, (*stack)[first + i], info.arguments[i].meaning);
    }
  });
  leaf.Begin();
  op.redispatchBoxed(BelowKey(keys, key), stack);
  leaf.Returned();
  const size_t first_return = stack->size() - info.return_kept.size();
  leaf.Encode([&] {
    for (size_t i = 0; i < info.return_kept.size(); ++i) {
      if (!info.return_kept[i]) continue;
      state.position = static_cast<int>(count + i);
      EncodeValue(state, (*stack)[first_return + i], info.return_meanings[i]);
    }
  });
  leaf.End();
}

namespace {

// An adapter may give a device a kernel of its own for an operator that is a composite elsewhere,
// such as torch_npu for matmul. Asked for at each call: an adapter can be loaded at any time.
bool HasDeviceKernel(const c10::OperatorHandle& op, c10::DispatchKeySet keys) {
  return keys.has(c10::DispatchKey::PrivateUse1) &&
         op.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1);
}

}  // namespace

void LeafFallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
  ThreadState* state = CurrentThread();
  if (state != nullptr && !state->in_leaf && RecordsLeaves(*state)) {
    const ThreadState::OpRow* row = FindRow(*state, op);
    if (row != nullptr && row->info->python_on_device && keys.has(c10::DispatchKey::PrivateUse1) &&
        state->tape->arena->record_composites != 0) {
      // The operators that its kernel calls are the leaves, as those of a composite are.
      CompositeScope scope(&op, kNotHot);
      op.redispatchBoxed(BelowKey(keys, kLeafKey), stack);
      return;
    }
    if (row != nullptr && (!row->info->composite || HasDeviceKernel(op, keys))) {
      RecordLeaf(*state, *row, op, keys, kLeafKey, stack);
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
