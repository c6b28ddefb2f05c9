#include "analyzer/memory/reuse.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "analyzer/calls/overlap.h"

namespace acltape::analyzer::memory {
namespace {

// The bytes of one buffer that captured calls use.
struct CapturedUse {
  int64_t first = 0;
  int64_t end = 0;
  int64_t model = 0;
  uint32_t call = 0;
  bool write = false;
  const storage::Layout* layout = nullptr;
};

}  // namespace

std::vector<LateRead> FindLateReads(const Work& work, const BufferLives& lives,
                                    std::span<const std::vector<uint32_t>> executions) {
  struct Result {
    size_t execution = 0;
    size_t place = 0;
  };
  std::unordered_map<int64_t, Result> results;  // by buffer: results that live on
  for (size_t e = 0; e + 1 < executions.size(); ++e) {
    const std::vector<uint32_t>& calls = executions[e];
    for (size_t place = 0; place < calls.size(); ++place) {
      work.VisitAccesses(calls[place], [&](const ByteAccess& access) {
        if (!access.write) return;
        const BufferLife& life = *lives.Find(access.buffer);
        const bool made_here = life.first_access == calls[place] && life.made_by_write;
        if (made_here && life.last_use >= executions[e + 1].front()) {
          results.try_emplace(access.buffer, Result{e, place});
        }
      });
    }
  }
  std::vector<LateRead> late;
  if (results.empty()) return late;
  for (size_t e = 1; e < executions.size(); ++e) {
    // The range is from the start of this execution to that of the next one, or to the end of the
    // program.
    const std::unordered_set<uint32_t> own(executions[e].begin(), executions[e].end());
    const auto end =
        static_cast<uint32_t>(e + 1 < executions.size() ? executions[e + 1].front() : work.size());
    for (uint32_t call = executions[e].front(); call < end; ++call) {
      work.VisitAccesses(call, [&](const ByteAccess& access) {
        const auto result = results.find(access.buffer);
        if (result == results.end() || result->second.execution >= e) return;
        if (access.write) {  // memory of the program, which executions share
          results.erase(result);
          return;
        }
        const auto [made, place] = result->second;
        if (own.contains(call) && made + 1 == e) return;  // copied before this execution
        late.push_back({made, access.buffer, executions[made][place], call,
                        executions[own.contains(call) ? e - 1 : e][place]});
        results.erase(result);
      });
    }
  }
  return late;
}

std::vector<SharedBytes> FindSharedBytes(const Work& work) {
  std::map<int64_t, std::vector<CapturedUse>> uses;  // by buffer
  for (size_t call = 0; call < work.size(); ++call) {
    const WorkCall& row = work.calls[call];
    const auto index = static_cast<uint32_t>(call);
    if (row.model_id == 0) continue;
    work.VisitAccesses(call, [&](const ByteAccess& access) {
      uses[access.buffer].push_back(
          {access.first, access.end, row.model_id, index, access.write, access.form->layout});
    });
  }
  std::map<std::pair<int64_t, int64_t>, SharedBytes> found;
  OverlapTable overlaps;
  for (auto& [buffer, of_buffer] : uses) {
    std::sort(of_buffer.begin(), of_buffer.end(),
              [](const CapturedUse& a, const CapturedUse& b) { return a.first < b.first; });
    std::vector<const CapturedUse*> open;  // uses that reach past the current first byte
    for (const CapturedUse& use : of_buffer) {
      std::erase_if(open, [&](const CapturedUse* other) { return other->end <= use.first; });
      for (const CapturedUse* other : open) {
        if (other->model == use.model || !(other->write || use.write)) continue;
        const bool earlier = other->model < use.model;  // ids grow in the order of captures
        const CapturedUse& a = earlier ? *other : use;
        const CapturedUse& b = earlier ? use : *other;
        if (found.contains({a.model, b.model}) || !overlaps.Share(a.layout, b.layout)) continue;
        found[{a.model, b.model}] = {
            a.model, b.model, buffer, std::max(a.first, b.first), std::min(a.end, b.end),
            a.call,  b.call};
      }
      open.push_back(&use);
    }
  }
  std::vector<SharedBytes> rows;
  rows.reserve(found.size());
  for (const auto& [models, row] : found) rows.push_back(row);
  return rows;
}

}  // namespace acltape::analyzer::memory
