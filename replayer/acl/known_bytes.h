// Which bytes of each buffer hold values that a replay computes too: written by issued work, or
// given by the recording. The rest of a program's memory is whatever it was before; such bytes are
// left out of comparisons.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "analyzer/acl_program.h"

namespace acltape::replayer {

class KnownBytes {
 public:
  void Add(int64_t buffer_id, int64_t first, int64_t end) { sets_[buffer_id].Add(first, end); }
  // What a call of the program writes. A copy makes known what is known at its source.
  void AddWrites(const analyzer::AclCall& call);
  // The same, whatever is known at the sources of copies.
  void AddAllWrites(const analyzer::AclCall& call);
  const analyzer::ByteSet& Of(int64_t buffer_id) { return sets_[buffer_id]; }

 private:
  std::unordered_map<int64_t, analyzer::ByteSet> sets_;
};

}  // namespace acltape::replayer
