#include "replayer/sides/call_executor.h"

#include <algorithm>

#include "storage/packing.h"
#include "storage/payload.h"

namespace acltape::replayer::sides {
namespace {

// Larger contents are uploaded in pieces of this size, so that pinned memory stays small.
constexpr int64_t kPieceBytes = int64_t{8} << 20;

[[noreturn]] void Refuse(const std::string& what, const std::string& why) {
  throw Error(ErrorKind::kUsage, what + " " + why);
}

// Returns the number of bytes from element 0 of a tensor to its end.
int64_t BytesFromZero(const storage::Layout& layout) {
  const int64_t element = storage::DTypeBytes(layout.dtype);
  if (element <= 0 || layout.shape.size() != layout.strides.size()) {
    Refuse("a tensor", "has no element type, or not as many strides as dimensions");
  }
  __int128 last = 0;
  for (size_t d = 0; d < layout.shape.size(); ++d) {
    if (layout.shape[d] < 0 || layout.strides[d] < 0) Refuse("a tensor", "has a negative extent");
    if (layout.shape[d] == 0) return 0;
    last += static_cast<__int128>(layout.shape[d] - 1) * layout.strides[d];
    if (last > (__int128{1} << 56)) Refuse("a tensor", "is larger than any memory");
  }
  return static_cast<int64_t>((last + 1) * element);
}

}  // namespace

CallExecutor::CallExecutor(const std::string& library)
    : device_(library), uploader_(device_), workspace_(device_) {}

void CallExecutor::Prepare(const std::vector<int64_t>& block_bytes) {
  device_.Synchronize();
  blocks_.clear();
  for (const int64_t asked : block_bytes) {
    const auto bytes = static_cast<size_t>(std::max<int64_t>(asked, 1));
    blocks_.emplace_back(device_, Block::Kind::kDevice, bytes).Fill(0);
  }
}

std::vector<SideResult> CallExecutor::Perform(const std::vector<SideCommand>& commands) {
  std::vector<SideResult> results;
  for (const SideCommand& command : commands) {
    std::visit([&](const auto& own) { Do(own, results); }, command);
  }
  device_.Synchronize();
  return results;
}

uint8_t* CallExecutor::At(const Spot& spot, int64_t bytes, const char* what) const {
  if (spot.block < 0 || static_cast<size_t>(spot.block) >= blocks_.size()) {
    Refuse(what,
           "names block " + std::to_string(spot.block) + " of " + std::to_string(blocks_.size()));
  }
  const auto have = static_cast<int64_t>(blocks_[spot.block].bytes());
  if (spot.offset < 0 || bytes < 0 || spot.offset > have || bytes > have - spot.offset) {
    Refuse(what, "reaches " + std::to_string(bytes) + " bytes from " + std::to_string(spot.offset) +
                     " on, in a block of " + std::to_string(have));
  }
  return blocks_[spot.block].data() + spot.offset;
}

uint8_t* CallExecutor::ElementZero(int block, const storage::Layout& layout) const {
  return At({block, layout.byte_offset}, BytesFromZero(layout), "a tensor");
}

const uint8_t* CallExecutor::Download(const uint8_t* from, int64_t bytes) {
  const auto wanted = static_cast<size_t>(bytes);
  if (staging_.bytes() < wanted) {
    staging_ = Block();
    staging_ = Block(device_, Block::Kind::kPinned, wanted + wanted / 4);
  }
  device_.Download(staging_.data(), from, wanted);
  device_.Synchronize();
  return staging_.data();
}

void CallExecutor::Do(const PutBytes& put, std::vector<SideResult>& /*results*/) {
  uint8_t* to = At(put.to, put.bytes, "a put");
  const auto have = static_cast<int64_t>(put.content->size());
  if (put.first < 0 || put.first > have || put.bytes > have - put.first) {
    Refuse("a put", "names bytes that its content does not have");
  }
  for (int64_t done = 0; done < put.bytes; done += kPieceBytes) {
    const int64_t bytes = std::min(kPieceBytes, put.bytes - done);
    uploader_.Upload(to + done, put.content->data() + put.first + done, static_cast<size_t>(bytes));
  }
}

void CallExecutor::Do(const TakeBytes& take, std::vector<SideResult>& results) {
  const uint8_t* from = At(take.from, take.bytes, "a take");
  SideResult& result = results.emplace_back();
  if (take.bytes == 0) return;
  const uint8_t* bytes = Download(from, take.bytes);
  result.bytes.assign(bytes, bytes + take.bytes);
}

void CallExecutor::Do(const MoveBytes& move, std::vector<SideResult>& /*results*/) {
  uint8_t* to = At(move.to, move.bytes, "a copy");
  device_.Copy(to, At(move.from, move.bytes, "a copy"), static_cast<size_t>(move.bytes));
}

void CallExecutor::Do(const CallOperator& call, std::vector<SideResult>& /*results*/) {
  const AddressOf address_of = [this](const analyzer::lowering::LoweredTensor& tensor) {
    return ElementZero(tensor.memory.block(), tensor.layout);
  };
  const auto reserve = [this](uint64_t bytes) { return workspace_.Reserve(bytes); };
  try {
    BoundCall(device_, call.invocation, address_of).Run(device_, device_.stream(), reserve);
  } catch (const std::runtime_error& cause) {
    throw Error(ErrorKind::kDevice, "call " + std::to_string(call.call_id) + " (" +
                                        call.invocation.op + "): " + cause.what());
  }
}

void CallExecutor::Do(const TakeDigest& take, std::vector<SideResult>& results) {
  storage::Layout layout = take.layout;
  layout.byte_offset = take.element_zero.offset;
  const uint8_t* from = ElementZero(take.element_zero.block, layout);
  const int64_t span = BytesFromZero(layout);
  std::vector<uint8_t> packed(
      static_cast<size_t>(layout.ElementCount() * storage::DTypeBytes(layout.dtype)));
  if (span != 0) PackRowMajor(take.layout, Download(from, span), packed.data());
  results.emplace_back().digest = storage::DigestOf(packed.data(), packed.size());
}

}  // namespace acltape::replayer::sides
