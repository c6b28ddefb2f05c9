// Rules about streams that touch the same bytes without an order: inside a captured graph, in eager
// work, and between executions of graphs and what concerns them.
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/calls/byte_set.h"
#include "analyzer/executions/own_graphs.h"
#include "analyzer/lint/ordered_walk.h"
#include "analyzer/lint/rule.h"
#include "analyzer/memory/reuse.h"
#include "analyzer/memory/stale_reads.h"
#include "analyzer/streams/race_checker.h"

namespace acltape::analyzer::lint {
namespace {

using K = AclCallKind;
using Refers = WaitOfEvent::Refers;

// Buffers that calls use, by the call that began and the one that ended them. Made at the first
// call of a pool: most traces have none.
struct PooledBuffers {
  explicit PooledBuffers(const Work& work) {
    for (const int64_t id : work.all_buffers) {
      const storage::Buffer& buffer = work.trace->GetBuffer(id);
      if (buffer.alloc_call != 0) begun.emplace(buffer.alloc_call, &buffer);
      if (buffer.free_call != 0) ended.emplace(buffer.free_call, &buffer);
    }
  }
  std::unordered_map<int64_t, const storage::Buffer*> begun;
  std::unordered_map<int64_t, const storage::Buffer*> ended;
};

void CollectAccesses(const Work& work, size_t call, std::vector<ByteAccess>& accesses) {
  accesses.clear();
  work.VisitAccesses(call, [&](const ByteAccess& access) { accesses.push_back(access); });
}

std::string OnStream(const Work& work, size_t call) {
  const int64_t stream = work.calls[call].stream_id;
  return stream == 0 ? ", for which the host waits," : " on stream " + std::to_string(stream);
}

void ReportRaces(const LintContext& context, const streams::RaceChecker& checker,
                 const std::string& where, Found& found) {
  // The waits that the checker proposes, by the call that would wait.
  std::multimap<int64_t, int64_t> waits;
  for (const streams::MissingWait& wait : checker.missing_waits()) {
    waits.emplace(wait.wait_before, wait.record_after);
  }
  const Work& work = context.work;
  for (const streams::Race& race : checker.races()) {
    if (IsExecution(work.form(static_cast<size_t>(race.first)).acl_kind()) &&
        IsExecution(work.form(static_cast<size_t>(race.second)).acl_kind())) {
      continue;
    }
    const auto first = static_cast<size_t>(race.first);
    const auto second = static_cast<size_t>(race.second);
    Found::Options options;
    options.other = race.first;
    // Without stretches, each step repeats a race. Such races become one finding for their two
    // lines.
    options.merged = context.places.Of(first) != 0 && context.places.Of(second) != 0;
    size_t record_after = first;
    // Another proposed wait of the same call may order this race as well. The latest of its stream
    // is used.
    const auto [begin, end] = waits.equal_range(race.second);
    for (auto wait = begin; wait != end; ++wait) {
      const auto recorded = static_cast<size_t>(wait->second);
      if (work.calls[recorded].stream_id == work.calls[first].stream_id && recorded >= first) {
        record_after = recorded;
      }
    }
    // The host has no stream that could wait for an event.
    if (work.calls[second].stream_id != 0) {
      options.edits = {WaitEdit(work.calls[record_after].call_id, work.calls[second].call_id)};
    }
    found.Add(race.second,
              Named(second) + OnStream(work, second) + " and " + Named(first) +
                  OnStream(work, first) + " touch the same bytes of buffer " +
                  std::to_string(race.buffer) + " (" +
                  std::string(graph::HazardKindName(race.kind)) + ") without an order" + where,
              options);
  }
}

}  // namespace

void CheckCapturedRace(const LintContext& context, Found& found) {
  const CaptureFacts& facts = *context.facts;
  if (facts.members.size() < 2) return;
  const Stretch& stretch = context.stretch();
  const Work& work = context.work;
  streams::RaceChecker checker;
  std::vector<ByteAccess> accesses;
  OrderedWalk walk(work, checker, [&](size_t call) {
    const WorkForm& form = work.form(call);
    if (!form.active() || !IsStreamTask(form.acl_kind())) return;
    CollectAccesses(work, call, accesses);
    checker.Work(static_cast<int64_t>(call), work.calls[call].stream_id, accesses);
  });
  size_t wait = 0;  // next in facts.waits
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    if (work.form(i).acl_kind() == K::kEventWait) {
      while (facts.waits[wait].call != i) ++wait;
      if (facts.waits[wait].refers == Refers::kCaptured) walk.Call(i);
    } else if (facts.IsCapturing(stretch, i)) {
      walk.Call(i);
    }
  }
  walk.End();
  ReportRaces(context, checker, " in the graph", found);
}

// Returns the bytes that begin or end to exist by a call in the order of its stream; none if it is
// no such call. Work that touches them has to be ordered after their start and before their end.
std::vector<ByteAccess> PooledBytes(const Work& work, size_t call,
                                    std::optional<PooledBuffers>& pooled) {
  const K kind = work.form(call).acl_kind();
  if (kind != K::kPoolAllocate && kind != K::kPoolFree) return {};
  if (!pooled) pooled.emplace(work);
  const auto& by_call = kind == K::kPoolAllocate ? pooled->begun : pooled->ended;
  const auto found = by_call.find(work.calls[call].call_id);
  if (found == by_call.end()) return {};
  ByteAccess access;
  access.buffer = found->second->buffer_id;
  access.end = found->second->bytes;
  access.write = true;
  return {access};
}

// The bytes that executions of graphs read and write, for a race checker.
class ExecutedBytes {
 public:
  ExecutedBytes(const Work& work, const executions::OwnGraphs& graphs) {
    for (size_t i = 0; i < work.size(); ++i) {
      if (work.form(i).acl_kind() != K::kValueWait) continue;
      work.VisitAccesses(i, [&](const ByteAccess& access) {
        words_[access.buffer].Add(access.first, access.end);
      });
    }
    for (const executions::OwnGraph& graph : graphs.graphs) {
      std::vector<ByteAccess>& accesses = accesses_[graph.model_id];
      for (const executions::GraphUse& use : graph.footprint.reads) Add(use, false, accesses);
      for (const executions::GraphUse& use : graph.footprint.writes) Add(use, true, accesses);
    }
  }
  const std::vector<ByteAccess>* Of(int64_t model) const {
    const auto found = accesses_.find(model);
    return found == accesses_.end() ? nullptr : &found->second;
  }

 private:
  void Add(const executions::GraphUse& use, bool write, std::vector<ByteAccess>& accesses) const {
    // Words for which streams wait are an order, and no data.
    const auto words = words_.find(use.buffer);
    if (words != words_.end() && !words->second.Within(use.first, use.end).empty()) return;
    const bool whole = use.first == use.access->first_byte && use.end == use.access->end_byte;
    // A part of a strided tensor would count as all bytes of the part.
    if (use.strided && !whole) return;
    accesses.push_back({use.buffer, use.first, use.end, write, whole ? use.access : nullptr});
  }

  std::unordered_map<int64_t, ByteSet> words_;                     // by buffer
  std::unordered_map<int64_t, std::vector<ByteAccess>> accesses_;  // by model
};

// Checks the program as it ran, outside of captures, with the order of streams, events and host
// waits. An execution of a graph counts as the work of its calls. Two graphs that touch the same
// bytes are LINT-18's.
void CheckEagerRace(const LintContext& context, Found& found) {
  const Work& work = context.work;
  int64_t only = 0;
  bool several = false;
  for (size_t i = 0; i < work.size() && !several; ++i) {
    const bool works = work.form(i).active() || IsExecution(work.form(i).acl_kind());
    if (!works || work.calls[i].status != 0) continue;
    // A copy that the host waits for is on no stream, and waits for none.
    const int64_t stream =
        work.calls[i].stream_id == 0 ? streams::RaceChecker::kHost : work.calls[i].stream_id;
    several = only != 0 && stream != only;
    only = stream;
  }
  if (!several) return;
  streams::RaceChecker checker;
  std::vector<ByteAccess> accesses;
  std::optional<PooledBuffers> pooled;
  // Beside leaves, the graphs that other rules look at hold those.
  const executions::OwnGraphs* graphs = context.options.graphs;
  std::optional<executions::OwnGraphs> of_calls;
  if (graphs == nullptr || graphs->work != &work) {
    graphs = &of_calls.emplace(executions::FindOwnGraphs(work, work));
  }
  const ExecutedBytes executed(work, *graphs);
  // Streams on which a task update is open. What is launched there does not run there: it becomes
  // part of the graph.
  std::set<int64_t> updating;
  OrderedWalk walk(work, checker, [&](size_t i) {
    const int64_t stream = work.calls[i].stream_id;
    const K kind = work.form(i).acl_kind();
    if (kind == K::kUpdateBegin) updating.insert(stream);
    if (kind == K::kUpdateEnd) updating.erase(stream);
    if (updating.count(stream) != 0) return;
    if (const auto bytes = PooledBytes(work, i, pooled); !bytes.empty()) {
      checker.Work(static_cast<int64_t>(i), stream, bytes);
    }
    const int64_t runs_on = stream == 0 ? streams::RaceChecker::kHost : stream;
    if (IsExecution(kind)) {
      const WorkForm& form = work.form(i);
      const std::vector<ByteAccess>* bytes = executed.Of(form.Integer(form.function->object));
      if (bytes != nullptr) checker.Work(static_cast<int64_t>(i), runs_on, *bytes);
      return;
    }
    if (!work.form(i).active()) return;
    CollectAccesses(work, i, accesses);
    checker.Work(static_cast<int64_t>(i), runs_on, accesses);
  });
  walk.CallAllOutsideOfCaptures();
  ReportRaces(context, checker, " as the program ran", found);
}

// Finds task updates that race with an execution of their graph. A byte stands for each execution:
// the execution reads it, and an update writes the bytes of the executions since the updates
// before. A graph that waits before its group for what is set outside of it, an external event, a
// notify or a value in memory, may be launched before the update that releases it (rule UPD-06):
// that execution counts for the next update.
void CheckUpdateRace(const LintContext& context, Found& found) {
  struct Graph {
    bool waits_outside = false;  // so far in the order of its capture
    int64_t executions = 0;
    int64_t updated = 0;  // executions before the latest update
    int64_t from = 0;     // those before the latest update in front of the latest execution
  };
  const Work& work = context.work;
  struct Group {
    int64_t model = 0;
    bool waits_before = false;
  };
  std::unordered_map<int64_t, Group> groups;       // by recorded handle
  std::unordered_map<int64_t, bool> waits_before;  // the open group of a stream
  std::unordered_map<int64_t, Graph> graphs;
  streams::RaceChecker checker;
  bool any = false;
  const auto take = [&](size_t i) {
    const WorkForm& form = work.form(i);
    const WorkCall& call = work.calls[i];
    const int64_t object = form.Integer(form.function->object);
    const K kind = form.acl_kind();
    ByteAccess access;
    if (kind == K::kEventWait) {
      const bool outside = IsExternalFlag(form.Integer(form.function->detail)) ||
                           context.handles.IsExternalEvent(object);
      if (outside) graphs[call.model_id].waits_outside = true;
    } else if (kind == K::kValueWait || kind == K::kNotifyWait) {
      graphs[call.model_id].waits_outside = true;
    } else if (kind == K::kGroupBegin) {
      waits_before[call.stream_id] = graphs[call.model_id].waits_outside;
    } else if (kind == K::kGroupEnd) {
      groups[object] = {call.model_id, waits_before[call.stream_id]};
    } else if (kind == K::kExecute) {
      Graph& graph = graphs[object];
      graph.from = graph.updated;
      access.buffer = object;
      access.first = graph.executions++;
      access.end = graph.executions;
      checker.Work(static_cast<int64_t>(i), call.stream_id, {&access, 1});
    } else if (kind == K::kUpdateBegin && groups.contains(object)) {
      any = true;
      const Group& group = groups[object];
      access.buffer = group.model;
      Graph& graph = graphs[access.buffer];
      access.first = graph.from;
      access.end = graph.executions - (group.waits_before ? 1 : 0);
      access.write = true;
      if (access.first >= access.end) return;
      graph.updated = access.end;
      checker.Work(static_cast<int64_t>(i), call.stream_id, {&access, 1});
    }
  };
  OrderedWalk walk(work, checker, take);
  for (size_t i = 0; i < work.size(); ++i) {
    const WorkCall& call = work.calls[i];
    if (call.status != 0 || work.form(i).function == nullptr) continue;
    call.model_id == 0 ? walk.Call(i) : take(i);
  }
  walk.End();
  if (!any) return;
  for (const streams::Race& race : checker.races()) {
    if (race.kind != graph::HazardKind::kWar) continue;  // only if the execution came first
    Found::Options options;
    options.other = race.first;
    found.Add(race.second,
              Named(static_cast<size_t>(race.second)) + " on stream " +
                  std::to_string(work.calls[race.second].stream_id) + " updates a graph that " +
                  Named(static_cast<size_t>(race.first)) + " on stream " +
                  std::to_string(work.calls[race.first].stream_id) + " may still be executing",
              options);
  }
}

// Finds graphs that read what another graph makes and were not executed after it, and graphs that
// share memory and run on different streams that do not wait for each other. A byte of a buffer of
// its own stands for each pair of graphs.
void CheckSharedPool(const LintContext& context, Found& found) {
  const Work& work = context.work;
  for (const memory::StaleRead& stale : memory::FindStaleReads(work)) {
    Found::Options options;
    options.other = stale.other;
    options.merged = true;
    const std::string instead = stale.other < 0 ? "that graph was not executed before"
                                                : Named(static_cast<size_t>(stale.other)) +
                                                      " has put other values there since";
    found.Add(stale.execution,
              Named(stale.execution) + " executes a graph that reads (" + Named(stale.read) +
                  ") what another graph makes (" + Named(stale.write) + "), in buffer " +
                  std::to_string(stale.buffer) + "; " + instead,
              options);
  }
  const std::vector<memory::SharedBytes> pairs = memory::FindSharedBytes(work);
  if (pairs.empty()) return;
  const auto tell = [&](const memory::SharedBytes& pair, int64_t first, int64_t second,
                        const std::string& fault) {
    Found::Options options;
    options.other = first;
    found.Add(second,
              Named(static_cast<size_t>(second)) + " and " + Named(static_cast<size_t>(first)) +
                  fault + " share bytes of buffer " + std::to_string(pair.buffer) + " (" +
                  Named(pair.first_call) + ", " + Named(pair.second_call) + ")",
              options);
  };
  std::unordered_map<int64_t, std::vector<ByteAccess>> accesses;  // by graph
  for (size_t i = 0; i < pairs.size(); ++i) {
    const memory::SharedBytes& pair = pairs[i];
    ByteAccess access;
    access.buffer = static_cast<int64_t>(i);
    access.end = 1;
    accesses[pair.first_model].push_back(access);
    access.write = true;
    accesses[pair.second_model].push_back(access);
  }
  streams::RaceChecker checker;
  OrderedWalk walk(work, checker, [&](size_t i) {
    const WorkForm& form = work.form(i);
    if (form.acl_kind() != K::kExecute) return;
    const auto of_graph = accesses.find(form.Integer(form.function->object));
    if (of_graph == accesses.end()) return;
    checker.Work(static_cast<int64_t>(i), work.calls[i].stream_id, of_graph->second);
  });
  walk.CallAllOutsideOfCaptures();
  std::unordered_set<int64_t> told;  // pairs
  for (const streams::Race& race : checker.races()) {
    if (!told.insert(race.buffer).second) continue;
    tell(pairs[static_cast<size_t>(race.buffer)], race.first, race.second,
         " run on different streams without an order, and their graphs");
  }
}

}  // namespace acltape::analyzer::lint
