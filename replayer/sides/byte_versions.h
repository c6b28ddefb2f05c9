// Which content each byte of a block is: a map from ranges of bytes to versions.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace acltape::replayer {

// Two places with equal versions have equal bytes. `id` 0: never written, all 0.
struct ByteVersion {
  int64_t id = 0;
  int64_t delta = 0;  // byte of the block + delta: byte of the content
  bool operator==(const ByteVersion&) const = default;
};

class ByteVersions {
 public:
  struct Range {
    int64_t first = 0;
    int64_t end = 0;
    ByteVersion version;
  };

  void Set(int64_t first, int64_t end, ByteVersion version);
  // In order, without gaps, neighbours different.
  std::vector<Range> Of(int64_t first, int64_t end) const;

 private:
  void Split(int64_t at);
  std::map<int64_t, ByteVersion> from_{{0, {}}};  // begin of a range to its version
};

}  // namespace acltape::replayer
