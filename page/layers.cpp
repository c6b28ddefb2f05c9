#include "page/layers.h"

#include <algorithm>
#include <unordered_set>

#include "meaning/dialects.h"
#include "storage/database.h"

namespace acltape::page {
namespace {

// Blocks at one address follow each other in time. More of them than this are not looked at.
constexpr int kMostCandidates = 64;

// The calls of the device's interface that allocated a buffer.
std::unordered_set<int64_t> DeviceAllocations(const storage::Reader& trace) {
  std::unordered_set<int64_t> calls;
  storage::Statement rows(trace.database(),
                          "SELECT b.alloc_call, o.dialect FROM buffer_row b "
                          "CROSS JOIN call_row c ON c.call_id = b.alloc_call "
                          "JOIN signature s ON s.signature_id = c.signature_id "
                          "JOIN op o ON o.op_id = s.op_id WHERE ifnull(b.flags, 0) >> 8 > 0");
  while (rows.Next()) {
    if (meaning::IsAclDialect(rows.Text(1))) calls.insert(rows.Integer(0));
  }
  return calls;
}

bool Holds(const LivingBuffer& block, const LivingBuffer& tensor) {
  return block.device == tensor.device && block.address <= tensor.address &&
         tensor.address + tensor.bytes <= block.address + block.bytes &&
         block.begin_ns <= tensor.begin_ns && (block.end_ns == 0 || tensor.begin_ns < block.end_ns);
}

}  // namespace

std::string_view LayerName(Layer layer) { return layer == Layer::kBlock ? "block" : "tensor"; }

Layer LayerNamed(std::string_view name) {
  return name == LayerName(Layer::kBlock) ? Layer::kBlock : Layer::kTensor;
}

void InferLayers(const storage::Reader& trace, std::vector<LivingBuffer>& buffers) {
  const std::unordered_set<int64_t> allocations = DeviceAllocations(trace);
  std::vector<const LivingBuffer*> blocks;
  for (LivingBuffer& buffer : buffers) {
    if (buffer.device == 0 || !allocations.contains(buffer.alloc_call)) continue;
    buffer.layer = Layer::kBlock;
    blocks.push_back(&buffer);
  }
  const auto by_address = [](const LivingBuffer* a, const LivingBuffer* b) {
    return a->address < b->address;
  };
  std::stable_sort(blocks.begin(), blocks.end(), by_address);
  for (LivingBuffer& buffer : buffers) {
    if (buffer.device == 0 || buffer.layer == Layer::kBlock) continue;
    auto after = std::upper_bound(blocks.begin(), blocks.end(), &buffer, by_address);
    for (int seen = 0; after != blocks.begin() && seen < kMostCandidates; ++seen) {
      --after;
      if (!Holds(**after, buffer)) continue;
      buffer.block = (*after)->id;
      break;
    }
  }
}

}  // namespace acltape::page
