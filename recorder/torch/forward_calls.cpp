#include "recorder/torch/forward_calls.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "recorder/torch/thread_state.h"

namespace acltape::torch_plugin {

// The leaves of a thread's last nodes. Written by that thread, read by any.
class ForwardCalls {
 public:
  static constexpr uint64_t kNodes = uint64_t{1} << 16;

  void Put(uint64_t node, uint64_t call_id) {
    Row& row = rows_[node % kNodes];
    row.node.store(kNone, std::memory_order_release);
    row.call_id.store(call_id, std::memory_order_release);
    row.node.store(node, std::memory_order_release);
  }
  uint64_t Find(uint64_t node) const {
    const Row& row = rows_[node % kNodes];
    if (row.node.load(std::memory_order_acquire) != node) return 0;
    const uint64_t call_id = row.call_id.load(std::memory_order_acquire);
    return row.node.load(std::memory_order_acquire) == node ? call_id : 0;
  }

 private:
  static constexpr uint64_t kNone = ~uint64_t{0};
  struct Row {
    std::atomic<uint64_t> node{kNone};
    std::atomic<uint64_t> call_id{0};
  };
  const std::unique_ptr<Row[]> rows_{new Row[kNodes]};
};

namespace {

struct Threads {
  std::mutex mutex;
  std::unordered_map<uint64_t, std::unique_ptr<ForwardCalls>> calls;
};
// Never destroyed: a graph may be walked after its thread has ended.
Threads& AllThreads() {
  static auto* threads = new Threads;
  return *threads;
}

}  // namespace

void NoteForwardCall(ThreadState& state, uint64_t next, uint64_t call_id) {
  if (state.forward_calls == nullptr) {
    Threads& threads = AllThreads();
    std::lock_guard<std::mutex> lock(threads.mutex);
    auto& calls = threads.calls[at::RecordFunction::currentThreadId()];
    if (calls == nullptr) calls = std::make_unique<ForwardCalls>();
    state.forward_calls = calls.get();
  }
  // Numbers go back only when the program sets them.
  const uint64_t first = state.next_node < next ? state.next_node : next - 1;
  for (uint64_t node = std::max(first, next - std::min(next, ForwardCalls::kNodes)); node < next;
       ++node) {
    state.forward_calls->Put(node, call_id);
  }
  state.next_node = next;
}

uint64_t ForwardCallOf(uint64_t thread, int64_t node) {
  if (node < 0) return 0;
  Threads& threads = AllThreads();
  std::lock_guard<std::mutex> lock(threads.mutex);
  const auto found = threads.calls.find(thread);
  return found == threads.calls.end() ? 0 : found->second->Find(static_cast<uint64_t>(node));
}

}  // namespace acltape::torch_plugin
