// A set of ids of rows, for tables whose ids are almost dense: one bit for each id. It tells how
// many rows a table has without reading it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace acltape::storage {

class IdSet {
 public:
  // Returns true if the id was not in the set. Returns false if it was, and also once the set has
  // given up: an id that is far above the number of ids would cost too much memory.
  bool Add(int64_t id) {
    if (gave_up_ || id < 0 || id > kSlack + kMostSparse * size_) {
      gave_up_ = true;
      present_ = {};
      return false;
    }
    const auto place = static_cast<size_t>(id);
    if (place >= present_.size()) present_.resize(std::max(place + 1, 2 * present_.size()));
    if (present_[place]) return false;
    present_[place] = true;
    ++size_;
    return true;
  }

  // The number of different ids. Empty when the set has given up.
  std::optional<int64_t> size() const {
    return gave_up_ ? std::nullopt : std::optional<int64_t>(size_);
  }

 private:
  static constexpr int64_t kSlack = int64_t{1} << 22;  // half a megabyte
  static constexpr int64_t kMostSparse = 64;           // ids for each one that is present

  bool gave_up_ = false;
  int64_t size_ = 0;
  std::vector<bool> present_;
};

}  // namespace acltape::storage
