// Note [Buffers that change behind the recorder's back]. A NumPy write or a host copy changes a
// buffer without an operator call. Under `all` each buffer's digest is taken after every recorded
// write and compared before every read. Under `inputs` only buffers that came from outside carry a
// digest: small ones and foreign ones are checked in full at each read, larger ones by sampled
// cache lines at each read and in full as often as a fixed share of the run time allows. A change
// that only the later full check finds is reported in the ledger with the number of reads that may
// have seen it.
//
// Note [Values on a device]. What a leaf writes there is not read here: the device computes it
// later. The ACL level keeps it in the order of the stream, and the trace takes it over from there
// (analyzer/program/device_values.h). Under `inputs` it does so for what random operators leave.
// Contents that no leaf wrote, such as what torch.tensor copied to the device, are read from it at
// once, outside captures. What a copy brings to the host without blocking is not read either, since
// the device may still be writing it; the call of the copy has the value.
#include "recorder/torch/values.h"

#define XXH_INLINE_ALL
#include <dlfcn.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

#include "meaning/options.h"
#include "recorder/agent/statistics.h"
#include "recorder/torch/arguments.h"
#include "recorder/torch/device_wait.h"
#include "recorder/torch/digest.h"

namespace acltape::torch_plugin {

namespace {

constexpr uint64_t kAlwaysFullBytes = 4096;
constexpr uint64_t kForeignFullBytes = 1 << 20;
constexpr double kVerifyShare = 0.01;  // share of the run time, for full checks of large inputs
constexpr size_t kSampledLines = 16;
constexpr size_t kLine = 64;

uint64_t SampleOf(const void* data, size_t bytes) {
  const char* base = static_cast<const char*>(data);
  const size_t last = bytes - kLine;
  uint64_t sample = bytes;
  for (size_t i = 0; i < kSampledLines; ++i) {
    sample = XXH3_64bits_withSeed(base + last * i / (kSampledLines - 1), kLine, sample);
  }
  return sample;
}

// Contents that were sent already; a second tensor of the same bytes costs its digest only.
bool FirstTime(const agent::Tape& tape, const Digest& digest) {
  static auto* mutex = new std::mutex;
  static auto* sent = new std::unordered_map<Digest, uint32_t, DigestHash>;  // their last epochs
  const uint32_t epoch = agent::SentEpoch(tape);
  std::lock_guard<std::mutex> lock(*mutex);
  const auto [entry, fresh] = sent->try_emplace(digest, epoch);
  if (fresh || entry->second >= epoch) return fresh;
  entry->second = epoch;
  return true;
}

void SendData(agent::Tape* tape, const Digest& digest, const void* data, size_t bytes) {
  const size_t piece = agent::PieceBytes(*tape->arena);
  for (size_t offset = 0; offset < bytes; offset += piece) {
    const size_t size = std::min(piece, bytes - offset);
    uint32_t total = 0;
    auto* record = tape->Begin<wire::DataRecord>(wire::RecordKind::kData, size, &total);
    if (record == nullptr) return;
    record->digest_low = digest.low;
    record->digest_high = digest.high;
    record->total_bytes = bytes;
    record->offset = offset;
    record->piece_bytes = size;
    std::memcpy(record + 1, static_cast<const char*>(data) + offset, size);
    tape->End(total);
  }
}

// The layout of a whole buffer: uint8 [bytes] at offset 0.
size_t EncodeWholeBuffer(uint64_t bytes, std::byte* out) {
  const auto tag = static_cast<uint8_t>(wire::ArgumentTag::kTensor);
  const auto dtype = static_cast<uint8_t>(wire::DType::kUint8);
  const uint8_t head[] = {tag, dtype, 1, 0, 0, 0};
  std::memcpy(out, head, sizeof(head));
  const int64_t numbers[] = {0, static_cast<int64_t>(bytes), 1};
  std::memcpy(out + sizeof(head), numbers, sizeof(numbers));
  return sizeof(head) + sizeof(numbers);
}

template <typename Encode>
void SendSnapshot(agent::Tape* tape, wire::SnapshotRecord row, const agent::Statistics* statistics,
                  size_t layout_bytes, const Encode& encode) {
  uint32_t total = 0;
  auto* record =
      tape->Begin<wire::SnapshotRecord>(wire::RecordKind::kSnapshot, layout_bytes, &total);
  if (record == nullptr) return;
  row.header = record->header;
  row.layout_bytes = static_cast<uint32_t>(layout_bytes);
  if (statistics != nullptr) {
    row.flags |= wire::kSnapshotStatistics;
    row.min = statistics->min;
    row.max = statistics->max;
    row.mean = statistics->mean;
    row.l2 = statistics->l2;
    row.nan_count = statistics->nan_count;
    row.inf_count = statistics->inf_count;
  }
  *record = row;
  encode(reinterpret_cast<std::byte*>(record + 1));
  tape->End(total);
}

const void* BufferData(const c10::StorageImpl* storage) { return storage->data_ptr().get(); }

// Copies bytes of a device to the host; false when it could not. It is in the library that records
// the ACL level.
using ReadDevice = bool (*)(void* to, const void* from, uint64_t bytes);
ReadDevice FindReadDevice() {
  static const auto read = reinterpret_cast<ReadDevice>(dlsym(RTLD_DEFAULT, "acltape_read_device"));
  return read;
}

bool CoversItsBuffer(const at::Tensor& tensor, const BufferHeader& header) {
  return tensor.storage_offset() == 0 && tensor.is_non_overlapping_and_dense() &&
         static_cast<uint64_t>(tensor.numel()) * tensor.itemsize() == header.bytes;
}

BufferHeader* HeaderOfTensor(const at::Tensor& tensor) {
  if (!tensor.has_storage() || tensor.layout() != at::kStrided) return nullptr;
  return HeaderOf(tensor.storage().unsafeGetStorageImpl());
}

}  // namespace

void LeafValues::Start(const OpInfo& info) {
  info_ = &info;
  state_.tensors.Clear();
}

void LeafValues::BeforeCall(uint64_t call_id) {
  call_id_ = call_id;
  argument_slots_ = state_.slots.size();
  if (info_->random) state_.tape->random_call = call_id;
  arrives_later_ = state_.place > meaning::kPlaceHost && info_->non_blocking >= 0 &&
                   (state_.true_arguments >> info_->non_blocking & 1) != 0;
  const bool keep_inputs = state_.tape->arena->payload >= wire::PayloadPolicy::kInputs &&
                           !info_->view && !info_->allocation && !info_->exchange;
  for (const auto& [tensor, position] : state_.tensors) {
    if (info_->exchange) exchanged_.push_back(*tensor);
    const ArgumentInfo& argument = info_->arguments[position];
    const bool written =
        argument.written ||
        (argument.written_if >= 0 && (state_.true_arguments >> argument.written_if & 1) != 0);
    if (written) written_.emplace_back(*tensor, position);
    if (keep_inputs) KeepInput(*tensor, argument);
  }
  state_.tensors.Clear();
}

void LeafValues::KeepInput(const at::Tensor& tensor, const ArgumentInfo& argument) {
  BufferHeader* header = HeaderOfTensor(tensor);
  if (header == nullptr || header->bytes == 0) return;
  const uint32_t known = KnownState(*header, state_.tape->window);
  const void* data = BufferData(tensor.storage().unsafeGetStorageImpl());
  // The host brings an input to the device here, whoever wrote it on the host.
  if (header->device == 0 && state_.place > meaning::kPlaceHost) {
    if (argument.overwritten && CoversItsBuffer(tensor, *header)) return;
    const bool kept = (known & kDeviceInput) != 0;
    if (kept) {
      CheckUnchanged(header, data);
    } else {
      KeepBuffer(header, data, (known & kContentKnown) != 0);
    }
    SetKnownState(*header, state_.tape->window, kContentKnown | kHasDigest | kDeviceInput);
    return;
  }
  if ((known & kContentKnown) == 0) {
    if (argument.overwritten && CoversItsBuffer(tensor, *header)) return;
    if (header->device == 0) {
      KeepBuffer(header, data, false);
    } else {
      KeepDeviceBuffer(header, data);
    }
  } else if ((known & kHasDigest) != 0) {
    if (argument.overwritten && CoversItsBuffer(tensor, *header)) return;
    CheckUnchanged(header, data);
  }
}

void LeafValues::KeepBuffer(BufferHeader* header, const void* data, bool changed) {
  const Digest digest = DigestOf(data, header->bytes);
  agent::Tape* tape = state_.tape;
  if (FirstTime(*tape, digest)) SendData(tape, digest, data, header->bytes);
  wire::SnapshotRecord row{};
  row.call_id = call_id_;
  row.buffer_id = header->buffer_id;
  row.digest_low = digest.low;
  row.digest_high = digest.high;
  row.bytes = header->bytes;
  row.position = -1;
  row.flags = changed ? wire::kSnapshotPayload | wire::kSnapshotChanged : +wire::kSnapshotPayload;

  std::byte layout[64];
  const size_t layout_bytes = EncodeWholeBuffer(header->bytes, layout);
  SendSnapshot(tape, row, nullptr, layout_bytes,
               [&](std::byte* out) { std::memcpy(out, layout, layout_bytes); });
  header->digest = digest.low;
  if (header->bytes > kAlwaysFullBytes) header->sample = SampleOf(data, header->bytes);
  header->sampled_reads = 0;
  SetKnownState(*header, tape->window, kContentKnown | kHasDigest);
}

void LeafValues::KeepDeviceBuffer(BufferHeader* header, const void* data) {
  const ReadDevice read = FindReadDevice();
  static const auto readable =
      reinterpret_cast<bool (*)()>(dlsym(RTLD_DEFAULT, "acltape_device_is_readable"));
  if (readable != nullptr && readable()) {
    WaitOnceInWindow(*state_.tape, static_cast<c10::DeviceIndex>(header->device - 1));
  }
  const std::unique_ptr<char[]> copy(new char[header->bytes]);
  if (read != nullptr && read(copy.get(), data, header->bytes)) {
    KeepBuffer(header, copy.get(), false);
  } else {
    const bool recorded = read != nullptr;
    state_.tape->WriteLedger(
        recorded ? 0 : 1, 1, "device_value_not_kept", "PyTorch's tensors on a device",
        recorded ? "a graph was being captured, or the device could not be read"
                 : "the ACL level, which reads the device, is not recorded",
        recorded ? "replay at the ACL level, which does not need the value"
                 : "record with @level aten,acl"_cli);
  }
  SetKnownState(*header, state_.tape->window, kContentKnown);
}

void LeafValues::CheckUnchanged(BufferHeader* header, const void* data) {
  const bool all = state_.tape->arena->payload == wire::PayloadPolicy::kAll;
  bool full = all || header->bytes <= kAlwaysFullBytes ||
              (header->foreign != 0 && header->bytes <= kForeignFullBytes);
  if (!full) {
    if (SampleOf(data, header->bytes) != header->sample) {
      KeepBuffer(header, data, true);
      return;
    }
    const uint64_t now = agent::MonotonicNs();
    const auto budget = static_cast<uint64_t>(kVerifyShare * double(now - state_.begin_ns));
    if (state_.verify_ns > budget) {
      header->sampled_reads++;
      state_.sampled_reads++;
      return;
    }
    const bool same = DigestOf(data, header->bytes).low == header->digest;
    state_.verify_ns += agent::MonotonicNs() - now;
    if (same) {
      header->sampled_reads = 0;
      return;
    }
    if (header->sampled_reads > 0) {
      state_.tape->WriteLedger(
          2, header->sampled_reads, "late_change",
          ("buffer " + std::to_string(header->buffer_id)).c_str(),
          "an input changed between recorded calls and was noticed only at a later read",
          "record with @payload all, which checks every read in full"_cli);
    }
    KeepBuffer(header, data, true);
    return;
  }
  if (DigestOf(data, header->bytes).low != header->digest) KeepBuffer(header, data, true);
}

void LeafValues::KeepOutput(const at::Tensor& tensor, int position, const Digest* whole) {
  const wire::PayloadPolicy policy = state_.tape->arena->payload;
  const bool payload =
      policy == wire::PayloadPolicy::kAll ||
      (policy == wire::PayloadPolicy::kInputs && state_.tape->random_call == call_id_);
  if (!payload && policy != wire::PayloadPolicy::kDigest) return;
  BufferHeader* header = HeaderOfTensor(tensor);
  if (header == nullptr || header->device != 0 || tensor.numel() == 0) return;
  const bool dense = tensor.is_non_overlapping_and_dense();
  const at::Tensor packed = dense ? tensor : tensor.contiguous();
  const void* data = packed.data_ptr();
  const size_t bytes = packed.numel() * packed.itemsize();
  const Digest digest = whole != nullptr ? *whole : DigestOf(data, bytes);
  if (payload && FirstTime(*state_.tape, digest)) SendData(state_.tape, digest, data, bytes);
  wire::SnapshotRecord row{};
  row.call_id = call_id_;
  row.buffer_id = header->buffer_id;
  row.digest_low = digest.low;
  row.digest_high = digest.high;
  row.bytes = bytes;
  row.position = position;
  row.moment = 1;
  row.packing = dense ? 0 : 1;
  if (payload) row.flags = wire::kSnapshotPayload;
  agent::Statistics statistics;
  const bool summarised =
      policy != wire::PayloadPolicy::kInputs &&
      agent::Summarise(data, packed.numel(), static_cast<wire::DType>(tensor.scalar_type()),
                       &statistics);
  SendSnapshot(state_.tape, row, summarised ? &statistics : nullptr,
               TensorEncodingBytes(tensor.dim()),
               [&](std::byte* out) { EncodeTensor(tensor, 0, out); });
}

void LeafValues::Forget(const at::Tensor& tensor) {
  BufferHeader* header = HeaderOfTensor(tensor);
  if (header == nullptr || header->device != 0) return;
  header->state.store(0, std::memory_order_relaxed);
}

void LeafValues::AfterCall() {
  if (info_->exchange) {
    for (const at::Tensor& tensor : exchanged_) Forget(tensor);
    for (const auto& [tensor, position] : state_.tensors) Forget(*tensor);
    return;
  }
  const bool all = state_.tape->arena->payload == wire::PayloadPolicy::kAll;
  const auto produced = [&](const at::Tensor& tensor, int position) {
    BufferHeader* header = HeaderOfTensor(tensor);
    if (header == nullptr) return;
    if (header->device != 0) {
      SetKnownState(*header, state_.tape->window, kContentKnown);
      return;
    }
    if (arrives_later_) {  // the copy of the device has the value (device_values.h)
      Forget(tensor);
      return;
    }
    Digest digest{};
    const bool hashed = all && header->bytes != 0;
    if (hashed) {
      digest = DigestOf(BufferData(tensor.storage().unsafeGetStorageImpl()), header->bytes);
      header->digest = digest.low;
    }
    SetKnownState(*header, state_.tape->window, all ? kContentKnown | kHasDigest : +kContentKnown);
    KeepOutput(tensor, position, hashed && CoversItsBuffer(tensor, *header) ? &digest : nullptr);
  };
  if (info_->allocation) return;
  for (const auto& [tensor, position] : written_) produced(tensor, position);
  if (info_->view) return;
  for (const auto& [tensor, position] : state_.tensors) {
    BufferHeader* header = HeaderOfTensor(*tensor);
    if (header == nullptr) continue;
    // A return that shares an argument's buffer is a view, whatever the schema says.
    const uint64_t* begin = state_.slots.begin();
    const uint64_t* end = begin + argument_slots_;
    if (std::find(begin, end, header->buffer_id) == end) {
      produced(*tensor, position);
    } else if (!info_->marked) {
      Forget(*tensor);  // an operator of an extension that may have written it
    }
  }
}

}  // namespace acltape::torch_plugin
