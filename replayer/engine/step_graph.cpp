#include "replayer/engine/step_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analyzer/calls/byte_set.h"
#include "analyzer/program/given_away.h"
#include "replayer/device/memory_plan.h"
#include "replayer/engine/held_results.h"
#include "replayer/engine/verifier_taker.h"

namespace acltape::replayer {

using analyzer::LeafKind;
using analyzer::TensorUse;
using Treatment = VaryingLeaf::Treatment;

namespace {

// The blocks of a stream follow those of StepBlock.
int WorkspaceOf(int stream) { return StepBlock::kFirstOfStreams + 2 * stream; }
int TemporariesOf(int stream) { return StepBlock::kFirstOfStreams + 2 * stream + 1; }

}  // namespace

StepGraph::StepGraph(Execution& execution, const HomeMemory& homes,
                     const analyzer::StepTemplate& step_class, const StepGraphOptions& options)
    : execution_(execution),
      planner_(execution, homes, step_class, options),
      isolate_regions_(options.isolate_regions),
      shares_memory_(options.keep == Keep::kStepOutputs),
      stream_of_(step_class.leaves.size(), 0) {
  MakeBlocks();
  machine_.emplace(execution.device(), execution.uploader(), script_);
  machine_->Give(StepBlock::kHomes, homes.base());
  for (size_t s = 0; s < workspaces_.size(); ++s) {
    machine_->Give(WorkspaceOf(static_cast<int>(s)), workspaces_[s]);
  }
  machine_->Give(TemporariesOf(0), execution.temporaries());
  NumberEvents();
  AddCallsOfLeaves();
  AddOutputs();
  WriteCaptures(CaptureModeOf(options.plan));
  for (size_t m = 0; m < step_class.matches.size(); ++m) WriteStep(m, steps_.emplace_back());
  machine_->Prepare();
  machine_->BindCalls();
}

void StepGraph::MakeBlocks() {
  const auto add = [this](const char* name, int64_t bytes) {
    script_.blocks.push_back({name, std::max(bytes, kDeviceAlignment), ScriptBlock::kNoFill});
  };
  add("nothing", kDeviceAlignment);
  add("homes", 0);
  add("graph", plan().arena_bytes);
  add("kept", plan().shadow_bytes);
  add("state", plan().state_bytes);
  for (const IssuedRegion& region : plan().regions) {
    script_.streams = std::max(script_.streams, region.streams);
    for (const IssuedLeaf& leaf : region.leaves) stream_of_[leaf.place] = leaf.stream;
  }
  for (int s = 0; s < script_.streams; ++s) {
    workspaces_.emplace_back(execution_.device());
    add("workspace", 0);
    add("temporaries", execution_.lowered().temporary_bytes);
  }
}

void StepGraph::NumberEvents() {
  for (const IssuedRegion& region : plan().regions) {
    script_.events = std::max(script_.events, region.events + region.streams);
  }
  for (const VaryingLeaf& leaf : plan().varying) {
    if (leaf.treatment == Treatment::kUpdate) updated_.push_back(&leaf);
  }
  if (updated_.empty()) return;
  order_.stream = script_.streams++;
  order_.executed = script_.events++;
  order_.updated = script_.events++;
}

LeafMemory StepGraph::MemoryOf(size_t place, SpotOf place_of) const {
  const int stream = stream_of_[place];
  return {std::move(place_of),
          {StepBlock::kNothing, 0},
          {TemporariesOf(stream), 0},
          {WorkspaceOf(stream), 0}};
}

void StepGraph::AddCallsOfLeaves() {
  const analyzer::Program& program = execution_.program();
  const auto add = [&](int64_t leaf, const LeafMemory& memory) {
    return AddCalls(program.leaves[leaf], execution_.lowered().lowerings[leaf], memory, script_);
  };
  const SpotOf place_of = [this](int64_t buffer_id, const storage::Layout& layout) {
    return planner_.Place(buffer_id, layout);
  };
  for (size_t place = 0; place < stream_of_.size(); ++place) {
    calls_.emplace_back();
    if (IsLaunched(place))
      calls_[place] = add(plan().step_class->leaves[place], MemoryOf(place, place_of));
  }
  for (const VaryingLeaf& leaf : plan().varying) {
    Variants& variants = variants_[leaf.place];
    variants.leaf = &leaf;
    for (const size_t m : leaf.match_of) {
      const analyzer::StepMatch& match = plan().step_class->matches[m];
      const SpotOf own_place = [&](int64_t buffer_id, const storage::Layout& layout) {
        return planner_.Place(match, buffer_id, layout);
      };
      variants.calls.push_back(add(match.leaves[leaf.place], MemoryOf(leaf.place, own_place)));
    }
  }
}

// Outputs by place, then the values that the host reads.
void StepGraph::AddOutputs() {
  const analyzer::Program& program = execution_.program();
  const auto add = [&](size_t place, int write, const TensorUse& use) {
    const bool empty = use.layout->ElementCount() == 0;
    const Spot spot =
        empty ? Spot{StepBlock::kNothing, 0} : planner_.Place(use.tensor.buffer_id, *use.layout);
    script_.outputs.push_back(
        {LeafAt(place).call.call_id, static_cast<int64_t>(place), write, spot, *use.layout});
  };
  for (size_t place = 0; place < stream_of_.size(); ++place) {
    first_output_.push_back(static_cast<int>(script_.outputs.size()));
    if (!IsLaunched(place)) continue;
    const std::vector<TensorUse>& writes = program.uses[plan().step_class->leaves[place]].writes;
    for (size_t w = 0; w < writes.size(); ++w) {
      add(place, static_cast<int>(w), writes[w]);
      const auto shadow = plan().shadows.find({place, static_cast<int>(w)});
      if (shadow != plan().shadows.end()) script_.outputs.back().spot = shadow->second;
    }
  }
  first_output_.push_back(static_cast<int>(script_.outputs.size()));
  for (size_t place = 0; place < stream_of_.size(); ++place) {
    if (LeafAt(place).kind != LeafKind::kHostRead) continue;
    const std::vector<TensorUse>& reads = program.uses[plan().step_class->leaves[place]].reads;
    if (reads.empty()) continue;
    host_reads_[place] = static_cast<int>(script_.outputs.size());
    add(place, -1, reads[0]);
  }
}

Observe StepGraph::ObserveOf(size_t match, size_t first, size_t end) const {
  return {static_cast<int>(match), first_output_[first], first_output_[end]};
}

std::multimap<size_t, int> StepGraph::GivenOutputs(size_t match) const {
  std::multimap<size_t, int> given;
  // Where memory is not shared, or regions are looked at one by one, nothing overwrites a result
  // before it is observed.
  if (!shares_memory_ || isolate_regions_) return given;
  for (const analyzer::GivenResult& result :
       analyzer::GivenResults(execution_.program(), plan().step_class->matches[match])) {
    if (!IsLaunched(result.place)) continue;
    given.emplace(result.next, first_output_[result.place] + static_cast<int>(result.write));
  }
  return given;
}

bool StepGraph::IsLaunched(size_t place) const {
  return LeafAt(place).kind == LeafKind::kKernel && !IsSubstituted(place);
}

// The calls with the values of the step, if the leaf's arguments vary.
CallRange StepGraph::CallsFor(size_t match, size_t place) const {
  const auto found = variants_.find(place);
  if (found == variants_.end()) return calls_[place];
  return found->second.calls[found->second.leaf->value_of[match]];
}

void StepGraph::WriteKept(size_t place, int stream, Operations& operations) const {
  const SpotOf place_of = [this](int64_t buffer_id, const storage::Layout& layout) {
    return planner_.Place(buffer_id, layout);
  };
  replayer::WriteKept(execution_.program(), LeafAt(place).index, place, plan().shadows, place_of,
                      stream, operations);
}

void StepGraph::WriteCaptures(aclmdlRICaptureMode mode) {
  for (const IssuedRegion& region : plan().regions) {
    int64_t tasks = 0;
    for (const IssuedLeaf& leaf : region.leaves) {
      tasks += calls_[leaf.place].end - calls_[leaf.place].first;
    }
    region_tasks_.push_back(tasks);
    graph_of_.push_back(region.captured && tasks != 0 ? script_.graphs++ : -1);
    if (graph_of_.back() < 0) continue;
    captures_.push_back(BeginCapture{graph_of_.back(), static_cast<int>(mode)});
    const auto write_leaf = [&](size_t index) {
      const IssuedLeaf& leaf = region.leaves[index];
      if (!IsLaunched(leaf.place)) return;
      const auto launch = [&] { WriteLaunches(calls_[leaf.place], leaf.stream, captures_); };
      const auto updated =
          std::find_if(updated_.begin(), updated_.end(),
                       [&](const VaryingLeaf* varying) { return varying->place == leaf.place; });
      if (updated != updated_.end()) {
        WriteGroup(**updated, (*updated)->match_of[0], leaf.stream, launch, held_, script_,
                   captures_);
      } else {
        launch();
      }
      WriteKept(leaf.place, leaf.stream, captures_);
    };
    WriteRegion(region, region.events, region.streams, write_leaf, captures_);
    captures_.push_back(EndCapture{graph_of_.back()});
  }
}

// Merges uploads to adjacent places into one copy.
void StepGraph::WriteUploads(const std::vector<StepUpload>& uploads, bool merge,
                             Operations& operations) {
  const analyzer::Program& program = execution_.program();
  const auto content_of = [&](const StepUpload& upload) {
    return upload.feed != nullptr
               ? AddFeed(execution_.contents(), *upload.feed, "", script_)
               : AddResult(program, execution_.contents(), upload.leaf, upload.write, "", script_);
  };
  const auto next_place = [](const StepUpload& upload) {
    return upload.to + (upload.padded ? AlignUp(upload.bytes) : upload.bytes);
  };
  for (size_t first = 0, end = 0; first < uploads.size(); first = end) {
    end = first + 1;
    if (uploads[first].strided) {
      const TensorUse& use = program.uses[uploads[first].leaf].writes[uploads[first].write];
      operations.push_back(
          UploadStrided{uploads[first].to, use.layout, content_of(uploads[first])});
      continue;
    }
    while (merge && end < uploads.size() && !uploads[end].strided &&
           uploads[end].to == next_place(uploads[end - 1])) {
      ++end;
    }
    const auto piece = static_cast<int>(script_.pieces.size());
    for (size_t i = first; i < end; ++i) {
      script_.pieces.push_back(
          {uploads[i].to, content_of(uploads[i]), uploads[i].feed_offset, uploads[i].bytes});
    }
    if (end == first + 1) {
      operations.push_back(script_.pieces.back());
      script_.pieces.pop_back();
    } else {
      const UploadTo& last = script_.pieces.back();
      const Spot to = uploads[first].to;
      operations.push_back(UploadTogether{to, last.to.offset + last.bytes - to.offset, piece,
                                          piece + static_cast<int>(end - first)});
    }
  }
}

void StepGraph::WriteBegin(const StepMoves& moves, Operations& operations) {
  WriteUploads(moves.uploads, /*merge=*/true, operations);
  operations.insert(operations.end(), moves.copies_in.begin(), moves.copies_in.end());
}

void StepGraph::WriteMovesAt(const StepMoves& moves, size_t place, Operations& operations) {
  const auto uploads = moves.uploads_at.find(place);
  if (uploads != moves.uploads_at.end()) WriteUploads(uploads->second, false, operations);
  const auto copies = moves.copies_at.find(place);
  if (copies == moves.copies_at.end()) return;
  operations.insert(operations.end(), copies->second.begin(), copies->second.end());
}

void StepGraph::WriteRecordedResults(size_t match, size_t place, bool held_only,
                                     Operations& operations) {
  const analyzer::Program& program = execution_.program();
  const std::vector<TensorUse>& writes = program.uses[LeafAt(place).index].writes;
  const int64_t leaf = plan().step_class->matches[match].leaves[place];
  for (size_t w = 0; w < writes.size(); ++w) {
    if (writes[w].layout->ElementCount() == 0) continue;
    if (held_only && !HoldsResult(program, leaf, w)) continue;
    WriteRecordedResult(match, place, w, operations);
  }
}

// In the order of issue: where buffers share memory the last one stays, as it does after the region
// itself. A result that the trace does not hold stays as it was computed, so no earlier one is
// written over it.
void StepGraph::WriteRecordedRegion(size_t match, const IssuedRegion& region,
                                    Operations& operations) {
  const analyzer::Program& program = execution_.program();
  std::map<int, analyzer::ByteSet> computed;        // by block
  std::vector<std::pair<size_t, size_t>> recorded;  // places and writes, the last one first
  for (auto issued = region.leaves.rbegin(); issued != region.leaves.rend(); ++issued) {
    if (!IsLaunched(issued->place)) continue;
    const std::vector<TensorUse>& writes = program.uses[LeafAt(issued->place).index].writes;
    const int64_t leaf = plan().step_class->matches[match].leaves[issued->place];
    for (size_t w = writes.size(); w-- > 0;) {
      const storage::Layout& layout = *writes[w].layout;
      if (layout.ElementCount() == 0) continue;
      const Spot spot = planner_.Place(writes[w].tensor.buffer_id, layout);
      const int64_t first = spot.offset;
      const int64_t end = first + layout.EndByte() - layout.FirstByte();
      if (!HoldsResult(program, leaf, w)) {
        computed[spot.block].Add(first, end);
      } else if (computed[spot.block].Within(first, end).empty()) {
        recorded.emplace_back(issued->place, w);
      }
    }
  }
  for (auto result = recorded.rbegin(); result != recorded.rend(); ++result) {
    WriteRecordedResult(match, result->first, result->second, operations);
  }
}

void StepGraph::WriteRecordedResult(size_t match, size_t place, size_t write,
                                    Operations& operations) {
  const analyzer::Program& program = execution_.program();
  const TensorUse& use = program.uses[LeafAt(place).index].writes[write];
  const int64_t leaf = plan().step_class->matches[match].leaves[place];
  WriteResult(program, execution_.contents(), leaf, write, "",
              planner_.Place(use.tensor.buffer_id, *use.layout), script_, operations);
}

void StepGraph::WriteEagerLeaf(size_t match, size_t place, Operations& operations) {
  const auto host_read = host_reads_.find(place);
  if (host_read != host_reads_.end()) {
    operations.push_back(ReadOnHost{static_cast<int>(match), host_read->second});
  } else if (IsSubstituted(place)) {
    WriteRecordedResults(match, place, /*held_only=*/false, operations);
  } else if (IsLaunched(place)) {
    WriteLaunches(CallsFor(match, place), 0, operations);
    WriteKept(place, 0, operations);
    if (!isolate_regions_) return;
    operations.push_back(ObserveOf(match, place, place + 1));
    WriteRecordedResults(match, place, /*held_only=*/true, operations);
  }
}

void StepGraph::WriteStep(size_t match, Operations& operations) {
  const StepMoves& moves = plan().moves[match];
  const std::multimap<size_t, int> given = GivenOutputs(match);
  const auto observe_given = [&](size_t place) {
    const auto [first, end] = given.equal_range(place);
    for (auto own = first; own != end; ++own) {
      operations.push_back(Observe{static_cast<int>(match), own->second, own->second + 1});
    }
  };
  WriteBegin(moves, operations);
  for (size_t r = 0; r < plan().regions.size(); ++r) {
    const IssuedRegion& region = plan().regions[r];
    if (!region.captured) {
      for (const IssuedLeaf& leaf : region.leaves) {
        observe_given(leaf.place);
        WriteMovesAt(moves, leaf.place, operations);
        WriteEagerLeaf(match, leaf.place, operations);
      }
      continue;
    }
    observe_given(region.first);
    WriteMovesAt(moves, region.first, operations);
    if (graph_of_[r] < 0) continue;
    operations.push_back(ExecuteGraph{graph_of_[r], 0});
    if (!isolate_regions_) continue;
    operations.push_back(ObserveOf(match, region.first, region.end));
    WriteRecordedRegion(match, region, operations);
  }
  const size_t end = stream_of_.size();
  observe_given(end);
  WriteMovesAt(moves, end, operations);
  if (!updated_.empty()) operations.push_back(RecordEvent{order_.executed, 0});
  if (!isolate_regions_) {
    // All outputs that were not observed before.
    std::set<int> observed;
    for (const auto& [place, output] : given) observed.insert(output);
    Observe rest = ObserveOf(match, 0, end);
    for (const int output : observed) {
      operations.push_back(Observe{rest.observation, rest.first, output});
      rest.first = output + 1;
    }
    operations.push_back(rest);
  }
  operations.insert(operations.end(), moves.copies_out.begin(), moves.copies_out.end());
}

void StepGraph::WarmUpAndCapture(size_t match) {
  Operations warm_up(plan().state.begin(), plan().state.end());
  WriteUploads(plan().constants, /*merge=*/true, warm_up);
  WriteBegin(plan().moves[match], warm_up);
  // Runs every leaf on one stream, so that each reserves its workspace, and in the order of issue,
  // in which the buffers that share memory do not overlap.
  for (const IssuedRegion& region : plan().regions) {
    if (region.captured) WriteMovesAt(plan().moves[match], region.first, warm_up);
    for (const IssuedLeaf& leaf : region.leaves) {
      if (!region.captured) WriteMovesAt(plan().moves[match], leaf.place, warm_up);
      if (IsSubstituted(leaf.place)) {
        WriteRecordedResults(match, leaf.place, /*held_only=*/false, warm_up);
      } else if (IsLaunched(leaf.place)) {
        WriteLaunches(calls_[leaf.place], 0, warm_up);
        WriteKept(leaf.place, 0, warm_up);
      }
    }
  }
  for (const CopyBytes& copy : plan().state) {
    warm_up.push_back(CopyBytes{copy.from, copy.to, copy.bytes});
  }
  machine_->Prepare();
  machine_->Run(warm_up, nullptr, nullptr);
  execution_.device().Synchronize();

  for (Workspace& workspace : workspaces_) workspace.Freeze(true);
  const int64_t begin = NowNs();
  machine_->Run(captures_, nullptr, nullptr);
  capture_ns_ = NowNs() - begin;
}

void StepGraph::Preload() {
  for (const Operations& step : steps_) machine_->Load(step);
}

void StepGraph::Execute(size_t match, Verifier* verifier, WaitClock* clock) {
  if (!updated_.empty()) {
    updates_.clear();
    const auto launch = [&](size_t place) {
      WriteLaunches(CallsFor(match, place), order_.stream, updates_);
    };
    update_count_ += WriteUpdates(updated_, match, order_, launch, held_, updates_);
    machine_->Run(updates_, nullptr, nullptr);
    order_.has_executed = true;
  }
  if (verifier == nullptr) {
    machine_->Run(steps_[match], nullptr, clock);
  } else {
    VerifierTaker taker(script_, *verifier, &plan().step_class->matches[match].leaves);
    machine_->Run(steps_[match], &taker, clock);
  }
}

int64_t StepGraph::graph_count() const { return script_.graphs; }

void StepGraph::Describe(CaptureReport& report) const {
  const analyzer::Program& program = execution_.program();
  report.template_step = program.work.steps[plan().step_class->step_index].step;
  report.capture_ns = capture_ns_;
  report.varying_leaves = static_cast<int64_t>(variants_.size());
  report.updated_leaves = static_cast<int64_t>(held_.groups.size());
  report.updates = update_count_;
  for (const analyzer::Operand& operand : plan().step_class->operands) {
    report.moving_inputs += operand.moving ? 1 : 0;
  }
  for (size_t r = 0; r < plan().regions.size(); ++r) {
    const IssuedRegion& region = plan().regions[r];
    RegionReport row;
    row.first_call = LeafAt(region.first).call.call_id;
    row.last_call = LeafAt(region.end - 1).call.call_id;
    row.captured = graph_of_[r] >= 0;
    row.leaves = static_cast<int64_t>(region.end - region.first);
    row.tasks = region_tasks_[r];
    row.streams = region.streams;
    for (const IssuedLeaf& leaf : region.leaves) {
      row.waits += static_cast<int64_t>(leaf.wait_for.size());
    }
    row.reason = region.captured && !row.captured ? "nothing to launch" : region.reason;
    report.regions.push_back(row);
  }
  // The last step stands for the others: the first may bring values that later steps keep. What
  // eager leaves upload is not a copy for a graph.
  const StepMoves& moves = plan().moves.back();
  std::optional<Spot> expected;
  const auto count = [&](int64_t bytes) {
    ++report.copies_per_step;
    report.copy_bytes_per_step += bytes;
  };
  for (const StepUpload& upload : moves.uploads) {
    if (upload.to == expected && !upload.strided) {
      --report.copies_per_step;  // joins the copy before it
    }
    count(upload.bytes);
    expected = upload.to + AlignUp(upload.bytes);
  }
  for (const auto& [place, uploads] : moves.uploads_at) {
    for (const StepUpload& upload : uploads) count(upload.bytes);
  }
  for (const CopyBytes& copy : moves.copies_in) count(copy.bytes);
  for (const auto& [place, copies] : moves.copies_at) {
    for (const CopyBytes& copy : copies) count(copy.bytes);
  }
  for (const CopyBytes& copy : moves.copies_out) count(copy.bytes);
}

}  // namespace acltape::replayer
