// Stores contents of outputs by digest, each only once. They are in memory up to a limit, and
// beyond it in a temporary file without a name. So the values of a step with large outputs can be
// compared.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "replayer/values/contents.h"

namespace acltape::replayer::script {

class ValueStore {
 public:
  static constexpr int64_t kMemoryLimit = int64_t{512} << 20;  // the same as for recorded contents

  explicit ValueStore(int64_t memory_limit = kMemoryLimit) : memory_limit_(memory_limit) {}
  ~ValueStore();
  ValueStore(const ValueStore&) = delete;
  ValueStore& operator=(const ValueStore&) = delete;

  // Throws Error kDevice when the temporary file (in $TMPDIR, else /tmp) cannot be written.
  void Keep(const std::string& digest, const std::vector<uint8_t>& bytes);
  // Returns null if the content was not kept. Throws Error kDevice if the file cannot be read.
  Bytes Get(const std::string& digest) const;

  int64_t bytes_in_memory() const { return in_memory_; }
  int64_t bytes_in_file() const { return in_file_; }

 private:
  struct Place {
    Bytes bytes;  // null: they are in the file
    int64_t offset = 0;
    int64_t size = 0;
  };
  void OpenFile();

  const int64_t memory_limit_;
  std::unordered_map<std::string, Place> places_;
  int64_t in_memory_ = 0;
  int64_t in_file_ = 0;
  int file_ = -1;
};

}  // namespace acltape::replayer::script
