// Rules about streams that touch the same bytes without an order: inside a captured graph, and in
// eager work.
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/lint/rule.h"
#include "analyzer/streams/race_checker.h"

namespace acltape::analyzer::lint {
namespace {

using K = AclCallKind;
using Refers = WaitOfEvent::Refers;

void CollectAccesses(const Work& work, size_t call, std::vector<ByteAccess>& accesses) {
  accesses.clear();
  work.VisitAccesses(call, [&](const ByteAccess& access) { accesses.push_back(access); });
}

void Tell(const Scene& scene, const streams::RaceChecker& checker, const std::string& where,
          Found& found) {
  // The waits that the checker proposes, by the call that would wait.
  std::multimap<int64_t, int64_t> waits;
  for (const streams::MissingWait& wait : checker.missing_waits()) {
    waits.emplace(wait.wait_before, wait.record_after);
  }
  for (const streams::Race& race : checker.races()) {
    const Work& work = scene.work;
    const auto first = static_cast<size_t>(race.first);
    const auto second = static_cast<size_t>(race.second);
    Found::Options options;
    options.other = race.first;
    // Without stretches, each step repeats a race. Such races become one finding for their two
    // lines.
    options.merged = scene.places.Of(first) != 0 && scene.places.Of(second) != 0;
    size_t record_after = first;
    // Another proposed wait of the same call may order this race as well. The latest of its stream
    // is used.
    const auto [begin, end] = waits.equal_range(race.second);
    for (auto wait = begin; wait != end; ++wait) {
      const auto at = static_cast<size_t>(wait->second);
      if (work.calls[at].stream_id == work.calls[first].stream_id && at >= first) {
        record_after = at;
      }
    }
    options.edits = {WaitEdit(work.calls[record_after].call_id, work.calls[second].call_id)};
    found.Add(race.second,
              work.Describe(second) + " on stream " + std::to_string(work.calls[second].stream_id) +
                  " and " + work.Describe(first) + " on stream " +
                  std::to_string(work.calls[first].stream_id) + " touch the same bytes of buffer " +
                  std::to_string(race.buffer) + " (" +
                  std::string(graph::HazardKindName(race.kind)) + ") without an order" + where,
              options);
  }
}

}  // namespace

void CheckCapturedRace(const Scene& scene, Found& found) {
  const CaptureFacts& facts = *scene.facts;
  if (facts.members.size() < 2) return;
  const Stretch& stretch = scene.stretch();
  const Work& work = scene.work;
  streams::RaceChecker checker;
  std::vector<ByteAccess> accesses;
  size_t wait = 0;  // next in facts.waits
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    const WorkForm& form = work.form(i);
    const int64_t stream = work.calls[i].stream_id;
    const K kind = form.acl_kind();
    if (kind == K::kEventWait) {
      while (facts.waits[wait].call != i) ++wait;
      if (facts.waits[wait].refers == Refers::kCaptured) {
        checker.Wait(stream, form.Integer(form.function->object));
      }
      continue;
    }
    if (!facts.IsCapturing(stretch, i)) continue;
    if (kind == K::kEventRecord) checker.Record(stream, form.Integer(form.function->object));
    if (!form.active() || !IsStreamTask(kind)) continue;
    CollectAccesses(work, i, accesses);
    checker.Work(static_cast<int64_t>(i), stream, accesses);
  }
  Tell(scene, checker, " in the graph", found);
}

// Checks the program as it ran, outside of captures, with the order of streams, events and host
// waits.
void CheckEagerRace(const Scene& scene, Found& found) {
  const Work& work = scene.work;
  int64_t only = 0;
  bool several = false;
  for (size_t i = 0; i < work.size() && !several; ++i) {
    if (!work.form(i).active() || work.calls[i].stream_id == 0) continue;
    several = only != 0 && work.calls[i].stream_id != only;
    only = work.calls[i].stream_id;
  }
  if (!several) return;
  streams::RaceChecker checker;
  std::vector<ByteAccess> accesses;
  for (size_t i = 0; i < work.size(); ++i) {
    const WorkForm& form = work.form(i);
    const WorkCall& call = work.calls[i];
    if (call.status != 0 || call.model_id != 0 || form.function == nullptr) continue;
    const int64_t object = form.Integer(form.function->object);
    const bool ended = form.Integer(form.function->detail) == form.function->done;
    switch (form.acl_kind()) {
      case K::kEventRecord:
        checker.Record(call.stream_id, object);
        break;
      case K::kEventWait:
        checker.Wait(call.stream_id, object);
        break;
      case K::kDeviceSync:
        checker.SynchronizeDevice();
        break;
      case K::kStreamQuery:
        if (ended) checker.SynchronizeStream(call.stream_id);
        break;
      case K::kStreamSync:
      case K::kStreamDestroy:
        checker.SynchronizeStream(call.stream_id);
        break;
      case K::kEventQuery:
        if (ended) checker.SynchronizeEvent(object);
        break;
      case K::kEventSync:
      case K::kEventTime:
        checker.SynchronizeEvent(object);
        break;
      default:
        if (!form.active()) break;
        CollectAccesses(work, i, accesses);
        checker.Work(static_cast<int64_t>(i),
                     call.stream_id == 0 ? streams::RaceChecker::kHost : call.stream_id, accesses);
        break;
    }
  }
  Tell(scene, checker, " as the program ran", found);
}

// Finds task updates that race with an execution of their graph. One byte stands for the graph: an
// execution reads it and a task update writes it. A graph that waits for an external event before
// its group may be launched before the update that releases it (rule UPD-06).
void CheckUpdateRace(const Scene& scene, Found& found) {
  const Work& work = scene.work;
  std::unordered_map<int64_t, int64_t> model_of_group;  // by recorded handle
  std::unordered_set<int64_t> waits_outside;            // graphs with an external wait
  std::unordered_map<int64_t, int64_t> latest;          // latest execution, by graph
  streams::RaceChecker checker;
  bool any = false;
  const auto use = [&](size_t call, int64_t model, bool write) {
    ByteAccess access;
    access.buffer = model;
    access.end = 1;
    access.write = write;
    checker.Work(static_cast<int64_t>(call), work.calls[call].stream_id, {&access, 1});
  };
  for (size_t i = 0; i < work.size(); ++i) {
    const WorkForm& form = work.form(i);
    const WorkCall& call = work.calls[i];
    if (call.status != 0 || form.function == nullptr) continue;
    const int64_t object = form.Integer(form.function->object);
    const bool ended = form.Integer(form.function->detail) == form.function->done;
    switch (form.acl_kind()) {
      case K::kGroupEnd:
        model_of_group[object] = call.model_id;
        break;
      case K::kEventWait:
        if (call.model_id == 0) {
          checker.Wait(call.stream_id, object);
        } else if (form.Integer(form.function->detail) == 1 ||
                   scene.handles.IsExternalEvent(object)) {
          waits_outside.insert(call.model_id);
        }
        break;
      case K::kEventRecord:
        if (call.model_id == 0) checker.Record(call.stream_id, object);
        break;
      case K::kDeviceSync:
        checker.SynchronizeDevice();
        break;
      case K::kStreamSync:
        checker.SynchronizeStream(call.stream_id);
        break;
      case K::kStreamQuery:
        if (ended) checker.SynchronizeStream(call.stream_id);
        break;
      case K::kEventSync:
        checker.SynchronizeEvent(object);
        break;
      case K::kEventQuery:
        if (ended) checker.SynchronizeEvent(object);
        break;
      case K::kExecute: {
        // An execution that waits for its update counts when the next one is launched.
        const auto before = latest.find(object);
        if (waits_outside.count(object) == 0) {
          use(i, object, /*write=*/false);
        } else if (before != latest.end()) {
          use(static_cast<size_t>(before->second), object, /*write=*/false);
        }
        latest[object] = static_cast<int64_t>(i);
        break;
      }
      case K::kUpdateBegin: {
        const auto model = model_of_group.find(object);
        if (model == model_of_group.end()) break;
        any = true;
        use(i, model->second, /*write=*/true);
        break;
      }
      default:
        break;
    }
  }
  if (!any) return;
  for (const streams::Race& race : checker.races()) {
    if (race.kind != graph::HazardKind::kWar) continue;  // only if the execution came first
    Found::Options options;
    options.other = race.first;
    found.Add(race.second,
              work.Describe(static_cast<size_t>(race.second)) + " on stream " +
                  std::to_string(work.calls[race.second].stream_id) + " updates a graph that " +
                  work.Describe(static_cast<size_t>(race.first)) + " on stream " +
                  std::to_string(work.calls[race.first].stream_id) + " may still be executing",
              options);
  }
}

}  // namespace acltape::analyzer::lint
