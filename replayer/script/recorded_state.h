// What buffers held at a moment of the recorded program: recorded inputs and results of earlier
// leaves, laid over each other.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "replayer/session.h"

namespace acltape::replayer {

class RecordedState {
 public:
  explicit RecordedState(Session& session) : session_(session) {}

  // Bytes [first, end) of a buffer right before a leaf, what was brought for that leaf included.
  // Bytes that nothing recorded brought are 0. Throws Error kTrace, naming the call and the
  // recording option, when a result that they hold was not kept.
  std::vector<uint8_t> Content(int64_t buffer, int64_t first, int64_t end, int64_t before_leaf);

  // Throws as Content would, without loading anything.
  void Check(int64_t buffer, int64_t first, int64_t end, int64_t before_leaf);

  // Two moments with one version have one content: the last leaf that brought or wrote any of the
  // bytes; -1: none did.
  int64_t Version(int64_t buffer, int64_t first, int64_t end, int64_t before_leaf);

 private:
  // Content that the buffer got, in order of the program.
  struct Arrival {
    int64_t leaf = 0;
    const Feed* feed = nullptr;  // else a result
    int write = 0;
    int64_t first_byte = 0;
    int64_t end_byte = 0;
    bool whole = false;  // every byte in between
  };
  const std::vector<Arrival>& ArrivalsOf(int64_t buffer);
  // Those that count for a range, in order: from the last one that covers it all.
  std::vector<const Arrival*> Relevant(int64_t buffer, int64_t first, int64_t end,
                                       int64_t before_leaf);
  void IndexFeeds();

  Session& session_;
  bool indexed_ = false;
  std::unordered_map<int64_t, std::vector<const Feed*>> feeds_;  // by buffer
  std::unordered_map<int64_t, std::vector<Arrival>> arrivals_;   // the same
};

}  // namespace acltape::replayer
