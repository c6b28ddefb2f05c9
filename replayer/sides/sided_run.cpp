#include "replayer/sides/sided_run.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "replayer/engine/script_operands.h"
#include "storage/packing.h"

namespace acltape::replayer::sides {
namespace {

// Most bytes that one request carries in either direction. Larger contents need several requests.
constexpr int64_t kRequestBytes = int64_t{64} << 20;

int64_t PackedBytes(const storage::Layout& layout) {
  return layout.ElementCount() * storage::DTypeBytes(layout.dtype);
}

}  // namespace

SidedRun::SidedRun(Script script, std::array<CallSide*, 2> sides)
    : script_(std::move(script)),
      sides_(sides),
      last_id_(static_cast<int64_t>(script_.contents.size())) {}

void SidedRun::Begin() {
  std::vector<int64_t> block_bytes;
  for (const ScriptBlock& block : script_.blocks) block_bytes.push_back(block.bytes);
  truth_.assign(block_bytes.size(), {});
  kept_.clear();
  observed_.assign(script_.observations.size(), {});
  current_ = kGood;
  for (Held& held : held_) {
    if (held.prepared) continue;
    held.blocks.assign(block_bytes.size(), {});
    held.pending.clear();
    held.wanted.clear();
    held.pending_bytes = 0;
  }
}

std::vector<script::Observed> SidedRun::Run(const Watcher& watcher) {
  Begin();
  watcher_ = &watcher;
  try {
    for (const Operation& operation : script_.operations) {
      std::visit([this](const auto& own) { Do(own); }, operation);
    }
    for (const int side : {kGood, kBad}) Flush(side);
  } catch (...) {
    // Commands that were not sent yet are lost, so both sides must be prepared again.
    for (Held& held : held_) held.prepared = false;
    throw;
  }
  return std::move(observed_);
}

template <typename T>
void SidedRun::Do(const T&) {
  throw Error(ErrorKind::kUsage, "a step on two sides cannot hold what belongs to a capture.");
}

// Content number n of the script has version n + 1.
void SidedRun::Do(const UploadTo& upload) {
  truth_[upload.to.block].Set(
      upload.to.offset, upload.to.offset + upload.bytes,
      {int64_t{upload.content} + 1, upload.content_offset - upload.to.offset});
}

// The bytes between the elements of a strided view belong to other tensors and must not change.
void SidedRun::Do(const UploadStrided& upload) {
  const int64_t first = upload.to.offset;
  const int64_t end = first + upload.layout->EndByte() - upload.layout->FirstByte();
  std::vector<uint8_t> bytes = Fetch(upload.to.block, first, end);
  const Bytes packed = script_.contents[upload.content].load();
  UnpackRowMajor(*upload.layout, packed->data(), bytes.data());
  truth_[upload.to.block].Set(
      first, end, Keep(std::make_shared<const std::vector<uint8_t>>(std::move(bytes)), first));
}

void SidedRun::Do(const CopyBytes& copy) {
  Bring(current_, copy.from.block, copy.from.offset, copy.from.offset + copy.bytes);
  Send(current_, MoveBytes{copy.to, copy.from, copy.bytes}, 0);
  NoteWritten(current_, copy.to.block, copy.to.offset, copy.to.offset + copy.bytes);
}

void SidedRun::Do(const Launch& launch) {
  const ScriptCall& call = script_.calls[launch.call];
  const std::vector<ScriptOperand> operands = OperandsOf(call);
  current_ = watcher_->side_of(call.call_id);
  for (const ScriptOperand& operand : operands) {
    const storage::Layout& layout = operand.tensor->layout;
    if (!operand.read && layout.IsDense()) continue;
    Bring(current_, operand.tensor->memory.block(), layout.FirstByte(), layout.EndByte());
  }
  Send(current_, CallOperator{call.call_id, call.invocation}, 0);
  for (const ScriptOperand& operand : operands) {
    if (!operand.write) continue;
    const storage::Layout& layout = operand.tensor->layout;
    NoteWritten(current_, operand.tensor->memory.block(), layout.FirstByte(), layout.EndByte());
  }
}

void SidedRun::Do(const Observe& observe) {
  std::vector<std::string>& digests = observed_[observe.observation].digests;
  digests.resize(static_cast<size_t>(observe.end - observe.first));
  std::vector<int> side_of(digests.size());
  const auto span = [&](int output) {
    const ScriptOutput& own = script_.outputs[output];
    return own.layout.EndByte() - own.layout.FirstByte();
  };
  for (int output = observe.first; output < observe.end; ++output) {
    const ScriptOutput& own = script_.outputs[output];
    const int64_t end = own.spot.offset + span(output);
    int side = current_;
    for (const ByteVersions::Range& range : truth_[own.spot.block].Of(own.spot.offset, end)) {
      if (!IsHeldHere(range.version)) side = HolderOf(own.spot.block, range);
    }
    Bring(side, own.spot.block, own.spot.offset, end);
    const auto number = static_cast<size_t>(output - observe.first);
    side_of[number] = side;
    Send(side, TakeDigest{own.spot, own.layout}, 0,
         [&digests, number](SideResult&& result) { digests[number] = std::move(result.digest); });
  }
  for (const int side : {kGood, kBad}) Flush(side);
  if (!watcher_->wants) return;
  for (int output = observe.first; output < observe.end; ++output) {
    const auto number = static_cast<size_t>(output - observe.first);
    if (!watcher_->wants(observe.observation, output, digests[number])) continue;
    const ScriptOutput& own = script_.outputs[output];
    const std::vector<uint8_t> bytes =
        Fetch(own.spot.block, own.spot.offset, own.spot.offset + span(output));
    std::vector<uint8_t> packed(static_cast<size_t>(PackedBytes(own.layout)));
    PackRowMajor(own.layout, bytes.data(), packed.data());
    watcher_->take(observe.observation, output, packed);
  }
}

bool SidedRun::IsHeldHere(const ByteVersion& version) const {
  return version.id <= static_cast<int64_t>(script_.contents.size()) ||
         kept_.count(version.id) != 0;
}

// Returns the side that holds a version. Precondition: the version is the result of a launch or a
// copy.
int SidedRun::HolderOf(int block, const ByteVersions::Range& range) const {
  for (const int side : {kGood, kBad}) {
    const auto has = held_[side].blocks[block].Of(range.first, range.end);
    if (has.size() == 1 && has[0].version == range.version) return side;
  }
  throw Error(ErrorKind::kDevice, "no side holds bytes " + std::to_string(range.first) + " to " +
                                      std::to_string(range.end) + " of block " +
                                      script_.blocks[block].name + ".");
}

// Returns the command that puts a version. Precondition: this process holds the version.
PutBytes SidedRun::Source(int block, const ByteVersions::Range& range) {
  const int64_t bytes = range.end - range.first;
  PutBytes put{{block, range.first}, nullptr, range.first + range.version.delta, bytes};
  if (range.version.id == 0) {
    put.content = std::make_shared<const std::vector<uint8_t>>(static_cast<size_t>(bytes));
    put.first = 0;
  } else if (const auto kept = kept_.find(range.version.id); kept != kept_.end()) {
    put.content = kept->second;
  } else {
    put.content = script_.contents[static_cast<size_t>(range.version.id - 1)].load();
  }
  return put;
}

void SidedRun::Bring(int side, int block, int64_t first, int64_t end) {
  ByteVersions& has = held_[side].blocks[block];
  for (const ByteVersions::Range& right : truth_[block].Of(first, end)) {
    for (const ByteVersions::Range& now : has.Of(right.first, right.end)) {
      if (now.version == right.version) continue;
      const ByteVersions::Range missing{now.first, now.end, right.version};
      PutBytes all{{block, missing.first}, nullptr, 0, missing.end - missing.first};
      if (IsHeldHere(missing.version)) {
        all = Source(block, missing);
      } else {
        all.content =
            std::make_shared<const std::vector<uint8_t>>(Fetch(block, missing.first, missing.end));
      }
      for (int64_t done = 0; done < all.bytes; done += kRequestBytes) {
        const int64_t bytes = std::min(kRequestBytes, all.bytes - done);
        Send(side, PutBytes{{block, all.to.offset + done}, all.content, all.first + done, bytes},
             bytes);
        bytes_put_ += bytes;
      }
      has.Set(missing.first, missing.end, missing.version);
    }
  }
}

std::vector<uint8_t> SidedRun::Fetch(int block, int64_t first, int64_t end) {
  std::vector<uint8_t> bytes(static_cast<size_t>(end - first));
  for (const ByteVersions::Range& range : truth_[block].Of(first, end)) {
    uint8_t* to = bytes.data() + (range.first - first);
    if (IsHeldHere(range.version)) {
      const PutBytes source = Source(block, range);
      std::memcpy(to, source.content->data() + source.first, static_cast<size_t>(source.bytes));
      continue;
    }
    const int holder = HolderOf(block, range);
    for (int64_t offset = range.first; offset < range.end; offset += kRequestBytes) {
      const int64_t piece = std::min(kRequestBytes, range.end - offset);
      uint8_t* target = to + (offset - range.first);
      Send(holder, TakeBytes{{block, offset}, piece}, piece, [target, piece](SideResult&& result) {
        if (static_cast<int64_t>(result.bytes.size()) != piece) {
          throw Error(ErrorKind::kDevice, "a side gave fewer bytes than were asked for.");
        }
        std::memcpy(target, result.bytes.data(), result.bytes.size());
      });
      bytes_taken_ += piece;
    }
    Flush(holder);
  }
  return bytes;
}

void SidedRun::NoteWritten(int side, int block, int64_t first, int64_t end) {
  const ByteVersion version{++last_id_, 0};
  truth_[block].Set(first, end, version);
  held_[side].blocks[block].Set(first, end, version);
}

ByteVersion SidedRun::Keep(Bytes content, int64_t first_byte) {
  kept_[++last_id_] = std::move(content);
  return {last_id_, -first_byte};
}

void SidedRun::Send(int side, SideCommand command, int64_t bytes,
                    std::function<void(SideResult&&)> wanted) {
  Held& held = held_[side];
  if (held.pending_bytes + bytes > kRequestBytes) Flush(side);
  held.pending.push_back(std::move(command));
  held.pending_bytes += bytes;
  if (wanted) held.wanted.push_back(std::move(wanted));
}

void SidedRun::Flush(int side) {
  Held& held = held_[side];
  if (held.pending.empty()) return;
  if (!held.prepared) {
    std::vector<int64_t> block_bytes;
    for (const ScriptBlock& block : script_.blocks) block_bytes.push_back(block.bytes);
    sides_[side]->Prepare(block_bytes);
    held.prepared = true;
  }
  std::vector<SideResult> results = sides_[side]->Perform(std::exchange(held.pending, {}));
  held.pending_bytes = 0;
  const auto wanted = std::exchange(held.wanted, {});
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i](std::move(results.at(i)));
}

}  // namespace acltape::replayer::sides
