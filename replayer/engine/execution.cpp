#include "replayer/engine/execution.h"

#include <algorithm>
#include <cstring>

#include "replayer/device/memory_plan.h"
#include "replayer/engine/leaf_writer.h"
#include "replayer/engine/script_machine.h"

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

uint64_t Execution::Probe(int64_t leaf) {
  const AddressOf anywhere = [this](const analyzer::lowering::LoweredTensor&) {
    return nothing_.data();
  };
  try {
    uint64_t bytes = 0;
    for (const analyzer::lowering::Invocation& invocation : lowered_.lowerings[leaf].invocations) {
      bytes = std::max(bytes, BoundCall(device_, invocation, anywhere).Probe(device_));
    }
    return bytes;
  } catch (const UnsupportedOperator& cause) {
    throw LeafRefused(program().leaves[leaf].Name(), cause.what());
  }
}

std::string Execution::ProbeUpdate(int64_t leaf) {
  if (!device_.work().CanUpdate()) return "the device library has no task updates";
  enum : int { kNothing, kTemporaries, kWorkspace };
  Script script;
  script.blocks = {{"nothing"}, {"temporaries"}, {"workspace"}};
  script.graphs = 1;
  script.groups = 1;
  const LeafMemory memory{[](int64_t, const storage::Layout&) {
                            return Spot{kNothing, 0};
                          },
                          {kNothing, 0},
                          {kTemporaries, 0},
                          {kWorkspace, 0}};
  const CallRange calls =
      AddCalls(program().leaves[leaf], lowered_.lowerings[leaf], memory, script);
  std::vector<Operation>& operations = script.operations;
  operations = {BeginCapture{0, ACL_MODEL_RI_CAPTURE_MODE_RELAXED}, BeginGroup{0, 0}};
  WriteLaunches(calls, 0, operations);
  operations.insert(operations.end(), {EndGroup{0, 0}, EndCapture{0}, BeginUpdate{0, 0}});
  WriteLaunches(calls, 0, operations);
  operations.insert(operations.end(), {EndUpdate{0, 0}, SynchronizeAll{}});
  ScriptMachine machine(device_, uploader_, script);
  machine.Give(kNothing, nothing_.data());
  machine.Give(kTemporaries, temporaries_.data());
  machine.Give(kWorkspace, workspace_);
  machine.Prepare();
  try {
    machine.Run(operations, nullptr, nullptr);
  } catch (const std::runtime_error& cause) {
    return cause.what();
  }
  return "";
}

}  // namespace acltape::replayer
