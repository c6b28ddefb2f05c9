#include "analyzer/memory/stale_reads.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "analyzer/calls/byte_map.h"
#include "analyzer/calls/byte_set.h"

namespace acltape::analyzer::memory {
namespace {

// Who wrote bytes last. Graph 0 is eager work.
struct Maker {
  int64_t model = 0;
  uint32_t call = 0;       // the captured or eager call that writes
  int64_t execution = -1;  // index of the execution; -1: by the capture or by eager work
};

// The makers of the bytes of buffers.
class Makers {
 public:
  void Set(int64_t buffer, int64_t first, int64_t end, const Maker& maker) {
    buffers_[buffer].Set(first, end, maker);
  }
  template <typename Visit>
  void Within(int64_t buffer, int64_t first, int64_t end, Visit&& visit) const {
    const auto found = buffers_.find(buffer);
    if (found != buffers_.end()) found->second.Within(first, end, visit);
  }

 private:
  std::unordered_map<int64_t, ByteMap<Maker>> buffers_;
};

using Bytes = std::unordered_map<int64_t, ByteSet>;  // by buffer

bool Overlap(const Bytes& bytes, int64_t buffer, int64_t first, int64_t end) {
  const auto found = bytes.find(buffer);
  return found != bytes.end() && !found->second.Within(first, end).empty();
}

// Bytes that a graph reads before it writes them, and that another graph made at the capture.
struct Need {
  int64_t buffer = 0;
  int64_t first = 0;
  int64_t end = 0;
  Maker maker;
  uint32_t read = 0;
};

struct Write {
  int64_t buffer = 0;
  int64_t first = 0;
  int64_t end = 0;
  uint32_t call = 0;
};

struct Graph {
  Bytes written;            // by any of its calls
  Bytes read;               // before it wrote them itself
  std::vector<Write> made;  // whole ranges, by calls that do not read them
  std::vector<Need> needs;
  bool executed = false;
};

class Finder {
 public:
  explicit Finder(const Work& work) : work_(work) {}

  std::vector<StaleRead> Find() {
    for (size_t i = 0; i < work_.size(); ++i) {
      if (work_.calls[i].model_id != 0) TakeCaptured(static_cast<uint32_t>(i));
      if (IsExecution(i)) graphs_[ModelOf(i)].executed = true;
      if (work_.calls[i].model_id == 0 && work_.form(i).active()) {
        SupplyEagerly(at_capture_, static_cast<uint32_t>(i));
      }
    }
    bool any = false;
    for (auto& [model, graph] : graphs_) {
      std::erase_if(graph.needs, [&](const Need& need) { return !IsNeed(graph, need); });
      any = any || !graph.needs.empty();
    }
    if (!any) return {};
    for (const auto& [model, graph] : graphs_) {
      for (const Need& need : graph.needs) needed_[need.buffer].Add(need.first, need.end);
    }
    for (size_t i = 0; i < work_.size(); ++i) {
      if (IsExecution(i)) Execute(static_cast<uint32_t>(i));
      if (work_.calls[i].model_id == 0 && work_.form(i).active()) {
        SupplyEagerly(at_run_, static_cast<uint32_t>(i));
      }
    }
    return std::move(rows_);
  }

 private:
  int64_t ModelOf(size_t i) const {
    const WorkForm& form = work_.form(i);
    return form.Integer(form.function->object);
  }
  bool IsExecution(size_t i) const {
    return work_.form(i).acl_kind() == AclCallKind::kExecute && work_.calls[i].status == 0;
  }

  void SupplyEagerly(Makers& makers, uint32_t call) const {
    work_.VisitAccesses(call, [&](const ByteAccess& access) {
      if (access.write) makers.Set(access.buffer, access.first, access.end, {0, call, -1});
    });
  }

  void TakeCaptured(uint32_t call) {
    const int64_t model = work_.calls[call].model_id;
    Graph& graph = graphs_[model];
    Bytes reads;
    work_.VisitAccesses(call, [&](const ByteAccess& access) {
      if (access.write) return;
      reads[access.buffer].Add(access.first, access.end);
      ByteSet open;
      open.Add(access.first, access.end);
      if (const auto own = graph.written.find(access.buffer); own != graph.written.end()) {
        open.Remove(own->second);
      }
      for (const ByteRange& part : open.Within(access.first, access.end)) {
        graph.read[access.buffer].Add(part.first, part.end);
        at_capture_.Within(access.buffer, part.first, part.end,
                           [&](int64_t first, int64_t end, const Maker& maker) {
                             if (maker.model == 0 || maker.model == model) return;
                             graph.needs.push_back({access.buffer, first, end, maker, call});
                           });
      }
    });
    work_.VisitAccesses(call, [&](const ByteAccess& access) {
      if (!access.write) return;
      graph.written[access.buffer].Add(access.first, access.end);
      if (access.form->strided || Overlap(reads, access.buffer, access.first, access.end)) return;
      graph.made.push_back({access.buffer, access.first, access.end, call});
      at_capture_.Set(access.buffer, access.first, access.end, {model, call, -1});
    });
  }

  // False for a state that one of the two keeps, and if the maker is never executed.
  bool IsNeed(const Graph& reader, const Need& need) const {
    if (Overlap(reader.written, need.buffer, need.first, need.end)) return false;
    const Graph& maker = graphs_.at(need.maker.model);
    return maker.executed && !Overlap(maker.read, need.buffer, need.first, need.end);
  }

  // True if both calls put the same thing at the same place, such as the result of one of several
  // graphs that take turns.
  bool InTheSameRole(uint32_t a, uint32_t b, int64_t buffer) const {
    if (work_.op(a).op_id != work_.op(b).op_id) return false;
    const auto start = [&](uint32_t call) {
      int64_t first = -1;
      work_.VisitAccesses(call, [&](const ByteAccess& access) {
        if (access.write && access.buffer == buffer) first = access.first;
      });
      return first;
    };
    return start(a) == start(b);
  }

  void Execute(uint32_t execution) {
    const int64_t model = ModelOf(execution);
    const Graph& graph = graphs_[model];
    for (const Need& need : graph.needs) Check(model, need, execution);
    for (const Write& write : graph.made) {
      if (!Overlap(needed_, write.buffer, write.first, write.end)) continue;
      at_run_.Set(write.buffer, write.first, write.end, {model, write.call, execution});
    }
  }

  void Check(int64_t model, const Need& need, uint32_t execution) {
    if (found_.contains({model, need.maker.model})) return;
    bool any = false;
    const auto report = [&](int64_t other) {
      if (!found_.insert({model, need.maker.model}).second) return;
      rows_.push_back({model, need.maker.model, need.buffer, need.first, need.end, need.maker.call,
                       need.read, execution, other});
    };
    at_run_.Within(need.buffer, need.first, need.end, [&](int64_t, int64_t, const Maker& maker) {
      any = true;
      if (maker.model == need.maker.model) return;
      if (maker.model == 0) {
        if (maker.call < need.maker.call) report(-1);
      } else if (!InTheSameRole(maker.call, need.maker.call, need.buffer)) {
        report(maker.execution);
      }
    });
    if (!any) report(-1);
  }

  const Work& work_;
  std::map<int64_t, Graph> graphs_;
  Makers at_capture_;
  Makers at_run_;
  Bytes needed_;
  std::set<std::pair<int64_t, int64_t>> found_;  // reader and maker
  std::vector<StaleRead> rows_;
};

}  // namespace

std::vector<StaleRead> FindStaleReads(const Work& work) { return Finder(work).Find(); }

}  // namespace acltape::analyzer::memory
