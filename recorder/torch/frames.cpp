// Enclosing calls, phases and ranges.
//
// A composite operator is one whose kernel is made of other operators. Each of them gets a kernel
// of ours (typed when it is hot, else boxed) at a dispatch key above autograd that all other
// operators fall through, so a plain `add` pays nothing. (A record-function callback on every
// operator would give the same and cost 0.2 us each.) Backward nodes and user ranges come from
// PyTorch's record functions.
//
// A frame is written only when a leaf runs inside it.
#include "recorder/torch/frames.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include <cstring>
#include <map>
#include <string>

#include "recorder/agent/ranges.h"
#include "recorder/torch/adapter_composites.h"
#include "recorder/torch/boxed_kernels.h"
#include "recorder/torch/dispatch_keys.h"
#include "recorder/torch/forward_calls.h"
#include "recorder/torch/guard.h"
#include "recorder/torch/hot_ops.h"
#include "recorder/torch/leaf.h"
#include "recorder/torch/registrations.h"
#include "recorder/torch/thread_state.h"

namespace acltape::torch_plugin {

namespace {

ACLTAPE_HOT void RecordFrame(ThreadState& state, Frame& frame) {
  agent::Tape* tape = state.tape;
  const uint32_t op = frame.hot != kNotHot  ? state.HotRow(frame.hot)
                      : frame.op != nullptr ? state.Row(*frame.op).index
                                            : state.AnnounceNode(frame.node->name());
  frame.call_id = tape->NextCallId();
  frame.outer_call = tape->open_call;
  uint32_t total = 0;
  auto* record = tape->Begin<wire::FrameBeginRecord>(wire::RecordKind::kFrameBegin, 0, &total);
  if (record != nullptr) {
    record->call_id = frame.call_id;
    record->parent_id = frame.outer_call;
    record->tick = frame.begin_tick;
    record->op_index = op;
    record->kind =
        frame.op != nullptr ? wire::FrameKind::kComposite : wire::FrameKind::kBackwardNode;
    record->phase = state.phase();
    std::memset(record->reserved0, 0, sizeof(record->reserved0));
    record->forward_call = frame.node == nullptr
                               ? 0
                               : ForwardCallOf(frame.node->forwardThreadId(), frame.node->seqNr());
    tape->End(total);
  }
  tape->open_call = frame.call_id;
}

// Ends the innermost frame of the thread.
ACLTAPE_HOT void PopFrame(ThreadState& state) {
  state.frames.Pop();
  if (state.frames_recorded <= state.frames.size()) return;
  state.frames_recorded = state.frames.size();
  const Frame& frame = *state.frames.end();
  agent::Tape* tape = state.tape;
  uint32_t total = 0;
  auto* record = tape->Begin<wire::FrameEndRecord>(wire::RecordKind::kFrameEnd, 0, &total);
  if (record != nullptr) {
    record->call_id = frame.call_id;
    record->tick = agent::Tick();
    tape->End(total);
  }
  tape->open_call = frame.outer_call;
}

std::unique_ptr<at::ObserverContext> OnStart(const at::RecordFunction& function) {
  ThreadState* state = CurrentThread();
  if (state == nullptr || state->in_leaf) return nullptr;
  if (function.scope() == at::RecordScope::USER_SCOPE) {
    BeginScope(*state, function.name(), wire::ScopeKind::kUser);
  } else {
    state->maybe_backward = true;
    if (agent::IsOpen(*state->tape)) {
      Guarded(wire::LeftOut::kRanges, [&] {
        state->frames.Push({nullptr, &function, agent::Tick(), 0, 0, kNotHot});
      });
    }
  }
  return nullptr;
}

void OnEnd(const at::RecordFunction& function, at::ObserverContext*) {
  ThreadState* state = CurrentThread();
  if (state == nullptr || state->in_leaf) return;
  if (function.scope() == at::RecordScope::USER_SCOPE) {
    EndScope(*state);
    return;
  }
  // Normally the innermost frame; one that ended on another thread goes with the frame around it.
  for (size_t index = state->frames.size(); index-- > 0;) {
    if (state->frames[index].node != &function) continue;
    while (state->frames.size() > index) PopFrame(*state);
    return;
  }
}

// Queries without a tensor result (is_complex, size) are many, cheap and enclose nothing.
bool ReturnsTensors(const c10::FunctionSchema& schema) {
  for (const c10::Argument& result : schema.returns()) {
    const auto kind = result.type()->kind();
    if (kind == c10::TypeKind::TensorType || kind == c10::TypeKind::ListType) return true;
  }
  return schema.name() == "aten::item";
}

void RegisterComposites(Registrations& registrations) {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  if (!dispatcher.hasBackendFallbackForDispatchKey(kCompositeKey)) {
    registrations.Add("_", kCompositeKey).fallback(torch::CppFunction::makeFallthrough());
  }
  std::map<std::string, torch::Library*> libraries;
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) continue;
    const size_t colons = name.name.find("::");
    if (colons == std::string::npos || !ReturnsTensors(op->schema())) continue;
    // Entering and leaving a range reaches OnStart and OnEnd by itself.
    if (name.name.rfind("profiler::", 0) == 0) continue;
    torch::Library*& library = libraries[name.name.substr(0, colons)];
    if (library == nullptr) {
      library = &registrations.Add(name.name.substr(0, colons).c_str(), kCompositeKey);
    }
    std::string local = name.name.substr(colons + 2);
    if (!name.overload_name.empty()) local += "." + name.overload_name;
    const auto hot = ChosenHotOps().composites.find(local);
    if (name.name.rfind("aten::", 0) == 0 && hot != ChosenHotOps().composites.end()) {
      hot->second(*library, local.c_str());
    } else {
      library->impl(local.c_str(), torch::CppFunction::makeFromBoxedFunction<&CompositeKernel>());
    }
  }
}

}  // namespace

ACLTAPE_HOT CompositeScope::CompositeScope(const c10::OperatorHandle* op, size_t hot)
    : state_(CurrentThread()) {
  if (state_ == nullptr || state_->in_leaf || !agent::IsOpen(*state_->tape)) {
    state_ = nullptr;
    return;
  }
  const bool pushed = Guarded(wire::LeftOut::kRanges, [&] {
    state_->frames.Push({op, nullptr, agent::Tick(), 0, 0, static_cast<uint32_t>(hot)});
  });
  depth_ = state_->frames.size();
  if (__builtin_expect(!pushed, 0)) state_ = nullptr;
}

ACLTAPE_HOT CompositeScope::~CompositeScope() {
  if (state_ == nullptr) return;
  while (state_->frames.size() >= depth_) PopFrame(*state_);
}

void CompositeKernel(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack) {
  ThreadState* state = CurrentThread();
  const ThreadState::OpRow* row = state != nullptr && !state->in_leaf &&
                                          IsComputedAboveLeaves(op, keys) && RecordsLeaves(*state)
                                      ? FindRow(*state, op)
                                      : nullptr;
  if (row != nullptr) {
    RecordLeaf(*state, *row, op, keys, kCompositeKey, stack);
    // Its kernel was above autograd, so the nodes that came of it are made by now.
    const uint64_t next = at::sequence_number::peek();
    if (state->follow_nodes && next != state->next_node) {
      Guarded(wire::LeftOut::kRanges,
              [&] { NoteForwardCall(*state, next, state->call().call_id); });
    }
    return;
  }
  CompositeScope scope(&op, kNotHot);
  op.redispatchBoxed(BelowKey(keys, kCompositeKey), stack);
}

void BeginScope(ThreadState& state, const char* name, wire::ScopeKind kind) {
  agent::BeginRange(*state.tape, name, kind);
}

void EndScope(ThreadState& state) { agent::EndRange(*state.tape); }

ACLTAPE_HOT void RecordEnclosingFrames(ThreadState& state) {
  while (state.frames_recorded < state.frames.size()) {
    RecordFrame(state, state.frames[state.frames_recorded]);
    state.frames_recorded++;
  }
}

void RegisterFrames(Registrations& registrations) {
  RegisterComposites(registrations);
  at::addGlobalCallback(
      at::RecordFunctionCallback(OnStart, OnEnd)
          .scopes({at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}));
}

}  // namespace acltape::torch_plugin
