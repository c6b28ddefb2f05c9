#include "recorder/collector/trace_builder.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <optional>

#include "meaning/dialects.h"
#include "recorder/collector/log_origin.h"
#include "storage/payload.h"

namespace acltape::collector {
namespace {

// Meta keys that only the collector writes.
constexpr std::string_view kOwnKeys[] = {
    "schema_version", "state",  "base_ns",         "command",
    "exit_code",      "signal", "acltape_version", storage::kRecordingCostKey};

}  // namespace

TraceBuilder::TraceBuilder(storage::Writer& writer, const wire::ArenaHeader& header,
                           const TickClock& clock, std::string steps_from)
    : writer_(writer),
      header_(header),
      clock_(clock),
      buffers_(writer),
      handles_(writer),
      windows_(writer),
      steps_from_(std::move(steps_from)) {}

int64_t TraceBuilder::AddThread(const LogOrigin& origin) {
  const auto [process, fresh] =
      processes_.try_emplace(origin.pid, static_cast<int64_t>(processes_.size()) + 1);
  if (fresh) {
    writer_.AddProcess(process->second, origin.pid, origin.process_name, origin.rank);
  }
  threads_.push_back({process->second, origin});
  const auto thread_id = static_cast<int64_t>(threads_.size());
  writer_.AddThread(thread_id, process->second, origin.tid, "");
  return thread_id;
}

void TraceBuilder::SetRank(int64_t thread_id, const std::string& rank) {
  Thread& thread = threads_[static_cast<size_t>(thread_id) - 1];
  const std::optional<int64_t> number = ParseRank(rank);
  if (!number) return;
  thread.origin.rank = number;
  writer_.AddProcess(thread.process_id, thread.origin.pid, thread.origin.process_name, number);
}

void TraceBuilder::NameThread(int64_t thread_id, const std::string& name) {
  Thread& thread = threads_[static_cast<size_t>(thread_id) - 1];
  writer_.AddThread(thread_id, thread.process_id, thread.origin.tid, name);
  // A process that ended before the collector saw it has the name of its first thread, as in
  // proc(5).
  if (!thread.origin.process_name.empty() || thread.origin.tid != thread.origin.pid) return;
  thread.origin.process_name = name;
  writer_.AddProcess(thread.process_id, thread.origin.pid, name, thread.origin.rank);
}

KnownOp TraceBuilder::AddOp(uint32_t dialect, std::string_view name, std::string_view overload,
                            std::string_view schema) {
  KnownOp known;
  storage::Op op;
  if (dialect < std::size(meaning::kDialects)) {
    op.dialect = meaning::kDialects[dialect].name;
    known.is_operator = meaning::kDialects[dialect].is_operator;
  } else {
    op.dialect = fmt::format("dialect{}", dialect);
  }
  op.name = name;
  op.overload = overload;
  op.schema = schema;
  known.op_id = writer_.InternOp(op);
  known.schema = ParseOpSchema(name, schema);
  return known;
}

int64_t TraceBuilder::Signature(const KnownOp& op, std::span<const std::byte> bytes,
                                uint32_t slot_count) {
  const XXH128_hash_t hash =
      XXH3_128bits_withSeed(bytes.data(), bytes.size(), static_cast<uint64_t>(op.op_id));
  const Key key{hash.low64, hash.high64};
  const auto found = signatures_.find(key);
  if (found != signatures_.end()) return found->second;

  std::vector<DecodedArgument> decoded;
  if (!DecodeArguments(bytes, slot_count, &decoded)) return 0;
  std::vector<storage::SignatureArgument> arguments;
  arguments.reserve(decoded.size());
  for (size_t i = 0; i < decoded.size(); ++i) {
    storage::SignatureArgument& argument = decoded[i].value;
    if (i < op.schema.values.size()) {
      argument.position = op.schema.values[i].position;
      argument.name = op.schema.values[i].name;
      argument.direction = op.schema.values[i].direction;
    } else {
      argument.position = static_cast<int>(i);
      if (!op.schema.values.empty()) {
        argument.position +=
            op.schema.values.back().position + 1 - static_cast<int>(op.schema.values.size());
      }
      argument.name = fmt::format("arg{}", argument.position);
    }
    for (storage::SlotRef& tensor : argument.tensors) {
      if (tensor.layout_id == 0) continue;
      const storage::Layout& layout = decoded[i].layouts[static_cast<size_t>(tensor.layout_id) - 1];
      tensor.layout_id = writer_.InternLayout(layout);
    }
    arguments.push_back(std::move(argument));
  }
  const int64_t signature_id = writer_.AddSignature(op.op_id, arguments);
  signatures_.emplace(key, signature_id);
  return signature_id;
}

void TraceBuilder::AddMeta(const std::string& key, const std::string& value) {
  const bool own = key.starts_with("collector_") ||
                   std::find(std::begin(kOwnKeys), std::end(kOwnKeys), key) != std::end(kOwnKeys);
  writer_.SetMeta(own ? "agent." + key : key, value);
  if (key == "torch_library") met_torch_ = true;
}

void TraceBuilder::Note(storage::Severity severity, const std::string& kind,
                        const std::string& subject, const std::string& cause,
                        const std::string& remedy, int64_t count) {
  if (severity == storage::Severity::kDataLoss) data_lost_ = true;
  const auto [entry, fresh] =
      notes_.try_emplace(std::make_pair(kind, subject),
                         storage::LedgerEntry{kind, severity, count, subject, cause, remedy});
  if (fresh) return;
  // Saturates: a count can come from a damaged record.
  int64_t& total = entry->second.count;
  if (__builtin_add_overflow(total, count, &total)) total = INT64_MAX;
}

bool TraceBuilder::AddPayload(const std::string& digest, const void* data, size_t bytes,
                              int64_t arrived_ns) {
  if (limited_) arrived_ns_[digest] = arrived_ns;
  if (writer_.disk_is_full() || writer_.HasPayload(digest)) return true;
  if (storage::DigestOf(data, bytes) != digest) return false;
  writer_.AddPayload(digest, data, bytes);
  return true;
}

void TraceBuilder::AddStep(int64_t first_call, int64_t last_call, const std::string& name) {
  if (last_call < first_call) return;
  storage::Step step{next_step_++, first_call, last_call, "range:" + name};
  writer_.AddStep(step);
  steps_.push_back(std::move(step));
}

// A step of the recorder lies between the ends of two steps of an optimizer (agent/window.cpp). The
// first step of a program also holds the program's setup, so a recording from there on leaves the
// steps to the analysis.
void TraceBuilder::AddStepsOfTurns() {
  const bool chosen = header_.choose_steps != 0 && header_.first_step > 0;
  if (!chosen || limited_ || !steps_.empty() || !steps_from_.empty()) return;
  std::map<const Windows::Window*, std::vector<int64_t>> ends;
  for (const Turn& turn : turns_) ends[turn.window].push_back(turn.next_call);
  for (auto& [window, next_calls] : ends) {
    std::sort(next_calls.begin(), next_calls.end());
    int64_t first = window->entered_at_call;
    for (const int64_t next : next_calls) {
      if (next <= first) continue;
      steps_.push_back({0, first, next - 1, std::string(wire::kFoundByOptimizer)});
      first = next;
    }
  }
}

int64_t TraceBuilder::DropBefore(const Windows::Cut& cut) {
  const auto is_old = [&](const std::string& digest) {
    const auto arrived = arrived_ns_.find(digest);
    return arrived == arrived_ns_.end() || arrived->second < cut.begin_ns;
  };
  const storage::Writer::Dropped dropped = writer_.DropBefore(cut.first_call, cut.begin_ns, is_old);
  for (const std::string& digest : dropped.digests) {
    promised_.erase(digest);
    arrived_ns_.erase(digest);
  }
  std::erase_if(steps_, [&](const auto& step) { return step.last_call < cut.first_call; });
  calls_ -= dropped.calls;
  return dropped.calls;
}

void TraceBuilder::NoteContent(int64_t ns) {
  if (ns == 0) return;
  first_content_ns_ = first_content_ns_ == 0 ? ns : std::min(first_content_ns_, ns);
  last_content_ns_ = std::max(last_content_ns_, ns);
}

void TraceBuilder::WriteCost() {
  if (cost_.threads.empty()) return;
  cost_.payload = wire::NameOf(header_.payload);
  cost_.ring_bytes = static_cast<int64_t>(header_.ring_bytes);
  cost_.size_was_limited = header_.limit_size != 0;
  for (const storage::ThreadCost& thread : cost_.threads) {
    cost_.value_bytes += thread.input_bytes + thread.output_bytes;
  }
  cost_.values_ns = last_content_ns_ - first_content_ns_;
  writer_.SetMeta(storage::kRecordingCostKey, storage::RecordingCostText(cost_));
  std::map<int64_t, std::vector<storage::ThreadCost>> waiting;  // by process
  for (const storage::ThreadCost& thread : cost_.threads) {
    if (thread.waited_ns > 0) waiting[ProcessOf(thread.thread_id)].push_back(thread);
  }
  for (const auto& [process_id, threads] : waiting) {
    const uint32_t pid = threads_[static_cast<size_t>(threads[0].thread_id) - 1].origin.pid;
    int64_t waited_us = 0;
    for (const storage::ThreadCost& thread : threads) waited_us += thread.waited_ns / 1000 + 1;
    Note(storage::Severity::kNotice, "recorder_stall", fmt::format("process {}", pid),
         "microseconds that threads waited for room in their rings; times in the trace include "
         "them",
         storage::RemedyForWaits(cost_, threads), waited_us);
  }
}

void TraceBuilder::Finish() {
  buffers_.WriteLiving();
  handles_.WriteLiving();
  windows_.Write();
  const int64_t unborn = buffers_.WriteUnborn();
  if (unborn > 0) {
    Note(storage::Severity::kNotice, "buffer_without_birth", "buffers",
         "buffers were freed whose allocation was not recorded", "record from the program's start",
         unborn);
  }

  int64_t missing = 0;
  for (const std::string& digest : promised_) missing += writer_.HasPayload(digest) ? 0 : 1;
  if (missing > 0) {
    Note(storage::Severity::kDataLoss, "payload_missing", "snapshots",
         "snapshots announced contents that did not arrive",
         "record again; a program that is killed loses what it was sending", missing);
  }

  AddStepsOfTurns();
  // Ranges of several threads end in another order than they begin.
  const bool ordered =
      !limited_ && next_step_ == static_cast<int64_t>(steps_.size()) &&
      std::is_sorted(steps_.begin(), steps_.end(), [](const auto& left, const auto& right) {
        return left.first_call < right.first_call;
      });
  if (!ordered) {
    writer_.RemoveSteps();
    std::sort(steps_.begin(), steps_.end(), [](const auto& left, const auto& right) {
      return left.first_call < right.first_call;
    });
    for (size_t i = 0; i < steps_.size(); ++i) {
      steps_[i].step = static_cast<int64_t>(i);
      writer_.AddStep(steps_[i]);
    }
  }
  if (!steps_from_.empty() && steps_.empty()) {
    Note(storage::Severity::kNotice, "no_steps", steps_from_,
         "no range of this name was entered while calls were recorded",
         "name a range of torch.profiler.record_function that encloses one iteration");
  }

  WriteCost();
  for (const auto& [key, entry] : notes_) writer_.AddLedger(entry);
  notes_.clear();
}

}  // namespace acltape::collector
