#include "replayer/contents.h"

#include <cmath>
#include <cstring>
#include <random>
#include <unordered_set>

#include "storage/error.h"

namespace acltape::replayer {
namespace {

using analyzer::Leaf;
using analyzer::LeafKind;
using storage::DType;

constexpr char kRemedy[] = "record with --payload inputs or --payload all";

// What a leaf cannot do without when it is a source, or is replaced by its results.
std::string MissingText(const analyzer::Program& program, int64_t leaf, const std::string& what) {
  return program.Describe(leaf) + " needs " + what + ", which " + program.trace->path() +
         " does not hold; " + kRemedy;
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
      if (leaf.kind == LeafKind::kKernel) has_recorded_results_ = true;
    }
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
      throw Error(ErrorKind::kTrace, program.trace->path() + " records no values; " + kRemedy);
    }
  }
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
      if (!snapshot.has_payload) {
        if (data_ == Data::kRecorded) {
          throw Error(ErrorKind::kTrace,
                      MissingText(program_, leaf.index,
                                  "the content of buffer " + std::to_string(feed.buffer_id)));
        }
        feed.digest.clear();
        for (const analyzer::TensorUse& use : program_.uses[leaf.index].reads) {
          if (use.tensor.buffer_id == feed.buffer_id) feed.dtype = use.layout->dtype;
        }
      }
      known.insert(feed.buffer_id);
      feeds_[leaf.index].push_back(feed);
    }
    for (const analyzer::TensorUse& use : program_.uses[leaf.index].reads) {
      const int64_t buffer = use.tensor.buffer_id;
      if (use.layout->ElementCount() == 0 || !known.insert(buffer).second) continue;
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

Bytes Contents::GetPayload(const std::string& digest) {
  const auto found = cache_.find(digest);
  if (found != cache_.end()) return found->second;
  if (!program_.trace->HasPayload(digest)) return nullptr;
  auto bytes = std::make_shared<const std::vector<uint8_t>>(program_.trace->Payload(digest));
  constexpr int64_t kCacheBytes = int64_t{512} << 20;
  if (cached_bytes_ + static_cast<int64_t>(bytes->size()) > kCacheBytes) {
    cache_.clear();
    cached_bytes_ = 0;
  }
  cached_bytes_ += static_cast<int64_t>(bytes->size());
  cache_.emplace(digest, bytes);
  return bytes;
}

Bytes Contents::Get(const Feed& feed) {
  if (feed.digest.empty()) {
    return Synthesise(feed.dtype, feed.bytes, static_cast<uint64_t>(feed.buffer_id));
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
                    static_cast<uint64_t>(leaf.call.call_id) * 16 + use.argument);
}

// Numbers around zero for floating types; zeros for the others, because integers may be indices.
Bytes Contents::Synthesise(DType dtype, int64_t bytes, uint64_t key) const {
  auto content = std::make_shared<std::vector<uint8_t>>(bytes, uint8_t{0});
  std::mt19937_64 random(seed_ * 0x9e3779b97f4a7c15u + key);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  const auto fill = [&](auto convert) {
    using T = decltype(convert(0.0f));
    for (size_t at = 0; at + sizeof(T) <= content->size(); at += sizeof(T)) {
      const T value = convert(uniform(random));
      std::memcpy(content->data() + at, &value, sizeof value);
    }
  };
  if (dtype == DType::kFloat32 || dtype == DType::kComplex64) fill([](float x) { return x; });
  if (dtype == DType::kFloat64) fill([](float x) { return static_cast<double>(x); });
  if (dtype == DType::kBfloat16) {
    fill([](float x) {
      uint32_t bits;
      std::memcpy(&bits, &x, sizeof bits);
      return static_cast<uint16_t>(bits >> 16);
    });
  }
  if (dtype == DType::kFloat16) {  // sign and three bits of mantissa in [0.5, 1) or (-1, -0.5]
    fill([](float x) {
      const auto mantissa = static_cast<uint16_t>(std::fabs(x) * 1023.0f);
      return static_cast<uint16_t>((x < 0 ? 0x8000 : 0) | 0x3800 | mantissa);
    });
  }
  return content;
}

}  // namespace acltape::replayer
