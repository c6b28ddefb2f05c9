// The bytes of each buffer whose values a replay reproduces: issued work wrote them, or the
// recording gave them. All other memory of a program holds whatever it held before. It is left out
// of comparisons.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "analyzer/acl/acl_program.h"

namespace acltape::replayer::acl_level {

class KnownBytes {
 public:
  void Add(int64_t buffer_id, int64_t first, int64_t end) { sets_[buffer_id].Add(first, end); }
  // Adds the bytes that a call of the program writes. A copy makes only those bytes known that are
  // known at its source.
  void AddWrites(const analyzer::AclCall& call);
  // Adds all bytes that a call writes, also those that are not known at the source of a copy.
  void AddAllWrites(const analyzer::AclCall& call);
  const analyzer::ByteSet& Of(int64_t buffer_id) { return sets_[buffer_id]; }

 private:
  std::unordered_map<int64_t, analyzer::ByteSet> sets_;
};

}  // namespace acltape::replayer::acl_level
