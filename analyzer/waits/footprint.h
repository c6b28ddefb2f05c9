// The bytes that a set of device work reads and writes, for the question whether later work, or the
// host, relies on an order between the two.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "analyzer/calls/byte_set.h"
#include "analyzer/calls/work.h"

namespace acltape::analyzer::waits {

class Footprint {
 public:
  void Add(const ByteAccess& access) {
    (access.write ? writes_ : reads_)[access.buffer].Add(access.first, access.end);
  }
  // True if the access must stay in order with the set: one of them writes what the other touches.
  bool Conflicts(const ByteAccess& access) const {
    return Touches(writes_, access) || (access.write && Touches(reads_, access));
  }
  bool Names(int64_t buffer) const { return reads_.contains(buffer) || writes_.contains(buffer); }

  // True if the work may use memory of the host. What the program does there is in no trace.
  bool host = false;
  // True if the trace does not tell all that the work uses, or all that it waits for.
  bool not_known = false;

  template <typename Visit>
  void VisitAccesses(Visit&& visit) const {
    VisitSets(reads_, false, visit);
    VisitSets(writes_, true, visit);
  }

 private:
  using Sets = std::unordered_map<int64_t, ByteSet>;
  static bool Touches(const Sets& sets, const ByteAccess& access) {
    const auto found = sets.find(access.buffer);
    return found != sets.end() && !found->second.Within(access.first, access.end).empty();
  }
  template <typename Visit>
  static void VisitSets(const Sets& sets, bool write, Visit&& visit) {
    for (const auto& [buffer, set] : sets) {
      for (const ByteRange& range : set.Within(INT64_MIN, INT64_MAX)) {
        visit(ByteAccess{buffer, range.first, range.end, write, nullptr});
      }
    }
  }

  Sets reads_;
  Sets writes_;
};

// The footprints of the calls of a work of the ACL level. An execution has that of its graph, which
// is put together once.
class Footprints {
 public:
  explicit Footprints(const Work& work);

  // True if the call puts work on a stream outside of captures.
  bool IsWork(size_t call) const;
  // True if nobody knows what the call does to memory: a function without a row, a host function, a
  // branch of a model.
  bool IsOpaque(size_t call) const;
  // Adds what the call uses.
  void AddTo(Footprint& footprint, size_t call) const;
  // The graph that the call executes; 0: none.
  int64_t ModelOf(size_t call) const;
  // True if the call must stay in order with the work of the footprint. Work that nobody knows
  // does.
  bool Conflicts(const Footprint& footprint, size_t call) const;
  // The calls that a graph holds; null if the trace has none.
  const std::vector<uint32_t>* StoredCalls(int64_t model) const;

 private:
  const Footprint* OfModel(size_t call) const;
  void AddOwn(Footprint& footprint, size_t call) const;

  const Work& work_;
  std::unordered_map<int64_t, std::vector<uint32_t>> stored_;  // by model
  std::unordered_map<int64_t, Footprint> models_;
};

}  // namespace acltape::analyzer::waits
