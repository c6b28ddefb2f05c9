#include "recorder/acl/marks.h"

#include <stdlib.h>

#include <atomic>

#include "recorder/agent/lock.h"
#include "recorder/agent/memory.h"
#include "recorder/agent/ranges.h"
#include "recorder/agent/tape.h"

namespace acltape::acl_agent {

namespace {

// A range that has not ended in the trace.
struct OpenMark {
  uint64_t thread;
  uint64_t number;
  MarkKind kind;
  bool ended;  // by the program
  bool told;   // the tape has its begin
};

// In the order in which they began. All ranges of the process lie here, because any thread may end
// one with a number.
OpenMark* g_open = nullptr;
size_t g_count = 0;
size_t g_capacity = 0;
agent::Mutex g_mutex;

std::atomic<uint64_t> g_threads{0};
__thread uint64_t t_number __attribute__((tls_model("initial-exec"))) = 0;

// Numbers of threads are never reused, unlike those of the system.
uint64_t ThreadNumber() {
  if (t_number == 0) t_number = g_threads.fetch_add(1) + 1;
  return t_number;
}

bool ReserveMark() {
  if (g_count < g_capacity) return true;
  const size_t capacity = g_capacity == 0 ? 64 : 2 * g_capacity;
  void* larger = agent::Resize(static_cast<void*>(g_open), capacity * sizeof(OpenMark),
                               wire::LeftOut::kRanges);
  if (larger == nullptr) return false;
  g_open = static_cast<OpenMark*>(larger);
  g_capacity = capacity;
  return true;
}

void RemoveMark(size_t index) {
  for (size_t i = index + 1; i < g_count; ++i) g_open[i - 1] = g_open[i];
  --g_count;
}

// Ends, in the trace, the innermost ranges of the thread that the program has ended.
void EndInnermost(uint64_t thread) {
  for (size_t index = g_count; index-- > 0;) {
    if (g_open[index].thread != thread) continue;
    if (!g_open[index].ended) return;
    agent::Tape* tape = g_open[index].told ? agent::CurrentTape() : nullptr;
    if (tape != nullptr) agent::EndRange(*tape);
    RemoveMark(index);
  }
}

bool Matches(const OpenMark& mark, MarkKind kind, uint64_t number, uint64_t thread) {
  if (mark.kind != kind || mark.ended) return false;
  return kind == MarkKind::kNested ? mark.thread == thread : mark.number == number;
}

}  // namespace

void BeginMarkedRange(MarkKind kind, uint64_t number, const char* name) {
  const uint64_t thread = ThreadNumber();
  agent::Lock lock(g_mutex);
  EndInnermost(thread);
  if (!ReserveMark()) return;
  agent::Tape* tape = agent::CurrentTape();
  const bool told = tape != nullptr && name != nullptr && tape->arena->record_composites != 0;
  if (told) agent::BeginRange(*tape, name, wire::ScopeKind::kUser);
  g_open[g_count++] = {thread, number, kind, false, told};
}

void EndMarkedRange(MarkKind kind, uint64_t number) {
  const uint64_t thread = ThreadNumber();
  agent::Lock lock(g_mutex);
  for (size_t index = g_count; index-- > 0;) {
    if (!Matches(g_open[index], kind, number, thread)) continue;
    g_open[index].ended = true;
    break;
  }
  EndInnermost(thread);
}

void MarkPlace(const char* name) {
  BeginMarkedRange(MarkKind::kNested, 0, name);
  EndMarkedRange(MarkKind::kNested, 0);
}

// A forked child has none of the parent's other threads, so their ranges never end; they lie apart
// by the numbers of their threads.
void ForgetMarkLocks() { g_mutex.Forget(); }

}  // namespace acltape::acl_agent
