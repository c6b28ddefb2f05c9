// Writes the captures of a mixed step, and the updates of the arguments that the graphs hold.
#include <algorithm>

#include "replayer/memory_plan.h"
#include "replayer/script/step_script.h"

namespace acltape::replayer {

using analyzer::TensorUse;
using Treatment = VaryingLeaf::Treatment;

void StepScript::Address(size_t m, Side side, const std::vector<Spot>& temporaries,
                         const CallEffects* effects, analyzer::LoweredTensor& tensor) {
  if (!tensor.present) return;
  Spot spot{nothing_, 0};
  if (tensor.layout.ElementCount() != 0 && tensor.temporary >= 0) {
    spot = temporaries[tensor.temporary];
    spot.offset += tensor.layout.byte_offset;
  } else if (tensor.layout.ElementCount() != 0) {
    const StepPlaces::Where where = places_.Find(m, tensor.buffer_id, tensor.layout);
    spot = SpotOf(side, where.object, where.offset);
    if (effects != nullptr) {
      for (const CallEffects::Private& own : effects->reads) {
        if (own.object == where.object) spot = {own.blocks[capture_], where.offset};
      }
    }
  }
  tensor.temporary = -1;
  tensor.buffer_id = spot.block;
  tensor.layout.byte_offset = spot.offset;
}

void StepScript::LaunchAt(size_t m, size_t at, Side side, int stream, bool faulty) {
  const int64_t leaf = LeafAt(m, at);
  const auto found = effects_.find(at);
  const CallEffects* effects = faulty && found != effects_.end() ? &found->second : nullptr;
  const bool eager = side == Side::kHome;
  Launch launch;
  launch.call_id = CallAt(m, at);
  launch.workspace = eager ? eager_workspace_ : rooms_[room_of_[at]].workspace;
  launch.stream = stream;
  if (effects != nullptr && effects->workspace) {
    launch.workspace = effects->workspace->block;
    launch.workspace_offset = effects->workspace->offset;
  }
  analyzer::Lowering lowering = execution_.lowered().lowerings[leaf];
  if (effects != nullptr && effects->other_scalar) {
    const auto scalar = ScalarThatMatters(lowering);
    if (scalar) ChangeScalar(lowering.invocations[scalar->first].arguments[scalar->second]);
  }
  std::vector<Spot> temporaries;
  Spot next{eager ? eager_temporaries_ : rooms_[room_of_[at]].temporaries, 0};
  for (const int64_t bytes : lowering.temporaries) {
    temporaries.push_back(next);
    next.offset += AlignUp(bytes);
  }
  for (analyzer::Invocation& invocation : lowering.invocations) {
    for (analyzer::LoweredValue& value : invocation.arguments) {
      for (analyzer::LoweredTensor& tensor : value.tensors) {
        Address(m, side, temporaries, effects, tensor);
      }
    }
    launch.invocation = std::move(invocation);
    Emit(launch);
  }
}

// Copies results to their shadows right after a call, before another call can overwrite them.
void StepScript::KeepResults(size_t m, size_t at, Side side, int stream) {
  const std::vector<TensorUse>& writes = program_.uses[LeafAt(m, at)].writes;
  for (size_t w = 0; w < writes.size(); ++w) {
    const auto shadow = shadows_.find({at, static_cast<int>(w)});
    if (shadow == shadows_.end()) continue;
    const storage::Layout& layout = *writes[w].layout;
    const StepPlaces::Where where = places_.Find(m, writes[w].tensor.buffer_id, layout);
    Emit(CopyBytes{shadow->second, SpotOf(side, where.object, where.offset),
                   layout.EndByte() - layout.FirstByte(), stream, CallAt(m, at)});
  }
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

// Writes the calls of one graph. Side streams are forked at the start and joined after the last
// call, as in a replay.
void StepScript::EmitRegion(const Run& run) {
  Capture& capture = captures_[capture_];
  const size_t m = capture.arguments;
  int streams = run.issue.streams;
  for (const IssuedLeaf& leaf : run.issue.leaves) {
    const auto effects = effects_.find(leaf.at);
    if (effects != effects_.end() && effects->second.not_waited_for) ++streams;
  }
  const int fork = run.fork_event;
  int next_event = fork + streams;
  int aside = run.issue.streams;                     // stream of the next call with a missing wait
  std::map<size_t, std::vector<int>> extra_records;  // by call: events after it
  std::map<size_t, std::vector<int>> extra_waits;
  for (size_t i = 0; streams > aside && i < run.issue.leaves.size(); ++i) {
    const auto effects = effects_.find(run.issue.leaves[i].at);
    if (effects == effects_.end() || !effects->second.not_waited_for) continue;
    for (const size_t other : WaitedFor(run, i)) {
      extra_records[other].push_back(next_event);
      extra_waits[i].push_back(next_event++);
    }
  }
  if (streams > 1) Emit(RecordEvent{fork, 0});
  for (int s = 1; s < streams; ++s) Emit(WaitEvent{fork, s});
  for (size_t i = 0; i < run.issue.leaves.size(); ++i) {
    const IssuedLeaf& leaf = run.issue.leaves[i];
    for (const int event : leaf.wait_for) Emit(WaitEvent{event, leaf.stream});
    if (Launches(leaf.at)) {
      const auto found = effects_.find(leaf.at);
      const CallEffects* effects = found != effects_.end() ? &found->second : nullptr;
      const int64_t call_id = CallAt(m, leaf.at);
      int stream = leaf.stream;
      if (effects != nullptr && effects->not_waited_for) {
        stream = aside++;
        for (const int event : extra_waits[i]) Emit(WaitEvent{event, stream});
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
      const VaryingLeaf* varying = VaryingAt(leaf.at);
      const bool grouped = varying != nullptr && varying->treatment == Treatment::kUpdate;
      if (grouped) {
        const int group = script_.groups++;
        capture.groups[leaf.at] = group;
        capture.held[leaf.at] = varying->value_of[m];
        Emit(BeginGroup{group, stream});
      }
      LaunchAt(m, leaf.at, Side::kGraph, stream, /*faulty=*/true);
      if (grouped) Emit(EndGroup{capture.groups[leaf.at], stream});
      if (effects != nullptr) emit_fills(effects->after);
      KeepResults(m, leaf.at, Side::kGraph, stream);
      if (stream != leaf.stream) {  // later calls of its own stream still wait for it
        Emit(RecordEvent{next_event, stream});
        Emit(WaitEvent{next_event++, leaf.stream});
      }
    }
    for (const int event : leaf.record) Emit(RecordEvent{event, leaf.stream});
    for (const int event : extra_records[i]) Emit(RecordEvent{event, leaf.stream});
  }
  for (int s = 1; s < streams; ++s) {
    Emit(RecordEvent{fork + s, s});
    Emit(WaitEvent{fork + s, 0});
  }
}

void StepScript::DisableLeftOut() {
  const Capture& capture = captures_[capture_];
  for (size_t r = 0; r < runs_.size(); ++r) {
    DisableCalls disable;
    disable.graph = capture.graphs[r];
    for (size_t i = 0; i < runs_[r].left_out.size(); ++i) {
      if (!runs_[r].left_out[i]) continue;
      disable.calls.push_back(CallAt(capture.arguments, runs_[r].issue.leaves[i].at));
    }
    if (!disable.calls.empty()) Emit(std::move(disable));
  }
}

// Updates the calls whose graph holds another value than that of this step. The updates run between
// the previous execution and the next one.
void StepScript::EmitUpdates(size_t m) {
  Capture& capture = captures_[capture_];
  bool any = false;
  for (const auto& [at, group] : capture.groups) {
    const int value = VaryingAt(at)->value_of[m];
    const auto effects = effects_.find(at);
    const bool stays = effects != effects_.end() && effects->second.not_updated;
    if (stays || !captured_[at] || capture.held[at] == value) continue;
    if (!any && has_executed_) Emit(WaitEvent{executed_event_, update_stream_});
    any = true;
    Emit(BeginUpdate{group, update_stream_});
    LaunchAt(m, at, Side::kGraph, update_stream_, /*faulty=*/true);
    Emit(EndUpdate{group, update_stream_});
    capture.held[at] = value;
  }
  if (!any) return;
  Emit(RecordEvent{updated_event_, update_stream_});
  Emit(WaitEvent{updated_event_, 0});
}

// Returns the calls for which a call with a missing wait still waits. These are all calls that were
// ordered before it, except the one that it should wait for and the calls that follow from that
// one. Only the last such call of each stream is returned.
std::vector<size_t> StepScript::WaitedFor(const Run& run, size_t index) const {
  const size_t other_place = *effects_.at(run.issue.leaves[index].at).not_waited_for;
  const auto streams = static_cast<size_t>(run.issue.streams);
  // By call of the run: the number of calls of each stream that are ordered before it.
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
    if (leaf.at == other_place) other = i;
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

}  // namespace acltape::replayer
