// Tells the content of each byte of a block, as a map from ranges of bytes to versions.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace acltape::replayer::sides {

// Two bytes with equal versions and equal positions in the content are equal. Version 0: never
// written, so all bytes are 0.
struct ByteVersion {
  int64_t id = 0;
  int64_t delta = 0;  // position in the block + delta = position in the content
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
  // Returns ranges in order and without gaps. Neighbours have different versions.
  std::vector<Range> Of(int64_t first, int64_t end) const;

 private:
  void Split(int64_t offset);
  std::map<int64_t, ByteVersion> from_{{0, {}}};  // version, by start of a range
};

}  // namespace acltape::replayer::sides
