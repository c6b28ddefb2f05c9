#include "replayer/against/call_runner.h"

#include <map>

#include "replayer/memory_plan.h"
#include "storage/packing.h"

namespace acltape::replayer {
namespace {

using analyzer::TensorUse;

void Reserve(Device& device, Block::Kind kind, int64_t bytes, Block& block) {
  if (static_cast<int64_t>(block.bytes()) >= bytes) return;
  block = Block();
  block = Block(device, kind, static_cast<size_t>(bytes + bytes / 2 + kDeviceAlignment));
}

}  // namespace

CallResults CallRunner::Run(int64_t leaf, const Input& input) {
  Device& device = execution_.device();
  const analyzer::Program& program = execution_.program();
  const analyzer::LeafUses& uses = program.uses[leaf];
  // The inputs come first, because `input` may run another call in the same memory.
  std::vector<std::vector<uint8_t>> contents;
  for (const TensorUse& read : uses.reads) {
    contents.push_back(read.layout->ElementCount() == 0 ? std::vector<uint8_t>() : input(read));
  }
  std::map<int64_t, int64_t> offsets;  // by buffer
  int64_t bytes = 0;
  int64_t result_bytes = 0;
  for (const storage::Argument& argument : program.leaves[leaf].arguments) {
    if (!argument.HoldsTensors()) continue;
    for (const storage::TensorRef& tensor : argument.tensors) {
      if (tensor.buffer_id == 0 || !offsets.emplace(tensor.buffer_id, bytes).second) continue;
      bytes += AlignUp(program.buffers.at(tensor.buffer_id).bytes);
    }
  }
  for (const TensorUse& write : uses.writes) {
    result_bytes += AlignUp(write.layout->EndByte() - write.layout->FirstByte());
  }
  Reserve(device, Block::Kind::kDevice, bytes, scratch_);
  Reserve(device, Block::Kind::kPinned, result_bytes, results_);

  const auto place = [&](int64_t buffer, const storage::Layout& layout) {
    return scratch_.data() + offsets.at(buffer) + layout.byte_offset;
  };
  const BoundLeaf bound = execution_.Bind(leaf, place);
  for (size_t r = 0; r < uses.reads.size(); ++r) {
    if (contents[r].empty()) continue;
    const TensorUse& read = uses.reads[r];
    execution_.uploader().Upload(
        scratch_.data() + offsets.at(read.tensor.buffer_id) + read.layout->FirstByte(),
        contents[r].data(), contents[r].size());
  }
  execution_.Launch(bound);
  std::vector<uint8_t*> brought;
  uint8_t* next = results_.data();
  for (const TensorUse& write : uses.writes) {
    const int64_t span = write.layout->EndByte() - write.layout->FirstByte();
    brought.push_back(next);
    if (write.layout->ElementCount() == 0) continue;
    device.Download(
        next, scratch_.data() + offsets.at(write.tensor.buffer_id) + write.layout->FirstByte(),
        static_cast<size_t>(span));
    next += AlignUp(span);
  }
  device.Synchronize();

  CallResults results;
  for (size_t w = 0; w < uses.writes.size(); ++w) {
    const storage::Layout& layout = *uses.writes[w].layout;
    std::vector<uint8_t> content(layout.ElementCount() * storage::DTypeBytes(layout.dtype));
    if (content.empty()) {
      // The result has no elements.
    } else if (layout.IsDense()) {
      content.assign(brought[w], brought[w] + content.size());
    } else {
      PackRowMajor(layout, brought[w] + (layout.byte_offset - layout.FirstByte()), content.data());
    }
    results.push_back(std::make_shared<const std::vector<uint8_t>>(std::move(content)));
  }
  return results;
}

}  // namespace acltape::replayer
