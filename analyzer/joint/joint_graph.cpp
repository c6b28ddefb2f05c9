#include "analyzer/joint/joint_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "analyzer/calls/byte_set.h"
#include "analyzer/graph/hazards.h"
#include "analyzer/prediction/resource.h"

namespace acltape::analyzer::joint {
namespace {

using storage::Phase;

// True if the call writes into an argument. The schema or the bytes tell.
bool WritesInPlace(const WorkForm& form) {
  if (form.op->schema.find("!)") != std::string::npos ||
      form.op->schema.find("!]") != std::string::npos) {
    return true;
  }
  return std::any_of(form.accesses.begin(), form.accesses.end(), [&](const FormAccess& write) {
    return write.write &&
           std::any_of(form.accesses.begin(), form.accesses.end(), [&](const FormAccess& read) {
             return !read.write && read.slot == write.slot;
           });
  });
}

RecomputeBar BarOf(const WorkForm& form, bool recompute_cube) {
  if (form.kind == LeafKind::kSource) return RecomputeBar::kRandom;
  if (form.kind == LeafKind::kHostRead) return RecomputeBar::kHostRead;
  if (WritesInPlace(form)) return RecomputeBar::kInPlace;
  if (!recompute_cube && prediction::ResourceOf(form.op->name) == streams::Resource::kCube)
    return RecomputeBar::kCube;
  return RecomputeBar::kNone;
}

class Builder {
 public:
  Builder(const Work& work, size_t first, size_t end) : work_(work), first_(first), end_(end) {}

  JointStep Build(bool recompute_cube) {
    for (size_t call = first_; call < end_; ++call) {
      if (IsBackward(call)) last_backward_ = call;
    }
    for (size_t call = first_; call < end_; ++call) {
      if (IsForward(call)) AddCall(call, recompute_cube);
    }
    AddLinks();
    AddOldValues();
    FindBytes();
    return std::move(step_);
  }

 private:
  bool IsForward(size_t call) const {
    return work_.calls[call].phase == Phase::kForward && work_.form(call).active() &&
           call < last_backward_;
  }
  bool IsBackward(size_t call) const {
    return work_.calls[call].phase == Phase::kBackward && work_.form(call).active();
  }

  void AddCall(size_t call, bool recompute_cube) {
    const auto duration = static_cast<double>(work_.calls[call].duration_ns);
    const RecomputeBar bar = BarOf(work_.form(call), recompute_cube);
    node_of_[call] = static_cast<int32_t>(step_.graph.calls.size());
    step_.graph.calls.push_back({{}, duration, bar == RecomputeBar::kNone});
    step_.calls.push_back(static_cast<uint32_t>(call));
    step_.bars.push_back(bar);
    step_.forward_ns += duration;
    work_.VisitAccesses(call, [&](const ByteAccess& access) {
      if (access.write) AddRange(ValueOf(node_of_[call], access), access);
    });
  }

  // The value that a writer left in the access's buffer. A writer of -1 means the content from
  // before the step.
  int32_t ValueOf(int32_t writer, const ByteAccess& access) {
    const auto [entry, created] =
        value_of_.try_emplace({writer, access.buffer}, static_cast<int32_t>(ranges_.size()));
    if (created) {
      step_.graph.values.push_back({0, writer, false});
      step_.places.push_back({access.buffer, access.form->layout, -1});
      ranges_.emplace_back();
    }
    return entry->second;
  }
  void AddRange(int32_t value, const ByteAccess& access) {
    ranges_[value].Add(access.first, access.end);
  }

  void Read(size_t call, int32_t value) {
    if (IsBackward(call)) {
      JointPlace& place = step_.places[value];
      step_.graph.values[value].read_by_backward = true;
      if (place.first_reader < 0) place.first_reader = static_cast<int64_t>(call);
      return;
    }
    std::vector<int32_t>& reads = step_.graph.calls[node_of_.at(call)].reads;
    if (std::find(reads.begin(), reads.end(), value) == reads.end()) reads.push_back(value);
  }

  void AddLinks() {
    std::set<std::pair<uint32_t, uint32_t>> links;
    for (const graph::Hazard& hazard : graph::FindHazards(work_, first_, end_)) {
      if (hazard.kind != graph::HazardKind::kRaw || !IsForward(hazard.source)) continue;
      if (!IsForward(hazard.target) && !IsBackward(hazard.target)) continue;
      Read(hazard.target, value_of_.at({node_of_.at(hazard.source), hazard.buffer}));
      if (IsBackward(hazard.target)) links.emplace(hazard.source, hazard.target);
    }
    step_.links = links.size();
  }

  // Adds reads of bytes that nobody has written since the step began.
  void AddOldValues() {
    std::unordered_map<int64_t, ByteSet> written;
    for (size_t call = first_; call < end_; ++call) {
      const bool backward = IsBackward(call);
      if (backward) {
        ++step_.backward_calls;
        step_.backward_ns += static_cast<double>(work_.calls[call].duration_ns);
      }
      if (backward || IsForward(call)) {
        work_.VisitAccesses(call, [&](const ByteAccess& access) {
          if (access.write || written[access.buffer].Covers(access.first, access.end)) return;
          const int32_t value = ValueOf(-1, access);
          AddRange(value, access);
          Read(call, value);
        });
      }
      work_.VisitAccesses(call, [&](const ByteAccess& access) {
        if (access.write) written[access.buffer].Add(access.first, access.end);
      });
    }
  }

  void FindBytes() {
    std::unordered_set<int64_t> used_before;
    std::unordered_set<int64_t> wanted;
    for (const JointPlace& place : step_.places) wanted.insert(place.buffer);
    for (size_t call = 0; call < first_; ++call) {
      for (const int64_t buffer : work_.buffers(call)) {
        if (wanted.count(buffer) != 0) used_before.insert(buffer);
      }
    }
    // The writes of forward to each buffer, in order.
    std::unordered_map<int64_t, std::vector<std::pair<int32_t, ByteAccess>>> writes;
    for (size_t node = 0; node < step_.calls.size(); ++node) {
      work_.VisitAccesses(step_.calls[node], [&](const ByteAccess& access) {
        if (access.write) writes[access.buffer].emplace_back(static_cast<int32_t>(node), access);
      });
    }
    const WorkCall& last = work_.calls[last_backward_];
    for (size_t v = 0; v < ranges_.size(); ++v) {
      JointValue& value = step_.graph.values[v];
      const int64_t id = step_.places[v].buffer;
      const storage::Buffer& buffer = work_.trace->GetBuffer(id);
      const bool before = buffer.alloc_ns != 0 ? buffer.alloc_ns < work_.calls[first_].begin_ns
                                               : value.writer < 0 || used_before.count(id) != 0;
      const bool outlives =
          buffer.free_ns == 0 || buffer.free_ns > last.begin_ns + last.duration_ns;
      bool overwritten = false;
      for (const auto& [node, write] : writes[id]) {
        overwritten = overwritten ||
                      (node > value.writer && !ranges_[v].Within(write.first, write.end).empty());
      }
      if (before && outlives && !overwritten) continue;
      constexpr int64_t kEnd = INT64_MAX;
      for (const ByteRange& range : ranges_[v].Within(0, kEnd)) {
        value.bytes += range.end - range.first;
      }
    }
  }

  const Work& work_;
  const size_t first_;
  const size_t end_;
  size_t last_backward_ = 0;
  JointStep step_;
  std::unordered_map<size_t, int32_t> node_of_;              // index in Work::calls to graph call
  std::map<std::pair<int32_t, int64_t>, int32_t> value_of_;  // writer and buffer
  std::vector<ByteSet> ranges_;                              // by value
};

}  // namespace

std::string_view RecomputeBarName(RecomputeBar bar) {
  constexpr std::string_view kNames[] = {"", "random", "in place", "cube", "host read"};
  return kNames[static_cast<size_t>(bar)];
}

bool HasBackward(const Work& work, size_t first, size_t end) {
  for (size_t call = first; call < end; ++call) {
    if (work.calls[call].phase == Phase::kBackward && work.form(call).active()) return true;
  }
  return false;
}

JointStep BuildJointStep(const Work& work, size_t first, size_t end, bool recompute_cube) {
  return Builder(work, first, end).Build(recompute_cube);
}

}  // namespace acltape::analyzer::joint
