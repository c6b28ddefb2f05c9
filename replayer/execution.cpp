#include "replayer/execution.h"

#include <algorithm>
#include <cstring>

#include "replayer/captured_graph.h"
#include "replayer/memory_plan.h"

namespace acltape::replayer {
namespace {

constexpr size_t kRingBytes = size_t{16} << 20;

}  // namespace

HomeMemory::HomeMemory(Device& device, const analyzer::Program& program,
                       const std::vector<Need>& needs) {
  std::vector<Life> lives;
  for (const Need& need : needs) {
    Life life;
    life.buffer_id = need.buffer_id;
    life.bytes = program.buffers.at(need.buffer_id).bytes;
    life.first = need.first_leaf;
    life.last = need.last_leaf;
    lives.push_back(life);
  }
  arena_ = Block(device, Block::Kind::kDevice, PlanMemory(lives));
  for (const Life& life : lives) offsets_[life.buffer_id] = life.offset;
}

uint8_t* HomeMemory::Find(int64_t buffer_id) const {
  const auto found = offsets_.find(buffer_id);
  return found == offsets_.end() ? nullptr : arena_.data() + found->second;
}

int64_t HomeMemory::OffsetOf(int64_t buffer_id) const {
  const auto found = offsets_.find(buffer_id);
  if (found != offsets_.end()) return found->second;
  throw Error(ErrorKind::kDevice, "buffer " + std::to_string(buffer_id) + " has no device memory");
}

Uploader::Uploader(Device& device)
    : device_(device), ring_(device, Block::Kind::kPinned, kRingBytes) {}

uint8_t* Uploader::Reserve(size_t bytes) {
  if (used_ + bytes > ring_.bytes()) {
    device_.Synchronize();  // so that no earlier upload still reads the ring
    used_ = 0;
    if (bytes > ring_.bytes()) {
      ring_ = Block();
      ring_ = Block(device_, Block::Kind::kPinned, bytes);
    }
  }
  uint8_t* piece = ring_.data() + used_;
  used_ += AlignUp(static_cast<int64_t>(bytes));
  return piece;
}

void Uploader::Upload(uint8_t* device, const uint8_t* values, size_t bytes) {
  if (bytes == 0) return;
  uint8_t* piece = Reserve(bytes);
  std::memcpy(piece, values, bytes);
  device_.Upload(device, piece, bytes);
}

Execution::Execution(Device& device, const LoweredProgram& lowered, Contents& contents)
    : device_(device),
      lowered_(lowered),
      contents_(contents),
      workspace_(device),
      uploader_(device),
      temporaries_(device, Block::Kind::kDevice,
                   std::max<int64_t>(lowered.temporary_bytes, kDeviceAlignment)),
      nothing_(device, Block::Kind::kDevice, kDeviceAlignment) {}

BoundLeaf Execution::Bind(int64_t leaf, const Place& place, uint8_t* temporary_memory) {
  BoundLeaf bound;
  bound.leaf = leaf;
  const auto address = [&](const analyzer::TensorUse& use) -> uint8_t* {
    return use.layout->ElementCount() == 0 ? nothing_.data()
                                           : place(use.tensor.buffer_id, *use.layout);
  };
  for (const analyzer::TensorUse& use : program().uses[leaf].reads) {
    bound.reads.push_back(address(use));
  }
  for (const analyzer::TensorUse& use : program().uses[leaf].writes) {
    bound.writes.push_back(address(use));
  }
  const analyzer::Lowering& lowering = lowered_.lowerings[leaf];
  std::vector<uint8_t*> temporaries;
  uint8_t* next = temporary_memory != nullptr ? temporary_memory : temporaries_.data();
  for (const int64_t bytes : lowering.temporaries) {
    temporaries.push_back(next);
    next += AlignUp(bytes);
  }
  const AddressOf address_of = [&](const analyzer::LoweredTensor& tensor) -> uint8_t* {
    if (tensor.layout.ElementCount() == 0) return nothing_.data();
    if (tensor.temporary >= 0) return temporaries[tensor.temporary] + tensor.layout.byte_offset;
    return place(tensor.buffer_id, tensor.layout);
  };
  try {
    for (const analyzer::Invocation& invocation : lowering.invocations) {
      bound.calls.emplace_back(device_, invocation, address_of);
    }
  } catch (const UnsupportedOperator& cause) {
    throw LeafRefused(program().leaves[leaf].Name(), cause.what());
  }
  return bound;
}

uint64_t Execution::Probe(int64_t leaf) {
  const Place anywhere = [this](int64_t, const storage::Layout&) { return nothing_.data(); };
  const BoundLeaf bound = Bind(leaf, anywhere);
  try {
    uint64_t bytes = 0;
    for (const BoundCall& call : bound.calls) bytes = std::max(bytes, call.Probe(device_));
    return bytes;
  } catch (const UnsupportedOperator& cause) {
    throw LeafRefused(program().leaves[leaf].Name(), cause.what());
  }
}

std::string Execution::ProbeUpdate(int64_t leaf) {
  const acl::Api& api = device_.api();
  if (api.aclmdlRICaptureTaskGrpBegin == nullptr || api.aclmdlRICaptureTaskGrpEnd == nullptr ||
      api.aclmdlRICaptureTaskUpdateBegin == nullptr ||
      api.aclmdlRICaptureTaskUpdateEnd == nullptr) {
    return "the device library has no task updates";
  }
  const BoundLeaf bound =
      Bind(leaf, [this](int64_t, const storage::Layout&) { return nothing_.data(); });
  const aclrtStream stream = device_.stream();
  aclrtTaskGrp group = nullptr;
  std::string refusal;
  Capture capture(device_, stream);
  capture.Begin();
  try {
    device_.Check(api.aclmdlRICaptureTaskGrpBegin(stream), "aclmdlRICaptureTaskGrpBegin");
    Launch(bound);
    device_.Check(api.aclmdlRICaptureTaskGrpEnd(stream, &group), "aclmdlRICaptureTaskGrpEnd");
  } catch (const std::runtime_error& cause) {
    refusal = cause.what();
  }
  CapturedGraph graph;
  const int ended = capture.TryEnd(graph);
  if (refusal.empty() && ended != 0) refusal = "its task group cannot be captured";
  if (refusal.empty()) {
    try {
      device_.Check(api.aclmdlRICaptureTaskUpdateBegin(stream, group),
                    "aclmdlRICaptureTaskUpdateBegin");
      Launch(bound);
      device_.Check(api.aclmdlRICaptureTaskUpdateEnd(stream), "aclmdlRICaptureTaskUpdateEnd");
      device_.Synchronize();
    } catch (const std::runtime_error& cause) {
      refusal = cause.what();
      api.aclmdlRICaptureTaskUpdateEnd(stream);
    }
  }
  return refusal;
}

void Execution::Launch(const BoundLeaf& bound, Workspace& workspace, aclrtStream stream) {
  const auto reserve = [&](uint64_t bytes) { return workspace.Reserve(bytes); };
  try {
    for (const BoundCall& call : bound.calls) call.Run(device_, stream, reserve);
  } catch (const UnsupportedOperator& cause) {
    throw LeafRefused(program().leaves[bound.leaf].Name(), cause.what());
  }
}

void Execution::Put(const Feed& feed, uint8_t* address) {
  const Bytes bytes = contents_.Get(feed);
  uploader_.Upload(address + feed.first_byte, bytes->data(), bytes->size());
}

}  // namespace acltape::replayer
