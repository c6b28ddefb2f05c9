#include "analyzer/lint/rewritten_sources.h"

#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analyzer/calls/acl_uses.h"
#include "analyzer/calls/byte_set.h"
#include "analyzer/lint/ordered_walk.h"
#include "analyzer/streams/race_checker.h"
#include "storage/database.h"

namespace acltape::analyzer::lint {
namespace {

using K = AclCallKind;

// Bytes of pinned memory with the content that a call found there.
struct FoundContent {
  ByteAccess bytes;
  std::string digest;
};

class RewrittenSourceFinder {
 public:
  explicit RewrittenSourceFinder(const Work& calls) : calls_(calls) {}

  std::vector<RewrittenSource> Find() {
    FindContents();
    if (contents_.empty()) return {};
    FindWrittenByDevice();
    Walk();
    return std::move(rows_);
  }

 private:
  const storage::Buffer& BufferOf(int64_t id) const { return calls_.trace->GetBuffer(id); }

  // Contents that copies had at their source, and executions in pinned memory that their graphs
  // copy from.
  void FindContents() {
    storage::Statement rows(calls_.trace->database(),
                            "SELECT call_id, tensor_id, digest FROM snapshot WHERE moment = "
                            "'before' AND position IN (-1, ?) ORDER BY call_id");
    rows.Bind(1, int64_t{kCopyFrom});
    while (rows.Next()) {
      const int64_t call = calls_.Find(rows.Integer(0));
      if (call < 0) continue;
      const K kind = calls_.form(static_cast<size_t>(call)).acl_kind();
      if (kind != K::kCopyAsync && !IsExecution(kind)) continue;
      const int64_t buffer = rows.Integer(1) >> 24, layout_id = rows.Integer(1) & 0xffffff;
      if (buffer == 0 || BufferOf(buffer).device != 0) continue;
      const storage::Layout& layout = calls_.trace->GetLayout(layout_id);
      const ByteAccess bytes{buffer, layout.FirstByte(), layout.EndByte(), false, nullptr};
      contents_[static_cast<size_t>(call)].push_back({bytes, std::string(rows.Text(2))});
    }
  }

  void FindWrittenByDevice() {
    for (size_t i = 0; i < calls_.size(); ++i) {
      calls_.VisitAccesses(i, [&](const ByteAccess& access) {
        if (access.write && BufferOf(access.buffer).device == 0) {
          by_device_[access.buffer].Add(access.first, access.end);
        }
      });
    }
  }

  void Walk() {
    using Source = std::tuple<int64_t, int64_t, int64_t>;  // buffer, first, end
    std::map<Source, std::string> last;
    streams::RaceChecker checker;
    OrderedWalk walk(calls_, checker, [&](size_t i) {
      const auto found = contents_.find(i);
      if (found == contents_.end()) return;
      for (const FoundContent& content : found->second) {
        checker.Work(static_cast<int64_t>(i), calls_.calls[i].stream_id, {&content.bytes, 1});
      }
    });
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (!OrderedWalk::Counts(calls_, i)) continue;
      const auto found = contents_.find(i);
      for (size_t c = 0; found != contents_.end() && c < found->second.size(); ++c) {
        const auto& [bytes, digest] = found->second[c];
        const auto [before, is_new] =
            last.try_emplace({bytes.buffer, bytes.first, bytes.end}, digest);
        if (is_new || before->second == digest) continue;
        before->second = digest;
        if (!by_device_[bytes.buffer].Within(bytes.first, bytes.end).empty()) continue;
        ByteAccess written = bytes;
        written.write = true;
        checker.Work(-1 - static_cast<int64_t>(i), streams::RaceChecker::kHost, {&written, 1});
      }
      walk.Call(i);
    }
    walk.End();
    for (const streams::Race& race : checker.races()) {
      if (race.first < 0 || race.second >= 0) continue;
      const auto copy = static_cast<size_t>(race.first),
                 next = static_cast<size_t>(-1 - race.second);
      if (!ReadTheSame(copy, next, race.buffer)) continue;
      if (!rows_.empty() && rows_.back().next == next) continue;
      rows_.push_back({static_cast<uint32_t>(copy), static_cast<uint32_t>(next)});
    }
  }

  // True if both calls found the same range, with different contents. A copy of a part of it may
  // have read bytes that are equal.
  bool ReadTheSame(size_t copy, size_t next, int64_t buffer) const {
    for (const FoundContent& one : contents_.at(copy)) {
      if (one.bytes.buffer != buffer) continue;
      for (const FoundContent& other : contents_.at(next)) {
        const bool same = other.bytes.buffer == buffer && one.bytes.first == other.bytes.first &&
                          one.bytes.end == other.bytes.end && one.digest != other.digest;
        if (same) return true;
      }
    }
    return false;
  }

  const Work& calls_;
  std::unordered_map<size_t, std::vector<FoundContent>> contents_;  // by call
  std::unordered_map<int64_t, ByteSet> by_device_;                  // by buffer
  std::vector<RewrittenSource> rows_;
};

}  // namespace

std::vector<RewrittenSource> FindRewrittenSources(const Work& calls) {
  return RewrittenSourceFinder(calls).Find();
}

}  // namespace acltape::analyzer::lint
