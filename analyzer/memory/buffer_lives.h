// The begin and end of each buffer's life in a program, by the calls that use it.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "analyzer/calls/work.h"

namespace acltape::analyzer::memory {

struct BufferLife {
  uint32_t first_access =
      UINT32_MAX;              // index in Work::calls of the first call that reads or writes
  bool made_by_write = false;  // its first call writes it without having read it
  uint32_t last_use = 0;       // the last call that names it, including views
  int64_t bytes = 0;           // up to the last byte that a call reads or writes
};

class BufferLives {
 public:
  explicit BufferLives(const Work& work);
  // Returns null for a buffer that no call reads or writes.
  const BufferLife* Find(int64_t buffer) const;

 private:
  std::unordered_map<int64_t, BufferLife> lives_;
};

}  // namespace acltape::analyzer::memory
