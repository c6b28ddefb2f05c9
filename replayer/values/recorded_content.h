// Restores the content that a buffer had when the recorded program reached a call. It applies
// recorded inputs and results of earlier calls in the order of the recording.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/calls/byte_set.h"
#include "analyzer/program/program.h"
#include "replayer/values/contents.h"

namespace acltape::replayer {

class RecordedContent {
 public:
  // `contents` are those of a replay and may be synthetic. If it is null, values come directly from
  // the trace, which may lack some. Both arguments must outlive the object.
  explicit RecordedContent(const analyzer::Program& program, Contents* contents = nullptr)
      : program_(program), contents_(contents) {}

  // Returns a replacement for the result that a leaf wrote (index in LeafUses::writes). Null keeps
  // the recorded result. The elements are in order of address if the layout is dense, else in
  // row-major order.
  using Replacements = std::function<Bytes(int64_t leaf, size_t write)>;
  void Replace(Replacements replacements) { replacements_ = std::move(replacements); }

  // Returns the bytes of a buffer directly before a leaf, with the inputs that were recorded for
  // this leaf. Bytes that nothing recorded wrote are 0. Bytes that the trace did not keep are 0
  // too, unless they are in `needed`: then Error kTrace is thrown. It names the call and the
  // recording option that keeps values.
  std::vector<uint8_t> Before(int64_t buffer, analyzer::ByteRange range, int64_t leaf,
                              const analyzer::ByteSet& needed);
  // Does the same with the whole range needed.
  std::vector<uint8_t> Before(int64_t buffer, analyzer::ByteRange range, int64_t leaf);

  // Throws if Before would throw, without loading contents.
  void Check(int64_t buffer, analyzer::ByteRange range, int64_t leaf,
             const analyzer::ByteSet& needed);

  // Returns the last leaf that brought or wrote any of the bytes; -1 if none did. Two moments with
  // the same version have the same content, unless that leaf both got an input and wrote the bytes.
  int64_t Version(int64_t buffer, analyzer::ByteRange range, int64_t leaf);

 private:
  // An event that gave bytes of the buffer a content.
  struct Arrival {
    int64_t leaf = 0;
    const Feed* feed = nullptr;                  // an input that arrived before the leaf, or null
    const analyzer::TensorUse* write = nullptr;  // a result of the leaf, or null
    analyzer::ByteRange range;
    bool whole = false;  // every byte of the range was written
  };
  // AddTouched adds the bytes that an arrival may have written. AddCovered adds the bytes that it
  // has certainly written.
  static void AddTouched(const Arrival& arrival, analyzer::ByteSet& set);
  static void AddCovered(const Arrival& arrival, analyzer::ByteSet& set);
  const std::vector<Arrival>& ArrivalsOf(int64_t buffer);
  std::string Remedy(const Arrival& arrival) const;
  // Returns the arrivals that determine the content of a range, in order.
  std::vector<const Arrival*> Relevant(int64_t buffer, analyzer::ByteRange range, int64_t leaf);
  // Throws if the trace did not keep an arrival whose needed bytes no later arrival overwrites.
  void CheckKept(const std::vector<const Arrival*>& relevant, int64_t buffer,
                 analyzer::ByteRange range, int64_t leaf, const analyzer::ByteSet& needed);
  const storage::Snapshot* ResultOf(const Arrival& arrival) const;
  // Computes the result of a copy or a fill of an ACL program. These are recorded without results,
  // because the result follows from the arguments. Returns null for any other arrival, or if the
  // source of a copy was not kept.
  Bytes Derived(const Arrival& arrival);
  Bytes Replacement(const Arrival& arrival) const;
  bool IsKept(const Arrival& arrival);
  Bytes Load(const Arrival& arrival);
  void IndexFeeds();

  const analyzer::Program& program_;
  Contents* const contents_;
  Replacements replacements_;
  bool indexed_ = false;
  std::vector<Feed> own_feeds_;                                  // used if there are no contents
  std::unordered_map<int64_t, std::vector<const Feed*>> feeds_;  // by buffer
  std::unordered_map<int64_t, std::vector<Arrival>> arrivals_;   // by buffer
  std::unordered_map<int64_t, Bytes> derived_;                   // by leaf
};

}  // namespace acltape::replayer
