#include "recorder/agent/window.h"

#include "recorder/agent/graph_moment.h"
#include "recorder/agent/ranges.h"

namespace acltape::agent {

std::atomic<uint32_t> g_step_gate{0};
std::atomic<void (*)()> g_before_edge{nullptr};
std::atomic<void (*)(GraphMoment, Tape&)> g_graph_moment{nullptr};

namespace {

std::atomic<uint64_t> g_marked_steps{0};  // marked steps that have begun
std::atomic<uint64_t> g_turns{0};         // steps of optimizers that have ended

bool ChoosesSteps(const Tape& tape) { return tape.arena->choose_steps != 0; }
bool FollowsSteps(const Tape& tape) { return ChoosesSteps(tape) || tape.arena->limit_size != 0; }

void SetGate(bool open) {
  uint32_t now = g_step_gate.load();
  while (((now & 1) == 0) != open && !g_step_gate.compare_exchange_weak(now, now + 1)) {
  }
}

void BeforeEdge() {
  if (const auto act = g_before_edge.load(std::memory_order_acquire)) act();
}

// The first chosen step begins, or the last one has ended.
void MoveGate(bool open) {
  BeforeEdge();
  SetGate(open);
}

void ReportSteps(Tape& tape, uint64_t count) {
  std::atomic<uint64_t>& seen = tape.arena->steps_seen;
  uint64_t before = seen.load(std::memory_order_relaxed);
  while (before < count && !seen.compare_exchange_weak(before, count)) {
  }
}

// One step ends and the next begins.
void TurnIfAsked(Tape& tape) {
  if (tape.arena->turn.load(std::memory_order_relaxed) == 0) return;
  if (tape.arena->turn.exchange(0) != 0) wire::TurnWindow(*tape.arena);
}

}  // namespace

bool EnterWindow(Tape& tape) {
  const uint32_t window = tape.arena->window.load(std::memory_order_relaxed);
  const uint32_t gate = g_step_gate.load(std::memory_order_relaxed);
  const bool turns = tape.open && tape.arena->limit_size != 0;  // from one step to the next
  tape.window = window + gate;
  tape.open = (window & 1) == 1 && (gate & 1) == 0;
  if (!tape.open) return false;
  if (!turns) BeginCountingAnew(tape.own);
  tape.last_tick = tape.window_tick = Tick();
  uint32_t total = 0;
  if (auto* record = tape.Begin<wire::WindowRecord>(wire::RecordKind::kWindow, 0, &total)) {
    record->tick = tape.last_tick;
    record->next_call_id = tape.arena->next_call_id.load(std::memory_order_relaxed);
    record->window = tape.window;
    record->reserved0 = 0;
    tape.End(total);
  }
  WriteOpenRanges(tape);
  return true;
}

void PrepareSteps(wire::ArenaHeader& arena) {
  const bool later = arena.first_step > 0 || arena.step_name[0] != '\0';
  if (arena.choose_steps != 0 && later) SetGate(false);
}

uint64_t StepBegins(Tape& tape) {
  const uint64_t step = g_marked_steps.fetch_add(1);
  if (!FollowsSteps(tape)) return step;
  TurnIfAsked(tape);
  ReportSteps(tape, step + 1);
  if (ChoosesSteps(tape) && step == tape.arena->first_step) MoveGate(true);
  return step;
}

void StepEnded(Tape& tape, uint64_t step) {
  if (ChoosesSteps(tape) && step == tape.arena->last_step) MoveGate(false);
}

// A step of the program lies between the ends of two steps of the optimizer; the first one begins
// with the program.
void OptimizerEnded(Tape& tape) {
  if (!FollowsSteps(tape) || tape.arena->step_name[0] != '\0') return;
  if (g_marked_steps.load(std::memory_order_relaxed) != 0) return;
  const uint64_t turns = g_turns.fetch_add(1) + 1;
  TurnIfAsked(tape);
  ReportSteps(tape, turns);
  if (!ChoosesSteps(tape)) return;
  if (turns == tape.arena->first_step) MoveGate(true);
  if (turns == tape.arena->last_step + 1) MoveGate(false);
}

}  // namespace acltape::agent

using acltape::agent::Arena;
using acltape::agent::CurrentTape;

// recorder/ranges/acltape.h and the Python module call these. They open and close the recording of
// the whole process tree.
extern "C" ACLTAPE_AGENT_API void acltape_agent_window_open() {
  if (Arena() == nullptr) return;
  if (auto* tape = CurrentTape(); tape != nullptr && !acltape::agent::IsOpen(*tape)) {
    acltape::agent::BeforeEdge();
  }
  acltape::wire::OpenWindow(*Arena());
  if (auto* tape = CurrentTape()) acltape::agent::IsOpen(*tape);
}

extern "C" ACLTAPE_AGENT_API void acltape_agent_window_close() {
  if (Arena() == nullptr) return;
  if (auto* tape = CurrentTape(); tape != nullptr && acltape::agent::IsOpen(*tape)) {
    acltape::agent::BeforeEdge();
  }
  acltape::wire::CloseWindow(*Arena());
}
