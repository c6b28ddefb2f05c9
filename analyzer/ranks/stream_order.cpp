#include "analyzer/ranks/stream_order.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "analyzer/calls/level.h"
#include "analyzer/lint/ordered_walk.h"
#include "analyzer/streams/race_checker.h"

namespace acltape::analyzer::ranks {
namespace {

// The communicators of a process by name, each as a buffer of one byte that its collectives write.
using Bytes = std::map<std::string, int64_t>;

ByteAccess WriteTo(int64_t buffer) {
  ByteAccess access;
  access.buffer = buffer;
  access.end = 1;
  access.write = true;
  return access;
}

// Finds the processes that have a communicator whose collectives are on several streams.
std::set<int64_t> FindProcesses(const Communication& all) {
  std::map<std::tuple<int64_t, std::string>, std::set<int64_t>> streams;
  std::set<int64_t> found;
  for (const Collective& one : all.collectives) {
    std::set<int64_t>& of_one = streams[{one.process_id, one.communicator}];
    of_one.insert(one.stream_id);
    if (of_one.size() > 1) found.insert(one.process_id);
  }
  return found;
}

class Search {
 public:
  Search(const storage::Reader& process, const Communication& all, int64_t process_id, Lines& lines)
      : work_(LoadWork(process, storage::Level::kAcl)),
        all_(all),
        process_id_(process_id),
        lines_(lines) {
    for (const Collective& one : all.collectives) {
      if (one.process_id != process_id) continue;
      const auto place =
          bytes_.emplace(one.communicator, static_cast<int64_t>(bytes_.size()) + 1).first;
      of_call_[one.call_id] = {&one, place->second};
      if (one.model_id != 0) of_graph_[one.model_id].insert(place->second);
    }
  }

  std::vector<RankFinding> Run() {
    LookAtEager();
    for (const auto& [model, buffers] : of_graph_) LookAtGraph(model);
    return std::move(findings_);
  }

 private:
  struct Known {
    const Collective* what = nullptr;
    int64_t buffer = 0;
  };

  void Take(size_t call, streams::RaceChecker& checker) const {
    const auto known = of_call_.find(work_.calls[call].call_id);
    if (known == of_call_.end()) return;
    const ByteAccess access = WriteTo(known->second.buffer);
    checker.Work(static_cast<int64_t>(call), work_.calls[call].stream_id, {&access, 1});
  }

  void LookAtEager() {
    streams::RaceChecker checker;
    lint::OrderedWalk walk(work_, checker, [&](size_t call) {
      if (!IsExecution(work_.form(call).acl_kind())) {
        Take(call, checker);
        return;
      }
      const WorkForm& form = work_.form(call);
      const auto graph = of_graph_.find(form.Integer(form.function->object));
      if (graph == of_graph_.end()) return;
      std::vector<ByteAccess> accesses;
      for (const int64_t buffer : graph->second) accesses.push_back(WriteTo(buffer));
      const int64_t stream = work_.calls[call].stream_id;
      checker.Work(static_cast<int64_t>(call), stream == 0 ? streams::RaceChecker::kHost : stream,
                   accesses);
    });
    walk.CallAllOutsideOfCaptures();
    Report(checker, "");
  }

  void LookAtGraph(int64_t model) {
    streams::RaceChecker checker;
    lint::OrderedWalk walk(work_, checker, [&](size_t call) { Take(call, checker); });
    for (size_t i = 0; i < work_.size(); ++i) {
      const WorkCall& call = work_.calls[i];
      if (call.model_id == model && call.status == 0 && work_.form(i).function != nullptr) {
        walk.Call(i);
      }
    }
    walk.End();
    Report(checker, " in a captured graph");
  }

  // "HcclAllReduce(count 4, fp32, sum) at train.py:30", or the execution of a graph.
  std::string At(size_t call) {
    const int64_t id = work_.calls[call].call_id;
    const auto known = of_call_.find(id);
    const std::string what =
        known == of_call_.end() ? "the execution of a graph" : known->second.what->Text();
    return fmt::format("{} at {}", what, lines_.Of(id));
  }

  void Report(const streams::RaceChecker& checker, const char* where) {
    std::map<int64_t, std::string> names;
    for (const auto& [name, buffer] : bytes_) names[buffer] = name;
    for (const streams::Race& race : checker.races()) {
      const auto first = static_cast<size_t>(race.first), second = static_cast<size_t>(race.second);
      const std::string earlier = At(first), later = At(second);
      if (!told_.insert({race.buffer, earlier, later}).second) continue;
      const WorkCall &a = work_.calls[first], &b = work_.calls[second];
      findings_.push_back(
          {&FindRankRule("RANK-10"),
           b.call_id,
           all_.NameOf(process_id_),
           fmt::format("{} issues {} on stream {} and then {} on stream {}{}, both of communicator "
                       "{}, and neither stream waits for the other",
                       all_.NameOf(process_id_), earlier, a.stream_id, later, b.stream_id, where,
                       names[race.buffer]),
           {a.call_id, b.call_id}});
    }
  }

  const Work work_;
  const Communication& all_;
  const int64_t process_id_;
  Lines& lines_;
  Bytes bytes_;
  std::map<int64_t, Known> of_call_;
  std::map<int64_t, std::set<int64_t>> of_graph_;  // by model
  std::set<std::tuple<int64_t, std::string, std::string>> told_;
  std::vector<RankFinding> findings_;
};

}  // namespace

std::vector<RankFinding> FindUnorderedStreams(const storage::Reader& trace,
                                              const Communication& all, Lines& lines) {
  std::vector<RankFinding> findings;
  for (const int64_t process : FindProcesses(all)) {
    const storage::Reader of_process(
        trace.path(), storage::TracePart{std::to_string(process), storage::Level::kAcl});
    std::vector<RankFinding> found = Search(of_process, all, process, lines).Run();
    findings.insert(findings.end(), found.begin(), found.end());
  }
  return findings;
}

}  // namespace acltape::analyzer::ranks
