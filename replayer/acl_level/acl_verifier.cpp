#include "replayer/acl_level/acl_verifier.h"

#include <cstring>

#include "generated/meaning/parameter_positions.h"
#include "storage/packing.h"
#include "storage/payload.h"

namespace acltape::replayer::acl_level {

using analyzer::AclCall;
using analyzer::AclCallKind;
using analyzer::ByteRange;
using analyzer::ByteSet;
using analyzer::TensorUse;
using storage::Layout;
using storage::Snapshot;

namespace {

// Sets the known parts of a take to the parts of its range that are in `set`. The parts are
// relative to the start of the range.
void Restrict(Take& take, const ByteSet& set, int64_t first) {
  const auto end = first + static_cast<int64_t>(take.copy.bytes);
  take.complete = set.Covers(first, end);
  for (const ByteRange& part : set.Within(first, end)) {
    take.known.push_back({part.first - first, part.end - first});
  }
}

}  // namespace

Take AclVerifier::WholeRange(const AclCall& call, const Snapshot& snapshot) const {
  Take take;
  take.call = &call;
  take.snapshot = &snapshot;
  const Layout& layout = program_.trace->GetLayout(snapshot.tensor.layout_id);
  take.copy.bytes = static_cast<size_t>(layout.EndByte() - layout.FirstByte());
  take.copy.from = rooms_.Address(snapshot.tensor.buffer_id, layout.FirstByte());
  take.host = rooms_.IsHost(snapshot.tensor.buffer_id);
  return take;
}

// Describes the rows of a two-dimensional copy. The recording may hold its host side with or
// without the gaps between the rows. Returns false if the rows do not fit into the recorded bytes.
bool AclVerifier::SetRows(Take& take) const {
  namespace rows = meaning::position::aclrtMemcpy2d;
  const AclCall& call = *take.call;
  Transfer& copy = take.copy;
  copy.width = static_cast<size_t>(call.Integer(rows::kWidth));
  copy.rows = static_cast<size_t>(call.Integer(rows::kHeight));
  copy.from_pitch = static_cast<size_t>(call.Integer(rows::kSpitch));
  copy.to_pitch = static_cast<size_t>(call.Integer(rows::kDpitch));
  if (copy.rows == 0 || copy.width == 0) return false;
  if (copy.bytes == copy.rows * copy.width) copy.to_pitch = copy.width;
  take.complete = copy.to_pitch == copy.width;
  for (size_t row = 0; row < copy.rows; ++row) {
    const auto first = static_cast<int64_t>(row * copy.to_pitch);
    take.known.push_back({first, first + static_cast<int64_t>(copy.width)});
  }
  return static_cast<size_t>(take.known.back().end) <= copy.bytes;
}

// Failed work leaves old bytes behind, so the results of a suspect call are not compared.
bool AclVerifier::LeftOut(const AclCall& call) {
  if (!call.suspect) return false;
  for (size_t i = 0; i < call.after.size(); ++i) log_.NoteNotComparable();
  return true;
}

bool AclVerifier::LeaveOutDoubt(Take& take, const ByteSet& doubt, int64_t first) {
  if (take.snapshot->digest.empty()) return true;
  const auto bytes = static_cast<int64_t>(take.copy.bytes);
  const std::vector<ByteRange> doubtful = doubt.Within(first, first + bytes);
  if (doubtful.empty()) return true;
  log_.NoteInDoubt();
  if (take.snapshot->packing != 0 || take.copy.rows != 0) return false;
  ByteSet certain;
  for (const ByteRange& part : take.known) certain.Add(part.first, part.end);
  for (const ByteRange& part : doubtful) certain.Remove(part.first - first, part.end - first);
  take.known = certain.Within(0, bytes);
  take.complete = false;
  return !take.known.empty();
}

std::vector<Take> AclVerifier::TakesOf(const AclCall& call, KnownBytes& known) {
  std::vector<Take> takes;
  const bool copy = analyzer::IsCopy(call.kind());
  if (options_.outputs == Outputs::kStep && !copy) return takes;
  if (LeftOut(call)) return takes;
  for (const Snapshot& snapshot : call.after) {
    if (snapshot.bytes == 0) continue;
    const TensorUse* from = copy ? call.Use(analyzer::kCopyFrom) : nullptr;
    if (copy && from != nullptr && snapshot.position == analyzer::kCopyTo) {
      // The result of a copy is compared at its source, because the host side may not be a buffer.
      Take take;
      take.call = &call;
      take.snapshot = &snapshot;
      take.copy.bytes = static_cast<size_t>(snapshot.bytes);
      take.copy.from = rooms_.Address(from->tensor.buffer_id, from->layout->FirstByte());
      if (analyzer::IsPlaneCopy(call.kind())) {
        if (!SetRows(take)) continue;
      } else {
        Restrict(take, known.Of(from->tensor.buffer_id), from->layout->FirstByte());
      }
      const ByteSet& doubt = known.InDoubt(from->tensor.buffer_id);
      if (!LeaveOutDoubt(take, doubt, from->layout->FirstByte())) continue;
      takes.push_back(std::move(take));
      continue;
    }
    if (snapshot.tensor.buffer_id == 0) continue;
    Take take = WholeRange(call, snapshot);
    const Layout& layout = program_.trace->GetLayout(snapshot.tensor.layout_id);
    if (snapshot.packing != 0) {
      take.complete = true;  // the recording holds only elements, and the call writes all
    } else {
      Restrict(take, known.Of(snapshot.tensor.buffer_id), layout.FirstByte());
    }
    const ByteSet& doubt = known.InDoubt(snapshot.tensor.buffer_id);
    if (!LeaveOutDoubt(take, doubt, layout.FirstByte())) continue;
    takes.push_back(std::move(take));
  }
  return takes;
}

std::vector<Take> AclVerifier::TakesOf(const AclCall& execution, KnownBytes& known,
                                       KnownBytes& written) {
  std::vector<Take> takes;
  if (LeftOut(execution)) return takes;
  for (const Snapshot& snapshot : execution.after) {
    if (snapshot.bytes == 0 || snapshot.tensor.buffer_id == 0) continue;
    Take take = WholeRange(execution, snapshot);
    const Layout& layout = program_.trace->GetLayout(snapshot.tensor.layout_id);
    // Other streams may write into the same buffer meanwhile, so only the bytes that the graph
    // wrote count. Without recorded values there is only a digest, which is over all of the
    // content.
    const int64_t buffer = snapshot.tensor.buffer_id;
    ByteSet mask;
    if (snapshot.has_payload || snapshot.digest.empty()) {
      for (const ByteRange& part :
           written.Of(buffer).Within(layout.FirstByte(), layout.EndByte())) {
        for (const ByteRange& both : known.Of(buffer).Within(part.first, part.end)) {
          mask.Add(both.first, both.end);
        }
      }
    } else {
      mask = known.Of(buffer);
    }
    Restrict(take, mask, layout.FirstByte());
    if (!LeaveOutDoubt(take, known.InDoubt(buffer), layout.FirstByte())) continue;
    takes.push_back(std::move(take));
  }
  return takes;
}

void AclVerifier::Note(const Take& take, const ComparedOutput& output,
                       const ComparisonOutcome& outcome) {
  compared_.insert(take.snapshot);
  log_.Note(output, outcome);
}

void AclVerifier::Check(const Take& take, const uint8_t* bytes) {
  const Snapshot& snapshot = *take.snapshot;
  ComparedOutput output;
  output.call_id = take.call->call.call_id;
  output.op = take.call->op->FullName();
  output.position = snapshot.position;
  output.step = take.call->step;
  output.reference = "recorded";
  output.name = snapshot.position < 0 ? "buffer " + std::to_string(snapshot.tensor.buffer_id) : "";
  for (const storage::Argument& argument : take.call->arguments) {
    if (argument.position == snapshot.position) output.name = argument.name;
  }
  if (snapshot.digest.empty()) {
    CheckReference(take, bytes, std::move(output));
    return;
  }
  if (!take.complete) {
    CheckPart(take, bytes, output);
    return;
  }
  const Layout& layout = program_.trace->GetLayout(snapshot.tensor.layout_id);
  std::vector<uint8_t> packed;
  const uint8_t* actual = bytes;
  if (snapshot.packing != 0) {
    packed.resize(static_cast<size_t>(snapshot.bytes));
    PackRowMajor(layout, bytes, packed.data());
    actual = packed.data();
  }
  if (storage::DigestOf(actual, static_cast<size_t>(snapshot.bytes)) == snapshot.digest) {
    Note(take, output, ComparisonOutcome());
    return;
  }
  const Bytes payload = snapshot.has_payload ? get_payload_(snapshot.digest) : nullptr;
  if (payload == nullptr || payload->size() != static_cast<size_t>(snapshot.bytes)) {
    Note(take, output, ComparisonLog::OtherDigest(snapshot.bytes));
    return;
  }
  // A copy may have been recorded without a layout. Its bytes are compared then.
  const int64_t element = storage::DTypeBytes(layout.dtype);
  const bool typed = element > 0 && layout.ElementCount() * element == snapshot.bytes;
  Note(take, output,
       log_.Judge(output.op, typed ? layout.dtype : storage::DType::kUint8, payload->data(), actual,
                  typed ? layout.ElementCount() : snapshot.bytes));
}

// Compares a result that the recording has no digest of with the result of another replay. Bytes
// that are not known count as zero, in both replays.
void AclVerifier::CheckReference(const Take& take, const uint8_t* bytes, ComparedOutput output) {
  const Snapshot& snapshot = *take.snapshot;
  std::vector<uint8_t> content(take.copy.bytes, 0);
  if (take.complete) {
    content.assign(bytes, bytes + take.copy.bytes);
  } else {
    for (const ByteRange& part : take.known) {
      std::copy(bytes + part.first, bytes + part.end, content.begin() + part.first);
    }
  }
  if (snapshot.packing != 0) {
    std::vector<uint8_t> packed(static_cast<size_t>(snapshot.bytes));
    PackRowMajor(program_.trace->GetLayout(snapshot.tensor.layout_id), content.data(),
                 packed.data());
    content = std::move(packed);
  }
  const std::string digest = storage::DigestOf(content.data(), content.size());
  const std::tuple<int64_t, int, int64_t> key{snapshot.call_id, snapshot.position,
                                              snapshot.tensor.tensor_id()};
  if (collect_ != nullptr) (*collect_)[key] = digest;
  const auto found = reference_ == nullptr ? Digests::const_iterator() : reference_->find(key);
  if (reference_ == nullptr || found == reference_->end()) {
    log_.NoteNotComparable();
    return;
  }
  output.reference = "eager";
  Note(take, output,
       found->second == digest ? ComparisonOutcome() : ComparisonLog::OtherDigest(snapshot.bytes));
}

// Compares a result of which only parts are known. All other bytes are taken as equal.
void AclVerifier::CheckPart(const Take& take, const uint8_t* bytes, const ComparedOutput& output) {
  const Snapshot& snapshot = *take.snapshot;
  const Bytes payload = snapshot.has_payload ? get_payload_(snapshot.digest) : nullptr;
  if (payload == nullptr || payload->size() != take.copy.bytes || take.known.empty()) {
    log_.NoteNotComparable();
    return;
  }
  std::vector<uint8_t> expected(bytes, bytes + take.copy.bytes);
  for (const ByteRange& part : take.known) {
    std::memcpy(expected.data() + part.first, payload->data() + part.first,
                static_cast<size_t>(part.end - part.first));
  }
  if (std::memcmp(expected.data(), bytes, take.copy.bytes) == 0) {
    Note(take, output, ComparisonOutcome());
    return;
  }
  Note(take, output,
       log_.Judge(output.op, storage::DType::kUint8, expected.data(), bytes,
                  static_cast<int64_t>(take.copy.bytes)));
}

}  // namespace acltape::replayer::acl_level
