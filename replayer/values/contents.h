// The values that a replay puts on the device: recorded contents, or seeded synthetic contents if
// the recording has none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/program/program.h"
#include "replayer/values/replay_options.h"
#include "replayer/values/replay_report.h"
#include "storage/statistics.h"

namespace acltape::replayer {

// A content that a buffer gets before a leaf: an input at its first read, or a change that no
// recorded call made.
struct Feed {
  int64_t leaf = 0;
  int64_t buffer_id = 0;
  int64_t bytes = 0;
  std::string digest;                             // empty: synthetic
  storage::DType dtype = storage::DType::kUint8;  // type of synthetic content
  int64_t first_byte = 0;                         // its position in the buffer
  int64_t end_byte() const { return first_byte + bytes; }
};

using Bytes = std::shared_ptr<const std::vector<uint8_t>>;

class Contents {
 public:
  // Most bytes of contents that stay in memory between uses, unless KeepAtMost sets another limit.
  static constexpr int64_t kKeptBytes = int64_t{512} << 20;

  // Throws Error kTrace if `data` is kRecorded and the trace lacks values that the program needs.
  Contents(const analyzer::Program& program, Data data, uint64_t seed);

  // Returns the feeds of a leaf, in order. Most leaves have none.
  const std::vector<Feed>& FeedsOf(int64_t leaf) const;

  Bytes Get(const Feed& feed);
  // Returns the recorded result of a written tensor, packed as its snapshot says. If it was not
  // recorded, returns a synthetic result where these are allowed, else null.
  Bytes GetResult(const analyzer::Leaf& leaf, const analyzer::TensorUse& use);
  // Returns the content with this digest; null if the trace does not hold it.
  Bytes GetPayload(const std::string& digest);

  // Limits the bytes of contents that stay in memory between uses. A content larger than the limit
  // is read from the trace each time. Contents that a caller holds are not counted.
  void KeepAtMost(int64_t bytes);
  int64_t kept_bytes() const { return cached_bytes_; }

  bool synthetic() const { return data_ == Data::kSynthesised; }
  // True if there are recorded results to compare with.
  bool has_recorded_results() const { return has_recorded_results_; }

 private:
  // Makes a synthetic content. It follows the statistics of the snapshot if the trace has them.
  // `snapshot` may be null.
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
  std::map<storage::SnapshotKey, storage::Statistics> statistics_;  // for synthetic contents
  std::unordered_map<std::string, Bytes> cache_;
  int64_t cached_bytes_ = 0;
  int64_t most_cached_bytes_ = kKeptBytes;
};

}  // namespace acltape::replayer
