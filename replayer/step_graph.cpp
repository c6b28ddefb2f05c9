#include "replayer/step_graph.h"

#include <cstring>

#include "replayer/memory_plan.h"

namespace acltape::replayer {

using analyzer::LeafKind;
using analyzer::Region;

StepGraph::StepGraph(Execution& execution, const HomeMemory& homes,
                     const analyzer::StepTemplate& step_class, bool keep_outputs)
    : execution_(execution),
      planner_(execution, homes, step_class, keep_outputs),
      workspace_(execution.device()),
      graphs_(planner_.plan().regions.size(), nullptr),
      region_tasks_(planner_.plan().regions.size(), 0),
      host_value_(execution.device(), Block::Kind::kPinned, kDeviceAlignment) {
  int64_t state_bytes = 0;
  for (DeviceCopy& copy : planner_.plan().state) {
    state_bytes += AlignUp(static_cast<int64_t>(copy.bytes));
  }
  saved_state_ = Block(execution.device(), Block::Kind::kDevice, state_bytes);
  uint8_t* next = saved_state_.data();
  for (DeviceCopy& copy : planner_.plan().state) {
    copy.to = next;
    next += AlignUp(static_cast<int64_t>(copy.bytes));
  }
  const auto place = [this](int64_t buffer_id, const storage::Layout& layout) {
    return planner_.Place(buffer_id, layout);
  };
  for (const int64_t leaf : step_class.leaves) bound_.push_back(execution.Bind(leaf, place));
}

StepGraph::~StepGraph() {
  const acl::Api& api = execution_.device().api();
  api.aclrtSynchronizeStream(execution_.device().stream());
  for (const aclmdlRI graph : graphs_) {
    if (graph != nullptr) api.aclmdlRIDestroy(graph);
  }
}

void StepGraph::SaveState() { RunCopies(planner_.plan().state); }

void StepGraph::RestoreState() {
  for (const DeviceCopy& copy : planner_.plan().state) {
    execution_.device().Copy(const_cast<uint8_t*>(copy.from), copy.to, copy.bytes);
  }
}

Bytes StepGraph::Content(const StepUpload& upload) {
  if (upload.content != nullptr) return upload.content;
  Contents& contents = execution_.contents();
  if (upload.feed != nullptr) return contents.Get(*upload.feed);
  const analyzer::Program& program = execution_.program();
  return contents.GetResult(program.leaves[upload.leaf],
                            program.uses[upload.leaf].writes[upload.write]);
}

void StepGraph::Preload() {
  for (StepMoves& moves : planner_.plan().moves) {
    for (StepUpload& upload : moves.uploads) upload.content = Content(upload);
    for (auto& [at, uploads] : moves.uploads_at) {
      for (StepUpload& upload : uploads) upload.content = Content(upload);
    }
  }
}

// Uploads to places one behind the other become one copy; the gaps between them are padding.
void StepGraph::RunUploads(const std::vector<StepUpload>& uploads, bool merge) {
  size_t first = 0;
  while (first < uploads.size()) {
    if (uploads[first].strided) {
      BoundLeaf target;
      target.writes.resize(execution_.program().uses[uploads[first].leaf].writes.size());
      target.writes[uploads[first].write] = uploads[first].address;
      execution_.PutResult(target, uploads[first].leaf, uploads[first].write);
      ++first;
      continue;
    }
    size_t end = first + 1;
    while (merge && end < uploads.size() && !uploads[end].strided &&
           uploads[end].address ==
               uploads[end - 1].address + AlignUp(static_cast<int64_t>(uploads[end - 1].bytes))) {
      ++end;
    }
    uint8_t* base = uploads[first].address;
    const size_t bytes = uploads[end - 1].address + uploads[end - 1].bytes - base;
    uint8_t* piece = execution_.uploader().Reserve(bytes);
    for (size_t i = first; i < end; ++i) {
      const Bytes content = Content(uploads[i]);
      std::memcpy(piece + (uploads[i].address - base), content->data() + uploads[i].feed_offset,
                  uploads[i].bytes);
    }
    execution_.device().Upload(base, piece, bytes);
    first = end;
  }
}

void StepGraph::RunCopies(const std::vector<DeviceCopy>& copies) {
  for (const DeviceCopy& copy : copies) execution_.device().Copy(copy.to, copy.from, copy.bytes);
}

void StepGraph::Begin(size_t match) {
  const StepMoves& moves = planner_.plan().moves[match];
  RunUploads(moves.uploads, /*merge=*/true);
  RunCopies(moves.copies_in);
}

void StepGraph::MoveAt(const StepMoves& moves, size_t at) {
  const auto uploads = moves.uploads_at.find(at);
  if (uploads != moves.uploads_at.end()) RunUploads(uploads->second, /*merge=*/false);
  const auto copies = moves.copies_at.find(at);
  if (copies != moves.copies_at.end()) RunCopies(copies->second);
}

void StepGraph::LaunchRegion(const Region& region) {
  const analyzer::Program& program = execution_.program();
  for (size_t at = region.first; at < region.end; ++at) {
    const BoundLeaf& bound = bound_[at];
    if (program.leaves[bound.leaf].kind != LeafKind::kKernel) continue;
    if (execution_.lowered().IsSubstituted(bound.leaf)) continue;
    execution_.Launch(bound, workspace_);
    for (size_t w = 0; w < bound.writes.size(); ++w) {
      const auto shadow = plan().shadows.find({at, static_cast<int>(w)});
      if (shadow == plan().shadows.end()) continue;
      const storage::Layout& layout = *program.uses[bound.leaf].writes[w].layout;
      execution_.device().Copy(shadow->second, bound.writes[w],
                               layout.EndByte() - layout.FirstByte());
    }
  }
}

void StepGraph::WarmUpAndCapture(size_t match) {
  const Device& device = execution_.device();
  const analyzer::StepMatch& values = plan().step_class->matches[match];
  SaveState();
  RunUploads(plan().constants, /*merge=*/true);
  Begin(match);
  for (const Region& region : plan().regions) {
    MoveAt(plan().moves[match], region.first);
    for (size_t at = region.first; at < region.end; ++at) {
      if (execution_.lowered().IsSubstituted(bound_[at].leaf)) {
        execution_.PutResults(bound_[at], values.leaves[at]);
      }
    }
    LaunchRegion(region);
  }
  RestoreState();
  device.Synchronize();

  workspace_.Freeze(true);
  const int64_t begin = NowNs();
  for (size_t r = 0; r < plan().regions.size(); ++r) {
    const Region& region = plan().regions[r];
    int64_t tasks = 0;
    for (size_t at = region.first; at < region.end; ++at) {
      tasks += static_cast<int64_t>(bound_[at].calls.size());
    }
    region_tasks_[r] = tasks;
    if (!region.captured || tasks == 0) continue;
    device.Check(
        device.api().aclmdlRICaptureBegin(device.stream(), ACL_MODEL_RI_CAPTURE_MODE_GLOBAL),
        "aclmdlRICaptureBegin");
    aclmdlRI graph = nullptr;
    try {
      LaunchRegion(region);
    } catch (...) {
      device.api().aclmdlRICaptureEnd(device.stream(), &graph);
      if (graph != nullptr) device.api().aclmdlRIDestroy(graph);
      throw;
    }
    device.Check(device.api().aclmdlRICaptureEnd(device.stream(), &graph), "aclmdlRICaptureEnd");
    graphs_[r] = graph;
  }
  capture_ns_ = NowNs() - begin;
}

void StepGraph::Execute(size_t match, Verifier* verifier, WaitClock* clock) {
  const Device& device = execution_.device();
  const StepMoves& moves = plan().moves[match];
  const bool moves_inside = !moves.uploads_at.empty() || !moves.copies_at.empty();
  Begin(match);
  for (size_t r = 0; r < plan().regions.size(); ++r) {
    const Region& region = plan().regions[r];
    if (moves_inside) MoveAt(moves, region.first);
    if (!region.captured) {
      RunBarrier(match, region.first, verifier, clock);
    } else if (graphs_[r] != nullptr) {
      device.Check(device.api().aclmdlRIExecuteAsync(graphs_[r], device.stream()),
                   "aclmdlRIExecuteAsync");
    }
  }
  if (moves_inside) MoveAt(moves, bound_.size());
  if (verifier != nullptr) TakeResults(match, *verifier);
  RunCopies(moves.copies_out);
}

void StepGraph::RunBarrier(size_t match, size_t at, Verifier* verifier, WaitClock* clock) {
  const BoundLeaf& bound = bound_[at];
  const int64_t data_leaf = plan().step_class->matches[match].leaves[at];
  if (execution_.program().leaves[bound.leaf].kind == LeafKind::kHostRead) {
    ReadHost(match, at, verifier, clock);
  } else if (execution_.lowered().IsSubstituted(bound.leaf)) {
    execution_.PutResults(bound, data_leaf);
  } else {
    LaunchRegion({at, at + 1, false, ""});
  }
}

void StepGraph::ReadHost(size_t match, size_t at, Verifier* verifier, WaitClock* clock) {
  const BoundLeaf& bound = bound_[at];
  if (bound.reads.empty()) return;
  if (verifier != nullptr) {
    verifier->TakeHostRead(plan().step_class->matches[match].leaves[at], bound.reads[0]);
    return;
  }
  const int64_t begin = NowNs();
  const Device& device = execution_.device();
  const storage::Layout& layout = *execution_.program().uses[bound.leaf].reads[0].layout;
  device.Download(host_value_.data(), bound.reads[0], storage::DTypeBytes(layout.dtype));
  device.Synchronize();
  if (clock != nullptr) clock->waited_ns += NowNs() - begin;
}

void StepGraph::TakeResults(size_t match, Verifier& verifier) {
  const analyzer::Program& program = execution_.program();
  const analyzer::StepMatch& values = plan().step_class->matches[match];
  for (size_t at = 0; at < bound_.size(); ++at) {
    const BoundLeaf& bound = bound_[at];
    if (program.leaves[bound.leaf].kind != LeafKind::kKernel ||
        execution_.lowered().IsSubstituted(bound.leaf)) {
      continue;
    }
    for (size_t w = 0; w < bound.writes.size(); ++w) {
      if (!verifier.Wants(values.leaves[at], static_cast<int>(w))) continue;
      const auto shadow = plan().shadows.find({at, static_cast<int>(w)});
      verifier.Take(values.leaves[at], static_cast<int>(w),
                    shadow == plan().shadows.end() ? bound.writes[w] : shadow->second);
    }
  }
}

int64_t StepGraph::graph_count() const {
  int64_t count = 0;
  for (const aclmdlRI graph : graphs_) count += graph != nullptr ? 1 : 0;
  return count;
}

void StepGraph::Describe(CaptureReport& report) const {
  const analyzer::Program& program = execution_.program();
  report.template_step = program.steps[plan().step_class->step].step;
  report.capture_ns = capture_ns_;
  for (const analyzer::Operand& operand : plan().step_class->operands) {
    report.moving_inputs += operand.moving ? 1 : 0;
  }
  for (size_t r = 0; r < plan().regions.size(); ++r) {
    const Region& region = plan().regions[r];
    RegionReport row;
    row.first_call = program.leaves[bound_[region.first].leaf].call.call_id;
    row.last_call = program.leaves[bound_[region.end - 1].leaf].call.call_id;
    row.captured = graphs_[r] != nullptr;
    row.leaves = static_cast<int64_t>(region.end - region.first);
    row.tasks = region_tasks_[r];
    row.reason = region.captured && !row.captured ? "nothing to launch" : region.reason;
    report.regions.push_back(row);
  }
  // The last step stands for the others: the first may bring values that later steps keep.
  const StepMoves& moves = plan().moves.back();
  const uint8_t* expected = nullptr;
  const auto count = [&](size_t bytes) {
    ++report.copies_per_step;
    report.copy_bytes_per_step += static_cast<int64_t>(bytes);
  };
  for (const StepUpload& upload : moves.uploads) {
    if (upload.address == expected && !upload.strided) {
      --report.copies_per_step;  // joins the copy before it
    }
    count(upload.bytes);
    expected = upload.address + AlignUp(static_cast<int64_t>(upload.bytes));
  }
  for (const auto& [at, uploads] : moves.uploads_at) {
    for (const StepUpload& upload : uploads) count(upload.bytes);
  }
  for (const DeviceCopy& copy : moves.copies_in) count(copy.bytes);
  for (const auto& [at, copies] : moves.copies_at) {
    for (const DeviceCopy& copy : copies) count(copy.bytes);
  }
  for (const DeviceCopy& copy : moves.copies_out) count(copy.bytes);
}

}  // namespace acltape::replayer
