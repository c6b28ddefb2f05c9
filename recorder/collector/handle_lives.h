// Joins what different rings tell of one stream, event or model into one row: its creation and its
// end can come from two threads, in either order.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "recorder/wire/records.h"
#include "storage/writer.h"

namespace acltape::collector {

class HandleLives {
 public:
  explicit HandleLives(storage::Writer& writer) : writer_(writer) {}

  void Take(const wire::HandleRecord& record, int64_t process_id);

  // Writes the rows of what lives and has changed, so that a trace whose collector is killed has
  // them.
  void WriteLiving();

 private:
  struct Life {
    storage::Handle row;
    wire::HandleKind kind = wire::HandleKind::kStream;
    bool created = false;
    bool changed = false;
  };
  void Write(const Life& life);

  storage::Writer& writer_;
  std::unordered_map<uint64_t, Life> lives_;
};

}  // namespace acltape::collector
