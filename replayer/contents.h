// The values that a replay puts on the device: recorded contents, or seeded synthetic ones where
// the recording has none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/program.h"
#include "replayer/replay.h"
#include "storage/statistics.h"

namespace acltape::replayer {

// Content that a buffer gets before a leaf: an input at its first read, or after a change that no
// recorded call made.
struct Feed {
  int64_t leaf = 0;
  int64_t buffer_id = 0;
  int64_t bytes = 0;                              // from the start of the buffer
  std::string digest;                             // empty: synthetic
  storage::DType dtype = storage::DType::kUint8;  // of synthetic content
};

using Bytes = std::shared_ptr<const std::vector<uint8_t>>;

class Contents {
 public:
  // Bytes of contents that stay in memory between uses, unless KeepAtMost says otherwise.
  static constexpr int64_t kKeptBytes = int64_t{512} << 20;

  // Throws Error kTrace when `data` is kRecorded and the trace lacks values that the program needs.
  Contents(const analyzer::Program& program, Data data, uint64_t seed);

  // Feeds of a leaf, in order; empty for most.
  const std::vector<Feed>& FeedsOf(int64_t leaf) const;

  Bytes Get(const Feed& feed);
  // The recorded result of a written tensor, packed as its snapshot says; synthetic where allowed;
  // null when there is none.
  Bytes GetResult(const analyzer::Leaf& leaf, const analyzer::TensorUse& use);
  // By digest; null when the trace does not hold it.
  Bytes GetPayload(const std::string& digest);

  // Bounds the contents of the trace that stay in memory between uses; one that is larger than all
  // that may stay is read from the trace each time. What a caller holds is not counted.
  void KeepAtMost(int64_t bytes);
  int64_t kept_bytes() const { return cached_bytes_; }

  bool synthetic() const { return data_ == Data::kSynthesised; }
  // Whether any recorded result can be compared against.
  bool has_recorded_results() const { return has_recorded_results_; }

 private:
  // With the statistics of the snapshot, where the trace has them. It may be null.
  Bytes Synthesise(storage::DType dtype, int64_t bytes, uint64_t key,
                   const storage::Snapshot* snapshot) const;
  void CollectFeeds();
  void Forget();

  const analyzer::Program& program_;
  const Data data_;
  const uint64_t seed_;
  bool has_recorded_results_ = false;
  std::unordered_map<int64_t, std::vector<Feed>> feeds_;
  std::vector<Feed> none_;
  std::map<storage::SnapshotKey, storage::Statistics> statistics_;  // of synthetic contents
  std::unordered_map<std::string, Bytes> cache_;
  int64_t cached_bytes_ = 0;
  int64_t most_cached_bytes_ = kKeptBytes;
};

}  // namespace acltape::replayer
