// How far a spool goes: which claims of slots it has records of, and how many bytes of each.
#pragma once

#include <cstdint>
#include <vector>

namespace acltape::collector {

// The latest log of one slot.
struct SpooledLog {
  uint32_t log = 0;
  uint32_t slot = 0;
  uint32_t generation = 0;
  uint64_t taken = 0;  // bytes of records since the claim
  bool ended = false;
};

struct SpoolContents {
  uint64_t end =
      0;  // end of the last whole entry; the recorder may have been killed in the next one
  uint32_t logs = 0;  // logs that were opened
  bool closed = false;
  std::vector<SpooledLog> slots;  // oldest log first
};

// Reads the heads of all entries. Needs memory for as many logs as are open at a time.
SpoolContents ReadContents(int file);

}  // namespace acltape::collector
