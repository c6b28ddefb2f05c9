#include "replayer/step_graph.h"

#include <cstring>

#include "replayer/memory_plan.h"

namespace acltape::replayer {

using analyzer::LeafKind;
using Treatment = VaryingLeaf::Treatment;

StepGraph::StepGraph(Execution& execution, const HomeMemory& homes,
                     const analyzer::StepTemplate& step_class, const StepGraphOptions& options)
    : execution_(execution),
      planner_(execution, homes, step_class, options),
      mode_(CaptureModeOf(options.plan)),
      isolate_regions_(options.isolate_regions),
      streams_{execution.device().stream()},
      stream_of_(step_class.leaves.size(), 0),
      graphs_(plan().regions.size()),
      region_tasks_(plan().regions.size(), 0),
      host_value_(execution.device(), Block::Kind::kPinned, kDeviceAlignment) {
  Device& device = execution.device();
  int64_t state_bytes = 0;
  for (DeviceCopy& copy : planner_.plan().state) {
    state_bytes += AlignUp(static_cast<int64_t>(copy.bytes));
  }
  saved_state_ = Block(device, Block::Kind::kDevice, state_bytes);
  uint8_t* next = saved_state_.data();
  for (DeviceCopy& copy : planner_.plan().state) {
    copy.to = next;
    next += AlignUp(static_cast<int64_t>(copy.bytes));
  }
  size_t streams = 1;
  for (const IssuedRegion& region : plan().regions) {
    streams = std::max(streams, static_cast<size_t>(region.streams));
    for (const IssuedLeaf& leaf : region.leaves) stream_of_[leaf.at] = leaf.stream;
  }
  while (streams_.size() < streams) {
    streams_.push_back(device.SideStream(streams_.size() - 1));
    temporaries_.emplace_back(device, Block::Kind::kDevice,
                              std::max(execution.lowered().temporary_bytes, kDeviceAlignment));
  }
  for (size_t s = 0; s < streams; ++s) workspaces_.emplace_back(device);
  const auto place = [this](int64_t buffer_id, const storage::Layout& layout) {
    return planner_.Place(buffer_id, layout);
  };
  for (size_t at = 0; at < step_class.leaves.size(); ++at) {
    bound_.push_back(execution.Bind(step_class.leaves[at], place, TemporariesOf(at)));
  }
  BindVarying();
}

uint8_t* StepGraph::TemporariesOf(size_t at) const {
  return stream_of_[at] == 0 ? nullptr : temporaries_[stream_of_[at] - 1].data();
}

void StepGraph::BindVarying() {
  bool updates = false;
  for (const VaryingLeaf& leaf : plan().varying) {
    Variants variants;
    variants.leaf = &leaf;
    for (const size_t m : leaf.match_of) {
      const analyzer::StepMatch& match = plan().step_class->matches[m];
      const auto place = [&](int64_t buffer_id, const storage::Layout& layout) {
        return planner_.Place(match, buffer_id, layout);
      };
      variants.bound.push_back(
          execution_.Bind(match.leaves[leaf.at], place, TemporariesOf(leaf.at)));
    }
    variants_.emplace(leaf.at, std::move(variants));
    updates = updates || leaf.treatment == Treatment::kUpdate;
  }
  if (!updates) return;
  update_stream_ = execution_.device().SideStream(streams_.size() - 1);
  executed_ = std::make_unique<Event>(execution_.device());
  updated_ = std::make_unique<Event>(execution_.device());
}

StepGraph::~StepGraph() {
  const acl::Api& api = execution_.device().api();
  if (update_stream_ != nullptr) api.aclrtSynchronizeStream(update_stream_);
  api.aclrtSynchronizeStream(execution_.device().stream());
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

// Uploads to places one behind the other become one copy.
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
    const auto next_place = [](const StepUpload& upload) {
      const auto bytes = static_cast<int64_t>(upload.bytes);
      return upload.address + (upload.padded ? AlignUp(bytes) : bytes);
    };
    while (merge && end < uploads.size() && !uploads[end].strided &&
           uploads[end].address == next_place(uploads[end - 1])) {
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
  if (moves.uploads_at.empty() && moves.copies_at.empty()) return;
  const auto uploads = moves.uploads_at.find(at);
  if (uploads != moves.uploads_at.end()) RunUploads(uploads->second, /*merge=*/false);
  const auto copies = moves.copies_at.find(at);
  if (copies != moves.copies_at.end()) RunCopies(copies->second);
}

// The leaf with the values of the step, if its arguments vary.
const BoundLeaf& StepGraph::BoundFor(size_t match, size_t at) const {
  const auto found = variants_.find(at);
  if (found == variants_.end()) return bound_[at];
  return found->second.bound[found->second.leaf->value_of[match]];
}

void StepGraph::LaunchLeaf(const BoundLeaf& bound, size_t at, aclrtStream stream) {
  execution_.Launch(bound, workspaces_[stream_of_[at]], stream);
}

// Results that the step overwrites later are kept before anything else can follow.
void StepGraph::KeepResults(size_t at, aclrtStream stream) {
  const BoundLeaf& bound = bound_[at];
  for (size_t w = 0; w < bound.writes.size(); ++w) {
    const auto shadow = plan().shadows.find({at, static_cast<int>(w)});
    if (shadow == plan().shadows.end()) continue;
    const storage::Layout& layout = *execution_.program().uses[bound.leaf].writes[w].layout;
    execution_.device().Copy(shadow->second, bound.writes[w], layout.EndByte() - layout.FirstByte(),
                             stream);
  }
}

bool StepGraph::IsLaunched(size_t at) const {
  return execution_.program().leaves[bound_[at].leaf].kind == LeafKind::kKernel &&
         !execution_.lowered().IsSubstituted(bound_[at].leaf);
}

void StepGraph::IssueRegion(const IssuedRegion& region) {
  const Device& device = execution_.device();
  const acl::Api& api = device.api();
  const auto streams = static_cast<size_t>(region.streams);
  // The events of the plan come first, then the fork, then a join for each side stream.
  const size_t fork = static_cast<size_t>(region.events);
  while (events_.size() < fork + streams) events_.emplace_back(execution_.device());
  if (streams > 1) events_[fork].Record(streams_[0]);
  for (size_t s = 1; s < streams; ++s) events_[fork].HoldBack(streams_[s]);
  for (const IssuedLeaf& leaf : region.leaves) {
    const aclrtStream stream = streams_[leaf.stream];
    for (const int event : leaf.wait_for) events_[event].HoldBack(stream);
    if (IsLaunched(leaf.at)) {
      const auto variants = variants_.find(leaf.at);
      const bool grouped =
          variants != variants_.end() && variants->second.leaf->treatment == Treatment::kUpdate;
      if (grouped) {
        device.Check(api.aclmdlRICaptureTaskGrpBegin(stream), "aclmdlRICaptureTaskGrpBegin");
      }
      LaunchLeaf(bound_[leaf.at], leaf.at, stream);
      if (grouped) {
        device.Check(api.aclmdlRICaptureTaskGrpEnd(stream, &variants->second.group),
                     "aclmdlRICaptureTaskGrpEnd");
      }
      KeepResults(leaf.at, stream);
    }
    for (const int event : leaf.record) events_[event].Record(stream);
  }
  for (size_t s = 1; s < streams; ++s) {
    events_[fork + s].Record(streams_[s]);
    events_[fork + s].HoldBack(streams_[0]);
  }
}

// Runs the step on one stream in program order, so that each leaf reserves its workspace.
void StepGraph::WarmUp(size_t match) {
  const analyzer::StepMatch& values = plan().step_class->matches[match];
  for (size_t at = 0; at < bound_.size(); ++at) {
    MoveAt(plan().moves[match], at);
    if (execution_.lowered().IsSubstituted(bound_[at].leaf)) {
      execution_.PutResults(bound_[at], values.leaves[at]);
    } else if (IsLaunched(at)) {
      LaunchLeaf(bound_[at], at, streams_[0]);
      KeepResults(at, streams_[0]);
    }
  }
}

void StepGraph::Capture(size_t r) {
  const Device& device = execution_.device();
  const IssuedRegion& region = plan().regions[r];
  int64_t tasks = 0;
  for (const IssuedLeaf& leaf : region.leaves) {
    tasks += static_cast<int64_t>(bound_[leaf.at].calls.size());
  }
  region_tasks_[r] = tasks;
  if (!region.captured || tasks == 0) return;
  graphs_[r] = CaptureWork(
      device, device.stream(), [&] { IssueRegion(region); }, mode_);
}

void StepGraph::WarmUpAndCapture(size_t match) {
  SaveState();
  RunUploads(plan().constants, /*merge=*/true);
  Begin(match);
  WarmUp(match);
  RestoreState();
  execution_.device().Synchronize();

  for (Workspace& workspace : workspaces_) workspace.Freeze(true);
  const int64_t begin = NowNs();
  for (size_t r = 0; r < plan().regions.size(); ++r) Capture(r);
  capture_ns_ = NowNs() - begin;
}

// Launches each call again that holds another value than that of the step, between the execution
// before and the next one.
void StepGraph::UpdateArguments(size_t match) {
  const Device& device = execution_.device();
  const acl::Api& api = device.api();
  bool any = false;
  for (auto& [at, variants] : variants_) {
    const int value = variants.leaf->value_of[match];
    if (variants.group == nullptr || variants.captured == value) continue;
    if (!any && has_executed_) executed_->HoldBack(update_stream_);
    any = true;
    device.Check(api.aclmdlRICaptureTaskUpdateBegin(update_stream_, variants.group),
                 "aclmdlRICaptureTaskUpdateBegin");
    LaunchLeaf(variants.bound[value], at, update_stream_);
    device.Check(api.aclmdlRICaptureTaskUpdateEnd(update_stream_), "aclmdlRICaptureTaskUpdateEnd");
    variants.captured = value;
    ++updates_;
  }
  if (!any) return;
  updated_->Record(update_stream_);
  updated_->HoldBack(device.stream());
}

void StepGraph::Execute(size_t match, Verifier* verifier, WaitClock* clock) {
  const Device& device = execution_.device();
  const StepMoves& moves = plan().moves[match];
  UpdateArguments(match);
  Begin(match);
  for (size_t r = 0; r < plan().regions.size(); ++r) {
    const IssuedRegion& region = plan().regions[r];
    if (!region.captured) {
      for (const IssuedLeaf& leaf : region.leaves) {
        MoveAt(moves, leaf.at);
        RunEagerly(match, leaf.at, verifier, clock);
      }
      continue;
    }
    MoveAt(moves, region.first);
    if (!graphs_[r]) continue;
    graphs_[r].Execute(device.stream());
    if (!isolate_regions_) continue;
    if (verifier != nullptr) TakeResults(match, region.first, region.end, *verifier);
    PutRecordedResults(match, region);
  }
  MoveAt(moves, bound_.size());
  if (executed_ != nullptr) executed_->Record();
  has_executed_ = true;
  if (verifier != nullptr && !isolate_regions_) TakeResults(match, 0, bound_.size(), *verifier);
  RunCopies(moves.copies_out);
}

void StepGraph::RunEagerly(size_t match, size_t at, Verifier* verifier, WaitClock* clock) {
  const LeafKind kind = execution_.program().leaves[bound_[at].leaf].kind;
  if (kind == LeafKind::kHostRead) {
    ReadHost(match, at, verifier, clock);
  } else if (execution_.lowered().IsSubstituted(bound_[at].leaf)) {
    execution_.PutResults(bound_[at], plan().step_class->matches[match].leaves[at]);
  } else if (kind == LeafKind::kKernel) {
    LaunchLeaf(BoundFor(match, at), at, execution_.device().stream());
    KeepResults(at, execution_.device().stream());
    if (!isolate_regions_) return;
    if (verifier != nullptr) TakeResults(match, at, at + 1, *verifier);
    execution_.PutResults(bound_[at], plan().step_class->matches[match].leaves[at]);
  }
}

// Copies in the order of issue. Where buffers share memory the last one stays, as it does after the
// region itself.
void StepGraph::PutRecordedResults(size_t match, const IssuedRegion& region) {
  for (const IssuedLeaf& leaf : region.leaves) {
    if (!IsLaunched(leaf.at)) continue;
    execution_.PutResults(bound_[leaf.at], plan().step_class->matches[match].leaves[leaf.at]);
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

void StepGraph::TakeResults(size_t match, size_t first, size_t end, Verifier& verifier) {
  const analyzer::Program& program = execution_.program();
  const analyzer::StepMatch& values = plan().step_class->matches[match];
  for (size_t at = first; at < end; ++at) {
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
  for (const CapturedGraph& graph : graphs_) count += graph ? 1 : 0;
  return count;
}

void StepGraph::Describe(CaptureReport& report) const {
  const analyzer::Program& program = execution_.program();
  report.template_step = program.steps[plan().step_class->step].step;
  report.capture_ns = capture_ns_;
  report.varying_leaves = static_cast<int64_t>(variants_.size());
  for (const auto& [at, variants] : variants_) {
    report.updated_leaves += variants.group != nullptr ? 1 : 0;
  }
  report.updates = updates_;
  for (const analyzer::Operand& operand : plan().step_class->operands) {
    report.moving_inputs += operand.moving ? 1 : 0;
  }
  for (size_t r = 0; r < plan().regions.size(); ++r) {
    const IssuedRegion& region = plan().regions[r];
    RegionReport row;
    row.first_call = program.leaves[bound_[region.first].leaf].call.call_id;
    row.last_call = program.leaves[bound_[region.end - 1].leaf].call.call_id;
    row.captured = static_cast<bool>(graphs_[r]);
    row.leaves = static_cast<int64_t>(region.end - region.first);
    row.tasks = region_tasks_[r];
    row.streams = region.streams;
    for (const IssuedLeaf& leaf : region.leaves) {
      row.waits += static_cast<int64_t>(leaf.wait_for.size());
    }
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
