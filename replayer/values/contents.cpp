#include "replayer/values/contents.h"

#include <unordered_set>

#include "analyzer/calls/record_more.h"
#include "base/hash.h"
#include "replayer/values/synthesise.h"
#include "storage/error.h"

namespace acltape::replayer {
namespace {

using analyzer::Leaf;
using analyzer::LeafKind;
using storage::DType;

// Returns the message for a content that the trace lacks.
std::string MissingText(const analyzer::Program& program, int64_t leaf, const std::string& what) {
  return program.Describe(leaf) + " needs " + what + ", which " + program.trace->path() +
         " does not hold; " + analyzer::HowToRecordInputs(*program.trace);
}

}  // namespace

Contents::Contents(const analyzer::Program& program, Data data, uint64_t seed)
    : program_(program), data_(data), seed_(seed) {
  bool any_payload = false;
  for (const Leaf& leaf : program.leaves) {
    for (const storage::Snapshot& snapshot : leaf.before) {
      any_payload = any_payload || snapshot.has_payload;
    }
    for (const storage::Snapshot& snapshot : leaf.after) {
      any_payload = any_payload || snapshot.has_payload;
      // Recorded results cannot be compared if the inputs are synthetic.
      if (leaf.kind == LeafKind::kKernel && data == Data::kRecorded) has_recorded_results_ = true;
    }
  }
  if (data == Data::kRecorded && !program.lacks.empty()) {
    throw Error(ErrorKind::kTrace, program.lacks);
  }
  if (data == Data::kRecorded && !any_payload) {
    bool needs_values = false;
    for (const auto& [id, use] : program.buffers) {
      needs_values = needs_values || (!use.accesses.empty() && !use.accesses.front().write);
    }
    for (const Leaf& leaf : program.leaves) {
      needs_values = needs_values || leaf.kind == LeafKind::kSource;
    }
    if (needs_values) {
      throw Error(ErrorKind::kTrace, program.trace->path() + " records no values; " +
                                         analyzer::HowToRecordInputs(*program.trace));
    }
  }
  if (data == Data::kSynthesised) statistics_ = storage::LoadStatistics(*program.trace);
  CollectFeeds();
}

void Contents::CollectFeeds() {
  std::unordered_set<int64_t> known;  // buffers with content: fed or written
  for (const Leaf& leaf : program_.leaves) {
    for (const storage::Snapshot& snapshot : leaf.before) {
      Feed feed;
      feed.leaf = leaf.index;
      feed.buffer_id = snapshot.tensor.buffer_id;
      feed.bytes = snapshot.bytes;
      feed.digest = snapshot.digest;
      feed.first_byte = analyzer::FirstByteOf(program_, snapshot);
      if (!snapshot.has_payload) {
        if (data_ == Data::kRecorded) {
          throw Error(ErrorKind::kTrace,
                      MissingText(program_, leaf.index,
                                  "the content of buffer " + std::to_string(feed.buffer_id)));
        }
        feed.digest.clear();
        feed.dtype = program_.LayoutOf(snapshot.tensor).dtype;
        for (const analyzer::TensorUse& use : program_.uses[leaf.index].reads) {
          if (use.tensor.buffer_id == feed.buffer_id) feed.dtype = use.layout->dtype;
        }
      }
      known.insert(feed.buffer_id);
      feeds_[leaf.index].push_back(feed);
    }
    // No replay executes an exchange, so what it is given may have no content.
    const bool executed = leaf.kind != LeafKind::kExchange;
    for (const analyzer::TensorUse& use : program_.uses[leaf.index].reads) {
      const int64_t buffer = use.tensor.buffer_id;
      if (!executed || use.layout->ElementCount() == 0 || !known.insert(buffer).second) continue;
      // Program::lacks has already named the missing contents of an ACL program more precisely.
      if (data_ == Data::kRecorded && program_.level == analyzer::Level::kAcl) continue;
      if (data_ == Data::kRecorded) {
        throw Error(
            ErrorKind::kTrace,
            MissingText(program_, leaf.index, "the content of buffer " + std::to_string(buffer)));
      }
      Feed feed;
      feed.leaf = leaf.index;
      feed.buffer_id = buffer;
      feed.bytes = program_.buffers.at(buffer).bytes;
      feed.dtype = use.layout->dtype;
      feeds_[leaf.index].push_back(feed);
    }
    for (const analyzer::TensorUse& use : program_.uses[leaf.index].writes) {
      known.insert(use.tensor.buffer_id);
    }
  }
}

const std::vector<Feed>& Contents::FeedsOf(int64_t leaf) const {
  const auto found = feeds_.find(leaf);
  return found == feeds_.end() ? none_ : found->second;
}

void Contents::Forget() {
  cache_.clear();
  cached_bytes_ = 0;
}

void Contents::KeepAtMost(int64_t bytes) {
  most_cached_bytes_ = bytes;
  if (cached_bytes_ > bytes) Forget();
}

Bytes Contents::GetPayload(const std::string& digest) {
  const auto found = cache_.find(digest);
  if (found != cache_.end()) return found->second;
  Bytes bytes = program_.Payload(digest);
  if (bytes == nullptr) return nullptr;
  const auto size = static_cast<int64_t>(bytes->size());
  if (size > most_cached_bytes_) return bytes;
  if (cached_bytes_ + size > most_cached_bytes_) Forget();
  cached_bytes_ += size;
  cache_.emplace(digest, bytes);
  return bytes;
}

Bytes Contents::Get(const Feed& feed) {
  if (feed.digest.empty()) {
    const storage::Snapshot* snapshot = nullptr;
    for (const storage::Snapshot& own : program_.leaves[feed.leaf].before) {
      if (own.tensor.buffer_id == feed.buffer_id) snapshot = &own;
    }
    return Synthesise(feed.dtype, feed.bytes, static_cast<uint64_t>(feed.buffer_id), snapshot);
  }
  Bytes bytes = GetPayload(feed.digest);
  if (bytes == nullptr) {
    throw Error(ErrorKind::kTrace,
                MissingText(program_, feed.leaf,
                            "the content of buffer " + std::to_string(feed.buffer_id)));
  }
  return bytes;
}

Bytes Contents::GetResult(const Leaf& leaf, const analyzer::TensorUse& use) {
  const storage::Snapshot* snapshot = analyzer::RecordedResult(leaf, use);
  if (snapshot != nullptr && snapshot->has_payload) return GetPayload(snapshot->digest);
  if (data_ == Data::kRecorded) return nullptr;
  return Synthesise(use.layout->dtype,
                    use.layout->ElementCount() * storage::DTypeBytes(use.layout->dtype),
                    static_cast<uint64_t>(leaf.call.call_id) * 16 + use.argument, snapshot);
}

Bytes Contents::Synthesise(DType dtype, int64_t bytes, uint64_t key,
                           const storage::Snapshot* snapshot) const {
  const storage::Statistics* statistics = nullptr;
  if (snapshot != nullptr) {
    const auto found = statistics_.find(storage::KeyOf(*snapshot));
    if (found != statistics_.end()) statistics = &found->second;
  }
  return std::make_shared<const std::vector<uint8_t>>(
      replayer::Synthesise(dtype, bytes, base::SpreadBits(seed_) + key, statistics));
}

}  // namespace acltape::replayer
