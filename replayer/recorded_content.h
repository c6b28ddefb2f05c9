// What a buffer held when the recorded program reached a call: recorded inputs and results of
// earlier calls, laid over each other in the order of the recording.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "analyzer/byte_set.h"
#include "analyzer/program.h"
#include "replayer/contents.h"

namespace acltape::replayer {

class RecordedContent {
 public:
  // With the contents of a replay, synthetic ones included, or null: straight from the trace, of
  // which parts may then be missing. Both must outlive it.
  explicit RecordedContent(const analyzer::Program& program, Contents* contents = nullptr)
      : program_(program), contents_(contents) {}

  // Something else in the place of what a leaf wrote (index in LeafUses::writes): null leaves the
  // recorded result; else in order of address where the layout is dense, row-major where not.
  using Replacements = std::function<Bytes(int64_t leaf, size_t write)>;
  void Replace(Replacements replacements) { replacements_ = std::move(replacements); }

  // Bytes of a buffer right before a leaf, what was brought for that very leaf included. Bytes that
  // nothing recorded brought are 0, and so are those that the trace did not keep unless `needed`
  // has them: then Error kTrace, naming the call and the recording option that keeps values.
  std::vector<uint8_t> Before(int64_t buffer, analyzer::ByteRange range, int64_t leaf,
                              const analyzer::ByteSet& needed);
  // All of the range is needed.
  std::vector<uint8_t> Before(int64_t buffer, analyzer::ByteRange range, int64_t leaf);

  // Throws as Before would, without loading anything.
  void Check(int64_t buffer, analyzer::ByteRange range, int64_t leaf);

  // Two moments with one version have one content: the last leaf that brought or wrote any of the
  // bytes; -1: none did.
  int64_t Version(int64_t buffer, analyzer::ByteRange range, int64_t leaf);

 private:
  // Something that gave the buffer content.
  struct Arrival {
    int64_t leaf = 0;
    const Feed* feed = nullptr;                  // an input before the leaf, else
    const analyzer::TensorUse* write = nullptr;  // a result of it
    analyzer::ByteRange range;
    bool whole = false;  // every byte in between
  };
  // The bytes that it may have written, and those that it has written for certain.
  static void AddTouched(const Arrival& arrival, analyzer::ByteSet& set);
  static void AddCovered(const Arrival& arrival, analyzer::ByteSet& set);
  const std::vector<Arrival>& ArrivalsOf(int64_t buffer);
  // Those that count for a range, in order.
  std::vector<const Arrival*> Relevant(int64_t buffer, analyzer::ByteRange range, int64_t leaf);
  // Throws when needed bytes of an arrival that is not kept are not written again by later ones.
  void CheckKept(const std::vector<const Arrival*>& relevant, int64_t buffer,
                 analyzer::ByteRange range, int64_t leaf, const analyzer::ByteSet& needed) const;
  const storage::Snapshot* ResultOf(const Arrival& arrival) const;
  Bytes Replacement(const Arrival& arrival) const;
  bool IsKept(const Arrival& arrival) const;
  Bytes Load(const Arrival& arrival) const;
  void IndexFeeds();

  const analyzer::Program& program_;
  Contents* const contents_;
  Replacements replacements_;
  bool indexed_ = false;
  std::vector<Feed> own_feeds_;                                  // without contents
  std::unordered_map<int64_t, std::vector<const Feed*>> feeds_;  // by buffer
  std::unordered_map<int64_t, std::vector<Arrival>> arrivals_;   // the same
};

}  // namespace acltape::replayer
