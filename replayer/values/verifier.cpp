#include "replayer/values/verifier.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>

#include "analyzer/program/given_away.h"
#include "replayer/device/memory_plan.h"
#include "storage/packing.h"
#include "storage/payload.h"

namespace acltape::replayer {
namespace {

using analyzer::Leaf;
using analyzer::TensorUse;
using storage::Layout;

constexpr size_t kStagingBytes = size_t{32} << 20;

// The value that the host gets when it reads an element: a double, a whole number or a truth value.
struct HostValue {
  storage::DType dtype = storage::DType::kUndefined;
  std::array<uint8_t, 8> bytes{};
};

template <typename T>
HostValue HostValueOf(storage::DType dtype, T value) {
  HostValue host;
  host.dtype = dtype;
  std::memcpy(host.bytes.data(), &value, sizeof value);
  return host;
}

// All NaN count as equal, because the trace does not distinguish them.
HostValue HostReal(double value) {
  return HostValueOf(storage::DType::kFloat64, std::isnan(value) ? std::nan("") : value);
}

std::optional<HostValue> RecordedHostValue(const storage::Argument& argument) {
  switch (argument.kind) {
    case storage::ValueKind::kReal:
      return HostReal(argument.real);
    case storage::ValueKind::kBool:
      return HostValueOf(storage::DType::kBool, argument.integer != 0);
    case storage::ValueKind::kInt:
      return HostValueOf(storage::DType::kInt64, argument.integer);
    default:
      return std::nullopt;
  }
}

HostValue SeenByHost(storage::ValueKind kind, storage::DType dtype, const uint8_t* element) {
  const double value = analyzer::metrics::ElementValue(dtype, element);
  if (kind == storage::ValueKind::kReal) return HostReal(value);
  if (kind == storage::ValueKind::kBool) return HostValueOf(storage::DType::kBool, value != 0);
  // A double does not hold every 64-bit number.
  if (storage::DTypeBytes(dtype) != 8 || dtype == storage::DType::kFloat64) {
    return HostValueOf(storage::DType::kInt64, static_cast<int64_t>(value));
  }
  int64_t whole;
  std::memcpy(&whole, element, sizeof whole);
  return HostValueOf(storage::DType::kInt64, whole);
}

// Outputs of which an operator leaves elements as its memory was, so that they differ between two
// runs.
constexpr std::pair<std::string_view, std::string_view> kPartlyUndefined[] = {
    {"aten::_ctc_loss", "out1"},       // the states of a target that is shorter than the longest
    {"aten::_embedding_bag", "out3"},  // the greatest rows, which only one of the modes has
};

bool IsPartlyUndefined(const Leaf& leaf, const storage::Argument& argument) {
  const std::string name = leaf.Name();
  return std::any_of(
      std::begin(kPartlyUndefined), std::end(kPartlyUndefined),
      [&](const auto& row) { return name == row.first && argument.name == row.second; });
}

}  // namespace

Verifier::Verifier(Device& device, const analyzer::Program& program, Contents& contents,
                   const ReplayOptions& options, ReplayReport& report)
    : device_(device),
      program_(program),
      contents_(contents),
      options_(options),
      report_(report),
      log_(options, report),
      staging_(device, Block::Kind::kPinned, kStagingBytes) {}

void Verifier::WriteTo(storage::Results* results, int64_t run_id) { log_.WriteTo(results, run_id); }

void Verifier::UseDigests(Digests* collect, const Digests* reference) {
  collect_ = collect;
  reference_ = reference;
}

void Verifier::UseNoise(NoiseFloor* learn, NoiseFloor* ask) {
  learn_ = learn;
  ask_ = ask;
}

// Returns true if a result leaves its step: it is given to other processes, later leaves outside
// the step use its bytes, or nothing inside the step uses them after the write.
bool Verifier::LeavesStep(int64_t leaf, const TensorUse& use) const {
  const int64_t step = program_.leaves[leaf].step_index;
  const int64_t end =
      step < 0 ? static_cast<int64_t>(program_.leaves.size()) : program_.work.steps[step].end;
  if (analyzer::GivenTo(program_, leaf, use, end) >= 0) return true;
  bool used_inside = false;
  for (const analyzer::Access& access : program_.buffers.at(use.tensor.buffer_id).accesses) {
    if (access.leaf <= leaf || access.end_byte <= use.layout->FirstByte() ||
        use.layout->EndByte() <= access.first_byte) {
      continue;
    }
    if (program_.leaves[access.leaf].step_index != step) return !used_inside || !access.write;
    if (access.write) return false;  // the step overwrites it, and that later write is the result
    used_inside = true;
  }
  return !used_inside;
}

bool Verifier::Wants(int64_t leaf, int write) const {
  const TensorUse& use = program_.uses[leaf].writes[write];
  if (use.layout->ElementCount() == 0) return false;
  return options_.outputs == Outputs::kLeaf || LeavesStep(leaf, use);
}

void Verifier::Take(int64_t leaf, int write, const uint8_t* address) {
  const Layout& layout = *program_.uses[leaf].writes[write].layout;
  Pending pending;
  pending.leaf = leaf;
  pending.write = write;
  pending.bytes = layout.EndByte() - layout.FirstByte();
  Stage(pending, address);
}

void Verifier::TakeHostRead(int64_t leaf, const uint8_t* address) {
  // Only a read of one element brings that element to the host. Others, such as "equal", compute on
  // the host.
  const std::vector<TensorUse>& reads = program_.uses[leaf].reads;
  if (program_.level == analyzer::Level::kAcl) {
    Pending pending;
    pending.leaf = leaf;
    pending.write = -1;
    pending.bytes = reads[0].layout->EndByte() - reads[0].layout->FirstByte();
    Stage(pending, address);
    return;
  }
  if (reads.size() != 1 || reads[0].layout->ElementCount() != 1) {
    ++report_.not_comparable;
    return;
  }
  Pending pending;
  pending.leaf = leaf;
  pending.write = -1;
  pending.bytes = storage::DTypeBytes(program_.uses[leaf].reads[0].layout->dtype);
  Stage(pending, address);
}

void Verifier::Stage(Pending pending, const uint8_t* address) {
  if (staged_ + pending.bytes > staging_.bytes()) Drain();
  if (pending.bytes > staging_.bytes()) {
    staging_ = Block();
    staging_ = Block(device_, Block::Kind::kPinned, pending.bytes);
  }
  pending.offset = staged_;
  device_.Download(staging_.data() + staged_, address, pending.bytes);
  staged_ += AlignUp(static_cast<int64_t>(pending.bytes));
  pending_.push_back(pending);
}

void Verifier::Flush() {
  Drain();
  JudgeDeferred();
}

void Verifier::Drain() {
  if (pending_.empty()) return;
  device_.Synchronize();
  for (const Pending& pending : pending_) {
    const uint8_t* bytes = staging_.data() + pending.offset;
    if (pending.write < 0) {
      CheckHostRead(pending, bytes);
    } else {
      Check(pending, bytes);
    }
  }
  pending_.clear();
  staged_ = 0;
}

void Verifier::Check(const Pending& pending, const uint8_t* bytes) {
  const Leaf& leaf = program_.leaves[pending.leaf];
  const TensorUse& use = program_.uses[pending.leaf].writes[pending.write];
  const Layout& layout = *use.layout;
  const storage::Argument& argument = leaf.arguments[use.argument];
  if (IsPartlyUndefined(leaf, argument)) {
    ++report_.not_comparable;
    return;
  }
  const storage::Snapshot* recorded =
      contents_.synthetic() ? nullptr : analyzer::RecordedResult(leaf, use);
  const bool address_order = recorded != nullptr ? recorded->packing == 0 : layout.IsDense();
  const int64_t packed_bytes = layout.ElementCount() * storage::DTypeBytes(layout.dtype);
  std::vector<uint8_t> packed;
  const uint8_t* actual = bytes;
  if (!address_order) {
    packed.resize(packed_bytes);
    PackRowMajor(layout, bytes, packed.data());
    actual = packed.data();
  }
  const std::string digest = storage::DigestOf(actual, packed_bytes);
  const std::pair<int64_t, int> key{pending.leaf, pending.write};
  if (collect_ != nullptr) (*collect_)[key] = digest;
  if (learn_ != nullptr) {
    learn_->Observe(pending.leaf, pending.write, digest, actual, packed_bytes);
    return;
  }
  std::string expected;
  std::string reference = "recorded";
  if (recorded != nullptr) {
    expected = recorded->digest;
  } else if (reference_ != nullptr && reference_->count(key) != 0) {
    expected = reference_->at(key);
    reference = "eager";
  } else {
    ++report_.not_comparable;
    return;
  }
  if (digest == expected) {
    if (ask_ != nullptr) ask_->NoteAccepted(pending.leaf);
    Note(leaf, argument.position, argument.name, reference, ComparisonOutcome());
    return;
  }
  const Bytes payload =
      recorded != nullptr && recorded->has_payload ? contents_.GetPayload(expected) : nullptr;
  const bool values = payload != nullptr && static_cast<int64_t>(payload->size()) == packed_bytes;
  ComparisonOutcome outcome =
      values ? log_.Judge(leaf.Name(), layout.dtype, payload->data(), actual, layout.ElementCount())
             : ComparisonLog::OtherDigest(layout.ElementCount());
  if (ask_ != nullptr && outcome.verdict == ComparisonOutcome::Verdict::kDifferent) {
    Defer(pending, digest, argument, reference, std::move(outcome));
    return;
  }
  if (ask_ != nullptr) ask_->NoteAccepted(pending.leaf);
  Note(leaf, argument.position, argument.name, reference, outcome);
}

// Checks a copy to the host. The recording holds its bytes as the content of its destination.
void Verifier::CheckCopyToHost(const Leaf& leaf, const uint8_t* bytes) {
  const TensorUse& use = program_.uses[leaf.index].reads[0];
  const int64_t count = use.layout->ElementCount();
  const storage::Snapshot* recorded = nullptr;
  for (const storage::Snapshot& snapshot : leaf.after) {
    if (snapshot.position == 0 && snapshot.bytes == count) recorded = &snapshot;
  }
  if (recorded == nullptr || contents_.synthetic()) {
    ++report_.not_comparable;
    return;
  }
  std::vector<uint8_t> packed(static_cast<size_t>(count));
  PackRowMajor(*use.layout, bytes, packed.data());
  ComparisonOutcome outcome;
  if (storage::DigestOf(packed.data(), count) != recorded->digest) {
    const Bytes payload = recorded->has_payload ? contents_.GetPayload(recorded->digest) : nullptr;
    outcome = payload != nullptr ? log_.Judge(leaf.Name(), use.layout->dtype, payload->data(),
                                              packed.data(), count)
                                 : ComparisonLog::OtherDigest(count);
  }
  Note(leaf, recorded->position, leaf.arguments[0].name, "recorded", outcome);
}

void Verifier::CheckHostRead(const Pending& pending, const uint8_t* bytes) {
  if (learn_ != nullptr) return;  // it deviates only if its input does
  const Leaf& leaf = program_.leaves[pending.leaf];
  if (program_.level == analyzer::Level::kAcl) {
    CheckCopyToHost(leaf, bytes);
    return;
  }
  const storage::DType dtype = program_.uses[pending.leaf].reads[0].layout->dtype;
  for (const storage::Argument& argument : leaf.arguments) {
    if (argument.direction != storage::Direction::kOut) continue;
    const std::optional<HostValue> expected = RecordedHostValue(argument);
    if (!expected || contents_.synthetic()) {
      ++report_.not_comparable;
      continue;
    }
    const HostValue actual = SeenByHost(argument.kind, dtype, bytes);
    ComparisonOutcome outcome =
        log_.Judge(leaf.Name(), expected->dtype, expected->bytes.data(), actual.bytes.data(), 1);
    if (ask_ != nullptr && outcome.verdict == ComparisonOutcome::Verdict::kDifferent) {
      Defer(pending, "", argument, "recorded", std::move(outcome));
      continue;
    }
    Note(leaf, argument.position, argument.name, "recorded", outcome);
  }
}

void Verifier::Defer(const Pending& pending, const std::string& digest,
                     const storage::Argument& argument, const std::string& reference,
                     ComparisonOutcome outcome) {
  deferred_.push_back(
      {pending.leaf, pending.write, digest, &argument, reference, std::move(outcome)});
}

// Judges the results that were deferred, in order of leaves. If a difference is noise depends on
// earlier leaves, and graphs may give their results in another order than leaves.
void Verifier::JudgeDeferred() {
  std::stable_sort(deferred_.begin(), deferred_.end(),
                   [](const Deferred& a, const Deferred& b) { return a.leaf < b.leaf; });
  for (Deferred& each : deferred_) {
    ComparisonOutcome& outcome = each.outcome;
    std::string why = ask_->Explain(each.leaf, each.write, each.digest,
                                    outcome.digest_only ? nullptr : &outcome.metrics);
    if (!why.empty()) {
      outcome.verdict = ComparisonOutcome::Verdict::kNoise;
      outcome.reason = std::move(why);
    }
    Note(program_.leaves[each.leaf], each.argument->position, each.argument->name, each.reference,
         outcome);
  }
  deferred_.clear();
}

void Verifier::Note(const Leaf& leaf, int position, const std::string& name,
                    const std::string& reference, const ComparisonOutcome& outcome) {
  ComparedOutput output;
  output.call_id = leaf.call.call_id;
  output.op = leaf.Name();
  output.position = position;
  output.name = name;
  output.step = leaf.step_index < 0 ? -1 : program_.work.steps[leaf.step_index].step;
  output.reference = reference;
  log_.Note(output, outcome);
}

}  // namespace acltape::replayer
