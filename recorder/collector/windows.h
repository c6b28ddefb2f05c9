// The windows of a recording (Note [Windows] in recorder/wire/arena.h), one row for each process
// and window.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "storage/writer.h"

namespace acltape::collector {

class Windows {
 public:
  // The work of the threads of a process in one window.
  struct Window {
    storage::RecordedWindow row;
    int64_t entered_at_call = 0;  // no smaller id lies in it
    bool used = false;            // a call lies in it
    bool changed = false;         // since its row was written
    bool dropped = false;

    void Add(int64_t call_id, int64_t end_ns) {
      if (!used || call_id < row.first_call) row.first_call = call_id;
      if (!used || call_id > row.last_call) row.last_call = call_id;
      row.end_ns = std::max(row.end_ns, end_ns);
      used = changed = true;
    }
  };

  explicit Windows(storage::Writer& writer) : writer_(writer) {}

  // A thread of the process enters the window that the process counts as `number`. The reference
  // stays valid.
  Window& Enter(int64_t process_id, uint32_t number, int64_t next_call, int64_t at_ns);
  // Writes the rows of windows that have changed.
  void Write();

  // Windows that hold calls.
  int64_t count() const { return written_ - dropped_; }

  // Windows that have begun, whatever became of them.
  size_t begun() const { return windows_.size(); }
  // The part of the trace that is left when each process keeps its newest windows and the oldest of
  // the others goes; nothing when there is no other.
  struct Cut {
    int64_t first_call = 0;
    int64_t begin_ns = 0;
  };
  std::optional<Cut> CutOldest();

 private:
  storage::Writer& writer_;
  std::map<std::pair<int64_t, uint32_t>, Window*> known_;
  std::deque<Window> windows_;
  int64_t written_ = 0;
  int64_t dropped_ = 0;
};

}  // namespace acltape::collector
