// The bytes of each buffer whose values a replay reproduces: issued work wrote them, or the
// recording gave them. All other memory of a program holds whatever it held before. It is left out
// of comparisons.
//
// Some bytes are in doubt: a collective in a graph writes them, which a rank that is replayed alone
// leaves out, or work writes them that reads such bytes. They differ from the recording without a
// fault of the program.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "analyzer/acl/acl_program.h"

namespace acltape::replayer::acl_level {

class KnownBytes {
 public:
  // `together`: the other ranks are there, so collectives run. The trace must outlive the object.
  KnownBytes(const storage::Reader& trace, bool together) : trace_(trace), together_(together) {}

  void Add(int64_t buffer_id, int64_t first, int64_t end) {
    sets_[buffer_id].Add(first, end);
    const auto doubt = doubt_.find(buffer_id);
    if (doubt != doubt_.end()) doubt->second.Remove(first, end);
  }
  // Adds the bytes that a call of the program writes, and sets which of them are in doubt.
  void AddWrites(const analyzer::AclCall& call);
  // The two parts of that, for calls of a graph. A copy makes only those bytes known that are known
  // at its source.
  void AddKnownWrites(const analyzer::AclCall& call);
  void SetDoubt(const analyzer::AclCall& call);
  // Adds all bytes that a call writes, also those that are not known at the source of a copy.
  void AddAllWrites(const analyzer::AclCall& call);
  const analyzer::ByteSet& Of(int64_t buffer_id) { return sets_[buffer_id]; }
  const analyzer::ByteSet& InDoubt(int64_t buffer_id) const {
    const auto doubt = doubt_.find(buffer_id);
    return doubt == doubt_.end() ? none_ : doubt->second;
  }

 private:
  const storage::Reader& trace_;
  const bool together_;
  std::unordered_map<int64_t, analyzer::ByteSet> sets_;
  std::unordered_map<int64_t, analyzer::ByteSet> doubt_;
  analyzer::ByteSet none_;  // stays empty
};

}  // namespace acltape::replayer::acl_level
