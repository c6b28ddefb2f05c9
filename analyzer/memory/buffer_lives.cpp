#include "analyzer/memory/buffer_lives.h"

#include <algorithm>

namespace acltape::analyzer::memory {

BufferLives::BufferLives(const Work& work) {
  for (size_t call = 0; call < work.size(); ++call) {
    const auto index = static_cast<uint32_t>(call);
    for (const int64_t buffer : work.buffers(call)) {
      if (buffer != 0) lives_[buffer].last_use = index;
    }
    work.VisitAccesses(call, [&](const ByteAccess& access) {
      BufferLife& life = lives_[access.buffer];
      life.bytes = std::max(life.bytes, access.end);
      if (life.first_access != UINT32_MAX) {
        // The call reads and writes the buffer, and the write is among its first arguments.
        if (life.first_access == index && !access.write) life.made_by_write = false;
        return;
      }
      life.first_access = index;
      life.made_by_write = access.write;
    });
  }
}

const BufferLife* BufferLives::Find(int64_t buffer) const {
  const auto found = lives_.find(buffer);
  return found == lives_.end() || found->second.first_access == UINT32_MAX ? nullptr
                                                                           : &found->second;
}

}  // namespace acltape::analyzer::memory
