// Finds copies between pinned memory of the host and a device that the host did not wait for before
// it used the memory again: it fills a buffer anew while the copy of the former content may still
// be waiting, or reads a result that the copy may not have brought yet.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/calls/work.h"

namespace acltape::analyzer::lint {

struct HostMemoryUse {
  uint32_t copy = 0;        // the leaf that asks for the copy, an index in `leaves`
  uint32_t call = 0;        // the copy on the device, an index in `calls`
  uint32_t use = 0;         // the leaf of the host that uses the memory, an index in `leaves`
  bool overwrites = false;  // false: it reads what the copy brings
  // True if the memory had changed when `use` read it, although no leaf wrote it: the program wrote
  // it past PyTorch, as NumPy does.
  bool unseen = false;
};

// False if no call copies between memory that the ACL level knows: there is nothing to find.
bool HasCopiesOfPinnedMemory(const Work& calls);

// `leaves` are those of the host too. Only memory counts that the ACL level knows as pinned, in one
// tensor: what an allocator gives to another tensor meanwhile is its own care. Each pair of copy
// and use is one row.
std::vector<HostMemoryUse> FindHostMemoryUses(const Work& leaves, const Work& calls);

}  // namespace acltape::analyzer::lint
