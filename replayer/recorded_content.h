// What a buffer held when the recorded program reached a call: recorded inputs and results of
// earlier calls, laid over each other in the order of the recording.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyzer/byte_set.h"
#include "analyzer/program.h"

namespace acltape::replayer {

class RecordedContent {
 public:
  // The program must outlive it.
  explicit RecordedContent(const analyzer::Program& program);

  // Bytes [0, end) of a buffer before a leaf, inputs that the program brought for that very leaf
  // included. Bytes that no recorded call wrote and no input brought are 0, and so are those that
  // the trace did not keep unless `needed` has them: then Error kTrace, naming the call and the
  // recording option that keeps values.
  std::vector<uint8_t> Before(int64_t buffer_id, int64_t leaf, int64_t end,
                              const analyzer::ByteSet& needed) const;
  // All of the buffer, all of it needed.
  std::vector<uint8_t> Before(int64_t buffer_id, int64_t leaf) const;

 private:
  // Something that gave the buffer content: an input before the leaf, or a result of it.
  struct Event {
    int64_t leaf = 0;
    const storage::Snapshot* input = nullptr;  // else a result
    int write = 0;                             // index in LeafUses::writes
  };
  // The bytes that it may have written, and those that it has written for certain.
  void AddTouched(const Event& event, analyzer::ByteSet& set) const;
  void AddCovered(const Event& event, analyzer::ByteSet& set) const;
  // False when the trace does not hold the bytes.
  bool Load(const Event& event, std::vector<uint8_t>& content) const;

  const analyzer::Program& program_;
  std::unordered_map<int64_t, std::vector<Event>> events_;  // by buffer, in order
};

}  // namespace acltape::replayer
