#include "replayer/acl_level/wait_edits.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/lint/lint.h"
#include "analyzer/steps/steps.h"
#include "meaning/options.h"

namespace acltape::replayer::acl_level {
namespace {

using analyzer::lint::Edit;
using analyzer::lint::Finding;
using analyzer::lint::Stretch;

bool IsWanted(const Finding& finding, const std::string& name) {
  return name == "all" || name == finding.rule->id ||
         name == fmt::format("{}@{}", finding.rule->id, finding.call_id);
}

[[noreturn]] void RefuseKind(const Finding& finding, const std::string& path) {
  throw Error(
      ErrorKind::kUsage,
      fmt::format("{} at call {} is mended by another edit than a wait ({}), which a replay "
                  "cannot make; `acltape lint @prove {}` captures the calls with it"_cli,
                  finding.rule->id, finding.call_id, finding.advice, path));
}

class Finder {
 public:
  explicit Finder(const analyzer::Work& work) : work_(work) {}

  void Add(const Stretch& stretch, const Edit& edit) {
    const int64_t wait = ++waits_.count;
    if (edit.record_after != 0) {
      waits_.after[edit.record_after].push_back({wait, true, StreamOf(edit.record_after)});
    } else if (stretch.recorded()) {
      waits_.after[IdOf(stretch.begin_call)].push_back({wait, true, stretch.stream});
    } else {
      waits_.before[work_.calls[stretch.first].call_id].push_back({wait, true, stretch.stream});
    }
    if (edit.wait_before != 0) {
      waits_.before[edit.wait_before].push_back({wait, false, StreamOf(edit.wait_before)});
    } else if (stretch.end_call >= 0) {
      waits_.before[IdOf(stretch.end_call)].push_back({wait, false, stretch.stream});
    } else {
      waits_.after[work_.calls[stretch.end - 1].call_id].push_back({wait, false, stretch.stream});
    }
  }

  AddedWaits Take() { return std::move(waits_); }

 private:
  int64_t IdOf(int64_t call) const { return work_.calls[call].call_id; }
  int64_t StreamOf(int64_t call_id) const { return work_.calls[work_.Find(call_id)].stream_id; }

  const analyzer::Work& work_;
  AddedWaits waits_;
};

}  // namespace

AddedWaits FindAddedWaits(const storage::Reader& trace, const std::vector<std::string>& wanted) {
  analyzer::Work work = analyzer::LoadWork(trace, analyzer::Level::kAcl);
  analyzer::AssignSteps(work, nullptr);
  analyzer::lint::LintOptions options;
  options.merge = false;
  const analyzer::lint::LintReport report = analyzer::lint::Lint(work, options);
  Finder finder(work);
  std::vector<Edit> made;  // the same edit can mend several findings
  for (const std::string& name : wanted) {
    bool found = false;
    const Finding* other = nullptr;
    for (const Finding& finding : report.findings) {
      if (!IsWanted(finding, name)) continue;
      const bool waits = !finding.edits.empty() &&
                         std::all_of(finding.edits.begin(), finding.edits.end(),
                                     [](const Edit& e) { return e.kind == Edit::Kind::kWait; });
      if (!waits) {
        if (other == nullptr) other = &finding;
        continue;
      }
      found = true;
      for (const Edit& edit : finding.edits) {
        if (std::find(made.begin(), made.end(), edit) != made.end() && edit.record_after != 0 &&
            edit.wait_before != 0) {
          continue;
        }
        made.push_back(edit);
        finder.Add(report.stretches[finding.stretch], edit);
      }
    }
    if (found) continue;
    if (other != nullptr) RefuseKind(*other, trace.path());
    throw Error(ErrorKind::kUsage,
                fmt::format("{} has no finding '{}'; name a rule (LINT-09), a rule at a call "
                            "(LINT-09@812) or all, as `acltape lint {}` lists them",
                            trace.path(), name, trace.path()));
  }
  return finder.Take();
}

// The work before goes to the device first, so that the event stands where the edit puts it.
void WaitEdits::Make(const std::map<int64_t, std::vector<AddedCall>>& calls, int64_t call_id,
                     WorkSink& sink) {
  const auto found = calls.find(call_id);
  if (found == calls.end()) return;
  sink.Flush();
  for (const AddedCall& added : found->second) {
    Event& event = events_.try_emplace(added.wait, session_.device).first->second;
    const aclrtStream stream = session_.handles.Stream(added.stream);
    if (added.record) {
      event.Record(stream);
    } else {
      event.MakeWait(stream);
    }
  }
}

}  // namespace acltape::replayer::acl_level
