// Entry of the torch plug-in: registers the hooks when the agent loads it.
#include <ATen/Parallel.h>
#include <torch/library.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>

#include "meaning/options.h"
#include "recorder/torch/allocator.h"
#include "recorder/torch/boxed_kernels.h"
#include "recorder/torch/device_wait.h"
#include "recorder/torch/frames.h"
#include "recorder/torch/guard.h"
#include "recorder/torch/hot_ops.h"
#include "recorder/torch/identity.h"
#include "recorder/torch/leaf.h"
#include "recorder/torch/opaque.h"
#include "recorder/torch/registrations.h"
#include "recorder/torch/thread_state.h"
#include "recorder/torch/torch_version.h"
#include "recorder/torch/values.h"

namespace acltape::torch_plugin {

__thread ThreadState* t_state = nullptr;

namespace {

// The thread's tape is about to be closed.
void EndThread(agent::Tape* tape, bool process_ends) {
  ThreadState* state = t_state;
  // After a fork the state can be the parent's; its tape is not this thread's any more.
  if (state == nullptr || state->tape != tape) return;
  if (state->sampled_reads > 0) {
    tape->WriteLedger(0, state->sampled_reads, "sampled_check", "inputs",
                      "reads of large inputs were checked for changes by sampled cache lines, not "
                      "in full",
                      "record with @payload all, which checks every read in full"_cli);
  }
  if (process_ends) return;
  FreeSpareBlocks(tape);
  t_state = nullptr;
  delete state;
}

}  // namespace

ThreadState* FirstUse() {
  agent::Tape* tape = agent::CurrentTape();
  if (tape == nullptr) return nullptr;
  ThreadState* made = nullptr;
  if (!Guarded(wire::LeftOut::kCalls, [&] { made = new ThreadState(tape); })) return nullptr;
  delete t_state;  // state of a parent from which this process was forked
  t_state = made;
  tape->before_close = EndThread;
  return made;
}

ThreadState::ThreadState(agent::Tape* tape)
    : tape(tape),
      keys(&c10::impl::raw_local_dispatch_key_set),
      keep_tensors(tape->arena->payload != wire::PayloadPolicy::kNone),
      follow_nodes(tape->arena->record_composites != 0),
      keep_lines(tape->arena->stacks != wire::StackPolicy::kNone),
      values(keep_tensors ? std::make_unique<LeafValues>(*this) : nullptr),
      op_rows(1024),
      begin_ns(agent::MonotonicNs()) {
  std::memset(record.begin(), 0, sizeof(wire::CallRecord));
}

ThreadState::~ThreadState() = default;

wire::Phase ThreadState::LookUpPhase() {
  if (tape->optimizer_depth > 0) return wire::Phase::kOptimizer;
  maybe_backward = EngineIsRunning();
  return maybe_backward ? wire::Phase::kBackward : wire::Phase::kForward;
}

const ThreadState::OpRow& ThreadState::Row(const c10::OperatorHandle& op) {
  const void* key = &op.schema();
  for (size_t slot = HashOf(key);; ++slot) {
    OpRow& row = op_rows[slot & (op_rows.size() - 1)];
    if (row.key == key) return row;
    if (row.key == nullptr) return Announce(DescribeOp(op), key, 0);
  }
}

const ThreadState::OpRow& ThreadState::Announce(const OpInfo* info, const void* key,
                                                uint32_t dialect) {
  if (size_t{2} * (op_count + 1) > op_rows.size()) {
    std::vector<OpRow> larger(2 * op_rows.size());
    for (const OpRow& row : op_rows) {
      if (row.key == nullptr) continue;
      size_t slot = HashOf(row.key);
      while (larger[slot & (larger.size() - 1)].key != nullptr) ++slot;
      larger[slot & (larger.size() - 1)] = row;
    }
    op_rows.swap(larger);
  }
  size_t slot = HashOf(key);
  while (op_rows[slot & (op_rows.size() - 1)].key != nullptr) ++slot;
  OpRow& row = op_rows[slot & (op_rows.size() - 1)];
  row = {key, info, tape->next_op++};
  op_count++;
  wire::OpRecord record{{wire::RecordKind::kOp, 0, 0}, row.index, dialect};
  const char* texts[] = {row.info->name.c_str(), row.info->overload.c_str(),
                         row.info->schema.c_str()};
  tape->WriteWithTexts(record, texts, 3);
  return row;
}

uint32_t ThreadState::AnnounceHot(size_t hot) {
  const uint32_t index = Row(*HotHandle(hot)).index;
  hot_rows[hot] = index + 1;
  return index;
}

uint32_t ThreadState::AnnounceNode(const char* name) {
  auto [row, fresh] = nodes.try_emplace(name, tape->next_op);
  if (!fresh) return row->second;
  tape->next_op++;
  wire::OpRecord record{{wire::RecordKind::kOp, 0, 0}, row->second, 4};
  const char* texts[] = {name, "", ""};
  tape->WriteWithTexts(record, texts, 3);
  return row->second;
}

namespace {

// Set before the first thread of the program can enter.
bool g_registered = false;

// The program goes on unrecorded at the aten level; the trace and the command say why.
void Refuse(agent::Tape* tape, const char* cause) {
  tape->WriteLedger(3, 1, "torch_plugin_refused", "libtorch " TORCH_VERSION, cause,
                    "record at the ACL level (@level acl), or with another version of PyTorch"_cli);
}

void RegisterKernels() {
  Registrations registrations;
  registrations.Add("_", kLeafKey)
      .fallback(torch::CppFunction::makeFromBoxedFunction<&LeafFallback>());
  RegisterHotLeaves(registrations);
  // Registers its callback last: what follows must not fail.
  if (agent::Arena()->record_composites != 0) RegisterFrames(registrations);
  registrations.Keep();
}

void RegisterAll() {
  agent::Tape* tape = agent::CurrentTape();
  if (tape == nullptr) return;
  WriteTorchIdentity(tape);
  // A second fall-back for a key is an error of the dispatcher, and the first one would be lost.
  if (c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(kLeafKey)) {
    const std::string cause = std::string("this libtorch uses the dispatch key ") +
                              c10::toString(kLeafKey) +
                              " itself, so operators cannot be recorded there";
    Refuse(tape, cause.c_str());
    return;
  }
  RegisterKernels();
  FollowGraphs();
  if (!InstallAllocator()) {
    tape->WriteLedger(
        3, 1, "torch_allocator", "host allocator",
        "the program's host allocator has no raw deleter, buffers are only told apart "
        "by storage object",
        "record without a custom host allocator");
  }
  g_registered = true;
  WaitAtWindows(*tape);
  EnterThread();
}

// Nothing may be thrown here: this runs while the program loads the library. Nor is memory taken to
// tell of an exception, which may be that there is none.
void RegisterOrRefuse() noexcept {
  try {
    RegisterAll();
  } catch (const std::exception& error) {
    // Only the first line: libtorch adds a backtrace.
    const char* text = error.what();
    char cause[512];
    snprintf(cause, sizeof(cause), "its dispatcher refused the recorder: %.*s",
             static_cast<int>(strcspn(text, "\n")), text);
    Refuse(agent::CurrentTape(), cause);
  } catch (...) {
    Refuse(agent::CurrentTape(), "its dispatcher refused the recorder");
  }
}

struct AtLoad {
  AtLoad() { RegisterOrRefuse(); }
} g_at_load;

}  // namespace

}  // namespace acltape::torch_plugin

extern "C" ACLTAPE_AGENT_API void acltape_torch_enter_thread() {
  if (acltape::torch_plugin::g_registered) acltape::torch_plugin::EnterThread();
}
