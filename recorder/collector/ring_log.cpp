#include "recorder/collector/ring_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "recorder/collector/argument_decoder.h"
#include "recorder/wire/rank_variables.h"
#include "recorder/wire/step_name.h"
#include "storage/payload.h"

namespace acltape::collector {
namespace {

using storage::Severity;
using wire::RecordKind;

constexpr size_t kBatchBytes = 64 << 10;
constexpr uint32_t kMaxOps = 1 << 20;
constexpr size_t kMaxDepth = 1 << 16;

storage::Phase PhaseOf(wire::Phase phase) {
  const auto code = static_cast<uint8_t>(phase);
  return code <= 2 ? static_cast<storage::Phase>(code) : storage::Phase::kForward;
}

}  // namespace

RingLog::RingLog(TraceBuilder& trace, uint32_t number, const LogOrigin& origin)
    : trace_(trace),
      number_(number),
      thread_id_(trace.AddThread(origin)),
      stacks_(trace.writer(), trace.addresses()) {}

void RingLog::Break(const char* cause) {
  broken_ = true;
  trace_.Note(Severity::kDataLoss, "malformed_record", fmt::format("thread {}", thread_id_), cause,
              "the rest of this thread is lost; check that agent and acltape are of one version");
}

size_t RingLog::Consume(std::span<const std::byte> bytes) {
  size_t taken = 0;
  while (!broken_ && taken < bytes.size() && taken < kBatchBytes) {
    const RecordBytes record = FirstRecord(bytes.subspan(taken));
    if (record.empty()) {
      Break("a record's length is impossible");
    } else if (!Take(record)) {
      Break("a record's content is impossible");
    } else {
      taken += record.size();
    }
  }
  bytes_ += static_cast<int64_t>(taken);
  if (first_ns_ == 0) first_ns_ = last_ns_;
  return broken_ ? bytes.size() : taken;
}

storage::ThreadCost RingLog::Cost() const {
  storage::ThreadCost cost;
  cost.thread_id = thread_id_;
  cost.input_bytes = input_bytes_;
  cost.output_bytes = output_bytes_ + content_bytes_;
  cost.lived_ns = std::max<int64_t>(0, last_ns_ - first_ns_);
  cost.record_bytes = bytes_ - cost.input_bytes - cost.output_bytes;
  return cost;
}

bool RingLog::Take(RecordBytes record) {
  wire::RecordHeader header;
  std::memcpy(&header, record.data(), sizeof(header));
  switch (header.kind) {
    case RecordKind::kCall:
      return TakeCall(record);
    case RecordKind::kBufferBirth:
      return TakeBirth(record);
    case RecordKind::kBufferDeath:
      return TakeDeath(record);
    case RecordKind::kPad:
      return true;
    case RecordKind::kOp:
      return TakeOp(record);
    case RecordKind::kFrameBegin:
      return TakeFrameBegin(record);
    case RecordKind::kFrameEnd:
      return TakeFrameEnd(record);
    case RecordKind::kScopeBegin:
      return TakeScopeBegin(record);
    case RecordKind::kScopeEnd:
      return TakeScopeEnd(record);
    case RecordKind::kData:
      return TakeData(record);
    case RecordKind::kSnapshot:
      return TakeSnapshot(record);
    case RecordKind::kMeta:
      return TakeMeta(record);
    case RecordKind::kLedger:
      return TakeLedger(record);
    case RecordKind::kThreadName:
      return TakeThreadName(record);
    case RecordKind::kAclCall:
      return TakeAclCall(record);
    case RecordKind::kHandle:
      return TakeHandle(record);
    case RecordKind::kPlace:
      return TakePlace(record);
    case RecordKind::kWindow:
      return TakeWindow(record);
    case RecordKind::kDeviceSpan:
      return TakeDeviceSpan(record);
    case RecordKind::kFailureText:
      return TakeFailureText(record);
    case RecordKind::kCommunicator:
      return TakeCommunicator(record);
  }
  trace_.Note(Severity::kNotice, "unknown_record",
              fmt::format("kind {}", static_cast<int>(header.kind)),
              "the agent wrote a kind of record that this collector does not know",
              "use agent and acltape of one version");
  return true;
}

bool RingLog::TakeOp(RecordBytes record) {
  wire::OpRecord op;
  std::span<const std::byte> rest;
  std::string_view texts[3];
  if (!SplitRecord(record, &op, &rest) || !SplitTexts(rest, texts, 3)) return false;
  if (op.op_index > ops_.size() + 4096 || op.op_index >= kMaxOps) return false;
  if (op.op_index >= ops_.size()) ops_.resize(op.op_index + 1);
  ops_[op.op_index] = trace_.AddOp(op.dialect, texts[0], texts[1], texts[2]);
  return true;
}

bool RingLog::TakeBirth(RecordBytes record) {
  wire::BufferBirthRecord birth;
  std::span<const std::byte> rest;
  if (!SplitRecord(record, &birth, &rest) || !trace_.IsBufferId(birth.buffer_id)) return false;
  if ((birth.flags & wire::kBufferStretched) != 0) {
    trace_.buffers().Stretched(static_cast<int64_t>(birth.buffer_id),
                               static_cast<int64_t>(birth.bytes));
    return true;
  }
  storage::Buffer buffer;
  buffer.buffer_id = static_cast<int64_t>(birth.buffer_id);
  buffer.address = static_cast<int64_t>(birth.address);
  buffer.bytes = static_cast<int64_t>(birth.bytes);
  buffer.alloc_call = static_cast<int64_t>(birth.call_id);
  buffer.foreign = (birth.flags & wire::kBufferForeign) != 0;
  buffer.device = static_cast<int>(birth.device & 0xffff);
  if ((birth.flags & wire::kBufferBlock) != 0) buffer.layer = storage::BufferLayer::kBlock;
  if ((birth.flags & wire::kBufferTensor) != 0) buffer.layer = storage::BufferLayer::kTensor;
  if (trace_.IsBufferId(birth.block_id)) buffer.block_id = static_cast<int64_t>(birth.block_id);
  buffer.alloc_ns = last_ns_ = trace_.ToNs(birth.tick);
  trace_.buffers().Born(buffer);
  return true;
}

bool RingLog::TakeDeath(RecordBytes record) {
  wire::BufferDeathRecord death;
  std::span<const std::byte> rest;
  if (!SplitRecord(record, &death, &rest) || !trace_.IsBufferId(death.buffer_id)) return false;
  last_ns_ = trace_.ToNs(death.tick);
  trace_.buffers().Died(static_cast<int64_t>(death.buffer_id), static_cast<int64_t>(death.call_id),
                        last_ns_);
  return true;
}

bool RingLog::TakeCall(RecordBytes record) {
  wire::CallRecord call;
  std::span<const std::byte> rest;
  if (!SplitRecord(record, &call, &rest)) return false;
  const size_t slot_bytes = size_t{8} * call.slot_count;
  if (rest.size() < slot_bytes + call.signature_bytes) return false;
  if (call.op_index >= ops_.size() || ops_[call.op_index].op_id == 0) return false;
  if (!trace_.IsCallId(call.call_id)) return false;
  const KnownOp& op = ops_[call.op_index];
  const int64_t signature_id =
      trace_.Signature(op, rest.first(call.signature_bytes), call.slot_count);
  if (signature_id == 0) return false;
  call_.call_id = static_cast<int64_t>(call.call_id);
  call_.parent_id = static_cast<int64_t>(call.parent_id);
  call_.op_id = op.op_id;
  call_.signature_id = signature_id;
  call_.thread_id = thread_id_;
  call_.begin_ns = trace_.ToNs(call.begin_tick);
  call_.end_ns = last_ns_ = trace_.ToNs(call.end_tick);
  call_.status = call.status;
  call_.phase = PhaseOf(call.phase);
  call_.leaf = op.is_operator;
  call_.device = storage::Call::kDeviceNotKnown;
  if (call_.leaf && call.header.flags != meaning::kPlaceNotKnown) {
    call_.device = call.header.flags - meaning::kPlaceHost;
  }
  call_.buffers.resize(call.slot_count);
  if (slot_bytes != 0) {
    std::memcpy(call_.buffers.data(), rest.data() + call.signature_bytes, slot_bytes);
  }
  if (call.place_id != 0) stacks_.Use(call.place_id);
  trace_.AddCall(call_, scopes_.empty() ? 0 : ScopeOf(call_.call_id), call.place_id);
  if (window_ != nullptr) window_->Add(call_.call_id, last_ns_);
  ++call_records_;
  return true;
}

bool RingLog::TakeAclCall(RecordBytes record) {
  wire::AclCallRecord row;
  std::span<const std::byte> rest;
  if (!SplitRecord(record, &row, &rest)) return false;
  const size_t slot_bytes = size_t{8} * row.slot_count;
  if (rest.size() < slot_bytes + row.signature_bytes) return false;
  if (row.op_index >= ops_.size() || ops_[row.op_index].op_id == 0) return false;
  if (!trace_.IsCallId(row.call_id)) return false;
  const KnownOp& op = ops_[row.op_index];
  storage::Call call;
  call.signature_id = trace_.Signature(op, rest.first(row.signature_bytes), row.slot_count);
  if (call.signature_id == 0) return false;
  call.call_id = static_cast<int64_t>(row.call_id);
  call.parent_id = static_cast<int64_t>(row.parent_id);
  call.op_id = op.op_id;
  call.thread_id = thread_id_;
  call.begin_ns = trace_.ToNs(row.begin_tick);
  call.end_ns = last_ns_ = trace_.ToNs(row.end_tick);
  call.status = row.status;
  call.phase = PhaseOf(row.phase);
  call.leaf = op.is_operator;
  call.stream_id = row.stream_id;
  call.model_id = row.model_id;
  // A phase that was there is never told as 0, which stands for none.
  if (row.prepare_ticks != 0) {
    const int64_t length =
        trace_.ToNs(row.begin_tick) - trace_.ToNs(row.begin_tick - row.prepare_ticks);
    call.prepare_ns = std::max<int64_t>(1, length);
  }
  if (row.launched != 0) call.launch_ns = std::max<int64_t>(1, call.end_ns - call.begin_ns);
  call.buffers.resize(row.slot_count);
  if (slot_bytes != 0) {
    std::memcpy(call.buffers.data(), rest.data() + row.signature_bytes, slot_bytes);
  }
  if (row.place_id != 0) stacks_.Use(row.place_id);
  trace_.AddCall(call, scopes_.empty() ? 0 : ScopeOf(call.call_id), row.place_id);
  if (window_ != nullptr) window_->Add(call.call_id, last_ns_);
  if (row.lasting != 0) trace_.KeepAlways(call.call_id);
  ++call_records_;
  return true;
}

bool RingLog::TakePlace(RecordBytes record) {
  wire::PlaceRecord place;
  std::span<const std::byte> rest;
  std::string_view texts[2];
  if (!SplitRecord(record, &place, &rest) || !SplitTexts(rest, texts, 2)) return false;
  return stacks_.Take(place, texts[0], texts[1]);
}

bool RingLog::TakeWindow(RecordBytes record) {
  wire::WindowRecord row;
  std::span<const std::byte> rest;
  if (!SplitRecord(record, &row, &rest) || !trace_.IsNextCallId(row.next_call_id)) return false;
  last_ns_ = trace_.ToNs(row.tick);
  window_ = &trace_.windows().Enter(trace_.ProcessOf(thread_id_), row.window,
                                    static_cast<int64_t>(row.next_call_id), last_ns_);
  return true;
}

bool RingLog::TakeDeviceSpan(RecordBytes record) {
  wire::DeviceSpanRecord span;
  std::span<const std::byte> rest;
  if (!SplitRecord(record, &span, &rest) || !trace_.IsCallId(span.call_id)) return false;
  constexpr int64_t kMostNs = int64_t{4000000000000000000};  // as times from ticks
  if (span.begin_ns < -kMostNs || span.begin_ns > kMostNs) return false;
  if (span.duration_ns > static_cast<uint64_t>(kMostNs)) return false;
  trace_.writer().AddDeviceSpan({static_cast<int64_t>(span.call_id), span.stream_id, span.begin_ns,
                                 span.begin_ns + static_cast<int64_t>(span.duration_ns),
                                 span.error_ns});
  return true;
}

bool RingLog::TakeFailureText(RecordBytes record) {
  wire::FailureTextRecord failure;
  std::span<const std::byte> rest;
  std::string_view text;
  if (!SplitRecord(record, &failure, &rest) || !SplitTexts(rest, &text, 1)) return false;
  if (!trace_.IsCallId(failure.call_id)) return false;
  trace_.writer().AddFailureText(static_cast<int64_t>(failure.call_id), std::string(text));
  return true;
}

bool RingLog::TakeCommunicator(RecordBytes record) {
  wire::CommunicatorRecord row;
  std::span<const std::byte> rest;
  std::string_view name;
  if (!SplitRecord(record, &row, &rest) || !SplitTexts(rest, &name, 1)) return false;
  if (row.communicator_id == 0) return false;
  storage::Communicator communicator;
  communicator.id = static_cast<int64_t>(row.communicator_id);
  communicator.process_id = trace_.ProcessOf(thread_id_);
  communicator.handle = static_cast<int64_t>(row.address);
  communicator.name = name;
  communicator.rank = row.rank;
  communicator.ranks = row.ranks;
  trace_.writer().AddCommunicator(communicator);
  return true;
}

bool RingLog::TakeHandle(RecordBytes record) {
  wire::HandleRecord row;
  std::span<const std::byte> rest;
  if (!SplitRecord(record, &row, &rest) || row.handle_id == 0) return false;
  if (static_cast<uint8_t>(row.kind) > 2 || static_cast<uint8_t>(row.moment) > 2) return false;
  trace_.handles().Take(row, trace_.ProcessOf(thread_id_));
  return true;
}

bool RingLog::TakeFrameBegin(RecordBytes record) {
  wire::FrameBeginRecord begin;
  std::span<const std::byte> rest;
  if (!SplitRecord(record, &begin, &rest)) return false;
  if (begin.op_index >= ops_.size() || ops_[begin.op_index].op_id == 0) return false;
  if (!trace_.IsCallId(begin.call_id) || frames_.size() >= kMaxDepth) return false;
  const KnownOp& op = ops_[begin.op_index];
  OpenFrame frame;
  frame.call.call_id = static_cast<int64_t>(begin.call_id);
  frame.call.parent_id = static_cast<int64_t>(begin.parent_id);
  frame.call.op_id = op.op_id;
  frame.call.signature_id = trace_.Signature(op, {}, 0);
  frame.call.thread_id = thread_id_;
  frame.call.begin_ns = trace_.ToNs(begin.tick);
  frame.call.phase = PhaseOf(begin.phase);
  frame.forward_call = static_cast<int64_t>(begin.forward_call);
  frame.scope_id = ScopeOf(frame.call.call_id);
  frames_.push_back(std::move(frame));
  return true;
}

void RingLog::CloseFrame(OpenFrame& frame, int64_t end_ns, int32_t status) {
  frame.call.end_ns = std::max(end_ns, frame.call.begin_ns);
  frame.call.status = status;
  trace_.AddCall(frame.call, frame.scope_id, 0, frame.forward_call);
}

bool RingLog::TakeFrameEnd(RecordBytes record) {
  wire::FrameEndRecord end;
  std::span<const std::byte> rest;
  if (!SplitRecord(record, &end, &rest)) return false;
  last_ns_ = trace_.ToNs(end.tick);
  const auto id = static_cast<int64_t>(end.call_id);
  const auto found = std::find_if(frames_.rbegin(), frames_.rend(), [id](const OpenFrame& frame) {
    return frame.call.call_id == id;
  });
  if (found == frames_.rend()) {
    trace_.Note(Severity::kInfo, "frame_end_alone", "enclosing calls",
                "an enclosing call ended whose start was not recorded on its thread",
                "none needed");
    return true;
  }
  // Frames inside that did not end themselves end here.
  const size_t keep = static_cast<size_t>(frames_.rend() - found) - 1;
  while (frames_.size() > keep) {
    CloseFrame(frames_.back(), last_ns_, frames_.size() == keep + 1 ? 0 : -1);
    frames_.pop_back();
  }
  return true;
}

// The innermost open range that began before this call; a frame is recorded late, when its first
// leaf runs, and ranges may have begun in between.
int64_t RingLog::ScopeOf(int64_t call_id) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (scope->first_call <= call_id) return scope->scope_id;
  }
  return 0;
}

bool RingLog::TakeScopeBegin(RecordBytes record) {
  wire::ScopeBeginRecord begin;
  std::span<const std::byte> rest;
  std::string_view name;
  if (!SplitRecord(record, &begin, &rest) || !SplitTexts(rest, &name, 1)) return false;
  if (scopes_.size() >= kMaxDepth || !trace_.IsNextCallId(begin.next_call_id)) return false;
  last_ns_ = trace_.ToNs(begin.tick);
  const bool user = begin.kind == wire::ScopeKind::kUser;
  OpenScope scope;
  scope.scope_id = trace_.writer().InternScope(scopes_.empty() ? 0 : scopes_.back().scope_id,
                                               user ? "user" : "module", std::string(name));
  scope.first_call = static_cast<int64_t>(begin.next_call_id);
  scope.begin_ns = last_ns_;
  // If ranges of the step's name lie inside each other, the outermost is the step.
  if (user && !in_step_ && trace_.IsStepName(name)) {
    scope.step_name = name;
    in_step_ = true;
  }
  scope.is_optimizer = name.starts_with(wire::kOptimizerStep);
  optimizer_depth_ += scope.is_optimizer ? 1 : 0;
  scopes_.push_back(std::move(scope));
  return true;
}

void RingLog::CloseScope(const OpenScope& scope, int64_t next_call, int64_t end_ns) {
  trace_.writer().AddScopeRange(scope.scope_id, thread_id_, scope.first_call, next_call - 1,
                                scope.begin_ns, std::max(end_ns, scope.begin_ns));
  if (scope.is_optimizer && --optimizer_depth_ == 0 && window_ != nullptr) {
    trace_.AddTurn(*window_, next_call);
  }
  if (scope.step_name.empty()) return;
  trace_.AddStep(scope.first_call, next_call - 1, scope.step_name);
  in_step_ = false;
}

bool RingLog::TakeScopeEnd(RecordBytes record) {
  wire::ScopeEndRecord end;
  std::span<const std::byte> rest;
  if (!SplitRecord(record, &end, &rest) || !trace_.IsNextCallId(end.next_call_id)) return false;
  last_ns_ = trace_.ToNs(end.tick);
  if (scopes_.empty()) {
    trace_.Note(Severity::kInfo, "range_end_alone", "ranges",
                "a range ended whose start was not recorded on its thread", "none needed");
    return true;
  }
  CloseScope(scopes_.back(), static_cast<int64_t>(end.next_call_id), last_ns_);
  scopes_.pop_back();
  return true;
}

void RingLog::DropIncomingPayload() {
  if (!payload_.active) return;
  payload_.active = false;
  payload_.bytes.clear();
  trace_.Note(Severity::kDataLoss, "payload_incomplete", "payloads",
              "a content was announced and not sent to its end",
              "record again; a program that is killed loses what it was sending");
}

bool RingLog::TakeData(RecordBytes record) {
  wire::DataRecord data;
  std::span<const std::byte> rest;
  if (!SplitRecord(record, &data, &rest) || rest.size() < data.piece_bytes) return false;
  if (data.offset > data.total_bytes || data.piece_bytes > data.total_bytes - data.offset) {
    return false;
  }
  const std::span<const std::byte> piece = rest.first(data.piece_bytes);
  content_bytes_ += static_cast<int64_t>(piece.size());
  trace_.NoteContent(last_ns_);
  const auto keep = [this](const std::string& digest, std::span<const std::byte> bytes) {
    if (trace_.AddPayload(digest, bytes.data(), bytes.size(), last_ns_)) return;
    trace_.Note(Severity::kDataLoss, "payload_damaged", "payloads",
                "a content does not match its digest: it changed while it was recorded",
                "keep other threads from writing tensors that an operator reads");
  };
  if (data.offset == 0) {
    DropIncomingPayload();
    payload_.digest = storage::DigestText(data.digest_high, data.digest_low);
    if (piece.size() == data.total_bytes) {
      keep(payload_.digest, piece);
      return true;
    }
    payload_.active = true;
    payload_.total = data.total_bytes;
    // Grows with what arrives, not with what is announced.
    payload_.bytes.reserve(std::min<uint64_t>(data.total_bytes, uint64_t{64} << 20));
  } else if (!payload_.active || data.offset != payload_.bytes.size() ||
             data.total_bytes != payload_.total) {
    DropIncomingPayload();
    return true;
  }
  payload_.bytes.insert(payload_.bytes.end(), piece.begin(), piece.end());
  if (payload_.bytes.size() == payload_.total) {
    payload_.active = false;
    keep(payload_.digest, payload_.bytes);
    payload_.bytes = {};
  }
  return true;
}

bool RingLog::TakeSnapshot(RecordBytes record) {
  wire::SnapshotRecord row;
  std::span<const std::byte> rest;
  if (!SplitRecord(record, &row, &rest) || rest.size() < row.layout_bytes) return false;
  std::vector<DecodedArgument> tensor;
  if (!DecodeArguments(rest.first(row.layout_bytes), 1, &tensor) || tensor.size() != 1 ||
      tensor[0].layouts.size() != 1) {
    return false;
  }
  storage::Snapshot snapshot;
  snapshot.call_id = static_cast<int64_t>(row.call_id);
  snapshot.position = row.position;
  snapshot.after = row.moment != 0;
  // Contents come before the snapshot that names them.
  (snapshot.after ? output_bytes_ : input_bytes_) += std::exchange(content_bytes_, 0);
  snapshot.tensor = {static_cast<int64_t>(row.buffer_id),
                     trace_.writer().InternLayout(tensor[0].layouts[0])};
  snapshot.digest = storage::DigestText(row.digest_high, row.digest_low);
  snapshot.bytes = static_cast<int64_t>(row.bytes);
  snapshot.packing = row.packing;
  snapshot.changed = (row.flags & wire::kSnapshotChanged) != 0;
  if ((row.flags & wire::kSnapshotPayload) != 0) trace_.Promise(snapshot.digest);
  std::optional<storage::Statistics> statistics;
  if ((row.flags & wire::kSnapshotStatistics) != 0) {
    statistics = {row.min,
                  row.max,
                  row.mean,
                  row.l2,
                  static_cast<int64_t>(row.nan_count),
                  static_cast<int64_t>(row.inf_count)};
  }
  trace_.writer().AddSnapshot(snapshot, statistics);
  return true;
}

bool RingLog::TakeMeta(RecordBytes record) {
  wire::TextRecord fixed;
  std::span<const std::byte> rest;
  std::string_view texts[2];
  if (!SplitRecord(record, &fixed, &rest) || !SplitTexts(rest, texts, 2)) return false;
  if (texts[0] == wire::kRankKey) {
    trace_.SetRank(thread_id_, std::string(texts[1]));
  } else {
    trace_.AddMeta(std::string(texts[0]), std::string(texts[1]));
  }
  return true;
}

bool RingLog::TakeLedger(RecordBytes record) {
  wire::LedgerRecord fixed;
  std::span<const std::byte> rest;
  std::string_view texts[4];
  if (!SplitRecord(record, &fixed, &rest) || !SplitTexts(rest, texts, 4)) return false;
  trace_.Note(static_cast<Severity>(std::min<uint32_t>(fixed.severity, 3)), std::string(texts[0]),
              std::string(texts[1]), std::string(texts[2]), std::string(texts[3]),
              static_cast<int64_t>(fixed.count));
  return true;
}

bool RingLog::TakeThreadName(RecordBytes record) {
  wire::TextRecord fixed;
  std::span<const std::byte> rest;
  std::string_view name;
  if (!SplitRecord(record, &fixed, &rest) || !SplitTexts(rest, &name, 1)) return false;
  trace_.NameThread(thread_id_, std::string(name));
  return true;
}

void RingLog::Finish(uint64_t expected_calls) {
  if (!frames_.empty()) {
    trace_.Note(Severity::kNotice, "unfinished_call", "enclosing calls",
                "enclosing calls were open when their thread ended; their status is -1 and their "
                "end is that of the last record",
                "let the program end by itself", static_cast<int64_t>(frames_.size()));
  }
  while (!frames_.empty()) {
    CloseFrame(frames_.back(), last_ns_, -1);
    frames_.pop_back();
  }
  while (!scopes_.empty()) {
    CloseScope(scopes_.back(), trace_.last_call() + 1, last_ns_);
    scopes_.pop_back();
  }
  DropIncomingPayload();
  if (call_records_ < expected_calls) {
    trace_.Note(Severity::kDataLoss, "calls_missing", fmt::format("thread {}", thread_id_),
                "the thread finished more calls than its records tell", "record again",
                static_cast<int64_t>(expected_calls - call_records_));
  }
}

}  // namespace acltape::collector
