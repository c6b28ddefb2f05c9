#include "analyzer/acl/host_memory.h"

#include <algorithm>
#include <cstring>

namespace acltape::analyzer {

HostMemory::HostMemory(const AclProgram& program,
                       const std::function<Content(const std::string& digest)>& payload) {
  std::map<int64_t, Content> images;
  for (const AclCall& call : program.calls) {
    if (call.fate != AclFate::kIssued) continue;
    for (const storage::Snapshot& snapshot : call.before) {
      const auto buffer = program.buffers.find(snapshot.tensor.buffer_id);
      if (snapshot.position >= 0 || buffer == program.buffers.end() || !buffer->second.host) {
        continue;
      }
      const Content bytes = payload(snapshot.digest);
      if (bytes == nullptr) continue;
      Content& image = images[buffer->first];
      auto changed = image == nullptr ? std::make_shared<std::vector<uint8_t>>()
                                      : std::make_shared<std::vector<uint8_t>>(*image);
      const auto first =
          static_cast<size_t>(program.trace->GetLayout(snapshot.tensor.layout_id).FirstByte());
      changed->resize(std::max(changed->size(), first + bytes->size()));
      std::memcpy(changed->data() + first, bytes->data(), bytes->size());
      image = std::move(changed);
    }
    if (IsExecution(call.kind()) && !images.empty()) images_[call.index] = images;
  }
}

HostMemory::Content HostMemory::At(int64_t execution, int64_t buffer) const {
  const auto images = images_.find(execution);
  if (images == images_.end()) return nullptr;
  const auto image = images->second.find(buffer);
  return image == images->second.end() ? nullptr : image->second;
}

}  // namespace acltape::analyzer
