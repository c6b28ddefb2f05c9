// Writes the captures of a mixed step, and the updates of the arguments that the graphs hold.
#include <algorithm>

#include "replayer/script/step_script.h"

namespace acltape::replayer::script {

using analyzer::TensorUse;
using Treatment = VaryingLeaf::Treatment;

void StepScript::LaunchAt(size_t m, size_t place, Side side, int stream, bool faulty) {
  const auto found = effects_.find(place);
  const CallEffects* effects = faulty && found != effects_.end() ? &found->second : nullptr;
  const bool eager = side == Side::kHome;
  LeafMemory memory;
  memory.nothing = {nothing_, 0};
  memory.temporaries = {eager ? eager_temporaries_ : scratch_[scratch_of_[place]].temporaries, 0};
  memory.workspace = {eager ? eager_workspace_ : scratch_[scratch_of_[place]].workspace, 0};
  if (effects != nullptr && effects->workspace) memory.workspace = *effects->workspace;
  memory.place = [&](int64_t buffer_id, const storage::Layout& layout) {
    const StepPlaces::Where where = places_.Find(m, buffer_id, layout);
    Spot spot = SpotOf(side, where.object, where.offset);
    if (effects == nullptr) return spot;
    for (const CallEffects::Private& own : effects->reads) {
      if (own.object == where.object) spot = {own.blocks[capture_], where.offset};
    }
    return spot;
  };
  const analyzer::Leaf& leaf = program_.leaves[LeafAt(m, place)];
  const analyzer::lowering::Lowering* lowering = &execution_.lowered().lowerings[leaf.index];
  analyzer::lowering::Lowering changed;
  if (effects != nullptr && effects->other_scalar) {
    changed = *lowering;
    lowering = &changed;
    const auto scalar = ScalarThatMatters(changed);
    if (scalar) ChangeScalar(changed.invocations[scalar->first].arguments[scalar->second]);
  }
  WriteLaunches(AddCalls(leaf, *lowering, memory, script_), stream, script_.operations);
}

// Copies results to their shadows right after a call, before another call can overwrite them.
void StepScript::KeepResults(size_t m, size_t place, Side side, int stream) {
  const auto place_of = [&](int64_t buffer_id, const storage::Layout& layout) {
    const StepPlaces::Where where = places_.Find(m, buffer_id, layout);
    return SpotOf(side, where.object, where.offset);
  };
  WriteKept(program_, LeafAt(m, place), place, shadows_, place_of, stream, script_.operations);
}

void StepScript::EmitCapture() {
  const int mode = static_cast<int>(CaptureModeOf(options_.plan));
  for (const Run& run : runs_) {
    const int graph = script_.graphs++;
    captures_[capture_].graphs.push_back(graph);
    Emit(BeginCapture{graph, mode});
    EmitRegion(run);
    Emit(EndCapture{graph});
  }
}

// Writes the calls of one graph. A call with a missing wait runs on a stream of its own, where only
// the other calls that it depends on are waited for. Later calls of its planned stream still wait
// for it.
void StepScript::EmitRegion(const Run& run) {
  const std::vector<IssuedLeaf>& leaves = run.issue.leaves;
  std::map<size_t, Aside> asides;                    // by call
  std::map<size_t, std::vector<int>> extra_records;  // by call: events after it
  int streams = run.issue.streams;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const auto effects = effects_.find(leaves[i].place);
    if (effects == effects_.end() || !effects->second.not_waited_for) continue;
    asides[i].stream = streams++;
  }
  int next_event = run.fork_event + streams;
  for (auto& [index, aside] : asides) {
    for (const size_t other : WaitedFor(run, index)) {
      extra_records[other].push_back(next_event);
      aside.wait_for.push_back(next_event++);
    }
  }
  for (auto& [index, aside] : asides) aside.done = next_event++;
  const auto write_leaf = [&](size_t i) {
    const auto aside = asides.find(i);
    if (Launches(leaves[i].place)) {
      EmitCapturedLeaf(leaves[i], aside == asides.end() ? nullptr : &aside->second);
    }
    for (const int event : extra_records[i]) Emit(RecordEvent{event, leaves[i].stream});
  };
  WriteRegion(run.issue, run.fork_event, streams, write_leaf, script_.operations);
}

void StepScript::EmitCapturedLeaf(const IssuedLeaf& leaf, const Aside* aside) {
  Capture& capture = captures_[capture_];
  const size_t m = capture.arguments;
  const auto found = effects_.find(leaf.place);
  const CallEffects* effects = found != effects_.end() ? &found->second : nullptr;
  const int64_t call_id = CallAt(m, leaf.place);
  const int stream = aside != nullptr ? aside->stream : leaf.stream;
  if (aside != nullptr) {
    for (const int event : aside->wait_for) Emit(WaitEvent{event, stream});
  }
  const auto emit_fills = [&](const std::vector<FillBytes>& fills) {
    for (FillBytes fill : fills) {
      fill.stream = stream;
      fill.call_id = call_id;
      Emit(fill);
    }
  };
  if (effects != nullptr) {
    for (const CallEffects::Private& own : effects->reads) {
      if (!own.refreshed) continue;
      Emit(CopyBytes{{own.blocks[capture_], 0},
                     SpotOf(Side::kGraph, own.object, 0),
                     places_.objects()[own.object].bytes,
                     stream,
                     call_id});
    }
    emit_fills(effects->before);
  }
  const auto launch = [&] { LaunchAt(m, leaf.place, Side::kGraph, stream, /*faulty=*/true); };
  const VaryingLeaf* varying = VaryingAt(leaf.place);
  if (varying != nullptr && varying->treatment == Treatment::kUpdate) {
    WriteGroup(*varying, m, stream, launch, capture.held, script_, script_.operations);
  } else {
    launch();
  }
  if (effects != nullptr) emit_fills(effects->after);
  KeepResults(m, leaf.place, Side::kGraph, stream);
  if (aside == nullptr) return;
  Emit(RecordEvent{aside->done, stream});
  Emit(WaitEvent{aside->done, leaf.stream});
}

void StepScript::DisableLeftOut() {
  const Capture& capture = captures_[capture_];
  for (size_t r = 0; r < runs_.size(); ++r) {
    DisableCalls disable;
    disable.graph = capture.graphs[r];
    for (size_t i = 0; i < runs_[r].left_out.size(); ++i) {
      if (!runs_[r].left_out[i]) continue;
      disable.calls.push_back(CallAt(capture.arguments, runs_[r].issue.leaves[i].place));
    }
    if (!disable.calls.empty()) Emit(std::move(disable));
  }
}

// Updates the calls whose graph holds another value than that of this step, but for those of which
// a planted fault says that they are not.
void StepScript::EmitUpdates(size_t m) {
  std::vector<const VaryingLeaf*> leaves;
  for (const VaryingLeaf& leaf : layout_.varying) {
    const auto effects = effects_.find(leaf.place);
    const bool stays = effects != effects_.end() && effects->second.not_updated;
    if (!stays && captured_[leaf.place]) leaves.push_back(&leaf);
  }
  const UpdateOrder order{update_stream_, executed_event_, updated_event_, has_executed_};
  WriteUpdates(
      leaves, m, order,
      [&](size_t place) { LaunchAt(m, place, Side::kGraph, update_stream_, /*faulty=*/true); },
      captures_[capture_].held, script_.operations);
}

// Returns the calls for which a call with a missing wait still waits. These are all calls that were
// ordered before it, except the one that it should wait for and the calls that follow from that
// one. Only the last such call of each stream is returned.
std::vector<size_t> StepScript::WaitedFor(const Run& run, size_t index) const {
  const size_t other_place = *effects_.at(run.issue.leaves[index].place).not_waited_for;
  const auto streams = static_cast<size_t>(run.issue.streams);
  // For each call of the run, the number of calls of each stream that are ordered before it.
  std::vector<std::vector<size_t>> before;
  std::vector<std::vector<size_t>> clocks(streams, std::vector<size_t>(streams, 0));
  std::map<int, std::vector<size_t>> recorded;
  std::vector<std::vector<size_t>> on_stream(streams);  // indices of calls, by stream
  size_t other = run.issue.leaves.size();
  for (size_t i = 0; i <= index; ++i) {
    const IssuedLeaf& leaf = run.issue.leaves[i];
    std::vector<size_t>& clock = clocks[leaf.stream];
    for (const int event : leaf.wait_for) {
      for (size_t s = 0; s < streams; ++s) clock[s] = std::max(clock[s], recorded[event][s]);
    }
    before.push_back(clock);
    ++clock[leaf.stream];
    on_stream[leaf.stream].push_back(i);
    for (const int event : leaf.record) recorded[event] = clock;
    if (leaf.place == other_place) other = i;
  }
  const bool here = other < index;
  const int other_stream = here ? run.issue.leaves[other].stream : 0;
  size_t other_number = 0;  // on its stream
  while (here && on_stream[other_stream][other_number] != other) ++other_number;
  std::vector<size_t> waited_for;
  for (size_t s = 0; s < streams; ++s) {
    size_t count = before[index][s];
    while (here && count > 0) {
      const size_t last = on_stream[s][count - 1];
      if (last != other && before[last][other_stream] <= other_number) break;
      --count;
    }
    if (count > 0) waited_for.push_back(on_stream[s][count - 1]);
  }
  return waited_for;
}

}  // namespace acltape::replayer::script
