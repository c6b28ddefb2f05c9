#include "replayer/against/call_runner.h"

#include <algorithm>
#include <map>

#include "replayer/device/memory_plan.h"
#include "replayer/engine/leaf_writer.h"
#include "replayer/engine/script_machine.h"
#include "storage/packing.h"

namespace acltape::replayer::against {
namespace {

using analyzer::TensorUse;

// The blocks of the script.
enum : int { kNothing, kScratch, kWorkspace, kTemporaries };

// Bytes of a buffer.
struct Span {
  explicit Span(int64_t byte) : first(byte), end(byte) {}
  int64_t first;
  int64_t end;
};

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
  // The block holds the bytes of each buffer that the call's tensors span: an adapter's pool
  // reserves far more than the device has.
  std::map<int64_t, Span> spans;  // by buffer
  for (const storage::Argument& argument : program.leaves[leaf].arguments) {
    if (!argument.HoldsTensors()) continue;
    for (const storage::TensorRef& tensor : argument.tensors) {
      if (tensor.buffer_id == 0) continue;
      const storage::Layout& layout = program.LayoutOf(tensor);
      Span& span = spans.try_emplace(tensor.buffer_id, layout.FirstByte()).first->second;
      span.first = std::min(span.first, layout.FirstByte());
      span.end = std::max(span.end, layout.EndByte());
    }
  }
  std::map<int64_t, int64_t> offsets;  // by buffer; its first byte may lie before the block
  int64_t bytes = 0;
  for (auto& [buffer, span] : spans) {
    span.first -= span.first % kDeviceAlignment;
    offsets.emplace(buffer, bytes - span.first);
    bytes += AlignUp(span.end - span.first);
  }
  int64_t result_bytes = 0;
  for (const TensorUse& write : uses.writes) {
    result_bytes += AlignUp(write.layout->EndByte() - write.layout->FirstByte());
  }
  Reserve(device, Block::Kind::kDevice, bytes, scratch_);
  Reserve(device, Block::Kind::kPinned, result_bytes, results_);

  Script script;
  script.blocks = {{"nothing"}, {"scratch"}, {"workspace"}, {"temporaries"}};
  const auto spot_of = [&](int64_t buffer, const storage::Layout& layout) {
    return Spot{kScratch, offsets.at(buffer) + layout.byte_offset};
  };
  for (size_t r = 0; r < uses.reads.size(); ++r) {
    if (contents[r].empty()) continue;
    const auto size = static_cast<int64_t>(contents[r].size());
    const auto content = std::make_shared<const std::vector<uint8_t>>(std::move(contents[r]));
    script.operations.push_back(
        UploadTo{spot_of(uses.reads[r].tensor.buffer_id, *uses.reads[r].layout),
                 static_cast<int>(script.contents.size()), 0, size});
    script.contents.push_back({"", size, [content] { return content; }});
  }
  const LeafMemory memory{spot_of, {kNothing, 0}, {kTemporaries, 0}, {kWorkspace, 0}};
  WriteLaunches(
      AddCalls(program.leaves[leaf], execution_.lowered().lowerings[leaf], memory, script), 0,
      script.operations);
  ScriptMachine machine(device, execution_.uploader(), script);
  machine.Give(kNothing, execution_.nothing());
  machine.Give(kScratch, scratch_.data());
  machine.Give(kWorkspace, execution_.workspace());
  machine.Give(kTemporaries, execution_.temporaries());
  machine.Prepare();
  machine.Run(script.operations, nullptr, nullptr);

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

}  // namespace acltape::replayer::against
