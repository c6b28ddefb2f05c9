#include "replayer/probe/prove.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <set>

namespace acltape::replayer::probe {
namespace {

using analyzer::Work;
using analyzer::lint::CaptureMode;
using analyzer::lint::Codes;
using analyzer::lint::Edit;
using analyzer::lint::FailsAt;
using analyzer::lint::Finding;
using analyzer::lint::LintReport;

constexpr size_t kMostCleanStretches = 20;
bool IsRace(const Finding& finding) { return finding.rule->id == "LINT-20"; }
bool IsBudget(const Finding& finding) { return finding.rule->id == "LINT-08"; }
// Out of streams: the code differs between versions (rule STR-06).
bool IsExhaustion(int32_t code) {
  return code == ACL_ERROR_RT_RESOURCE_ALLOC_FAIL || code == ACL_ERROR_RT_NO_STREAM_RESOURCE;
}

enum class Answer { kUnknown, kAsPredicted, kOtherwise };

// True if a probe can judge the finding: it has codes, is a race of a graph, or is about the budget
// of streams.
bool CanBeJudged(const Finding& finding) {
  return IsRace(finding) || IsBudget(finding) || finding.codes != Codes{};
}

// The answer of a probe in one mode about a finding.
Answer Judge(const Finding& finding, CaptureMode mode, const ProbeReport& probe) {
  const int32_t predicted = finding.code(mode);
  const auto compare = [&](int32_t code) {
    return code == predicted ? Answer::kAsPredicted : Answer::kOtherwise;
  };
  if (finding.fails_at == FailsAt::kBegin) return compare(probe.begin_code);
  if (probe.begin_code != 0) return Answer::kUnknown;
  if (finding.fails_at == FailsAt::kEnd) {
    return probe.stopped.empty() ? compare(probe.end_code) : Answer::kUnknown;
  }
  if (finding.fails_at != FailsAt::kCall) return Answer::kUnknown;
  const auto& left_out = probe.left_out;
  if (std::find(left_out.begin(), left_out.end(), finding.call_id) != left_out.end()) {
    return Answer::kUnknown;
  }
  return compare(probe.CodeOf(finding.call_id));
}

// Says why a probe has no answer about a finding that can be judged; empty if it had one, or if
// executions of a race made no difference.
std::string ReasonOfNoAnswer(const Finding& finding, const ProbeReport& probe) {
  if (!probe.stopped.empty()) return probe.stopped;
  if (probe.begin_code != 0) {
    return "the capture did not begin (code " + std::to_string(probe.begin_code) + ")";
  }
  if (IsRace(finding)) {
    return probe.captured() ? ""
                            : "the region cannot be captured (code " +
                                  std::to_string(probe.end_code) + "), so nothing was executed";
  }
  const auto& left_out = probe.left_out;
  if (finding.fails_at == FailsAt::kCall &&
      std::find(left_out.begin(), left_out.end(), finding.call_id) != left_out.end()) {
    return "call " + std::to_string(finding.call_id) + " cannot be issued again";
  }
  return "";
}

class Trial {
 public:
  Trial(const Work& work, const ProveOptions& options, LintReport& report)
      : work_(work), options_(options), report_(report) {
    if (options.budget_s <= 0) return;
    deadline_ = std::chrono::steady_clock::now() +
                std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                    std::chrono::duration<double>(options.budget_s));
  }

  std::vector<ProbeRow> Run() {
    std::set<size_t> chosen;
    for (const Finding& finding : report_.findings) chosen.insert(finding.stretch);
    for (size_t i = 0; i < report_.stretches.size() && i < kMostCleanStretches; ++i) {
      chosen.insert(i);
    }
    int64_t done = 0;
    for (const size_t stretch : chosen) {
      IsLate() ? LeaveOut(stretch) : ProbeStretch(stretch);
      if (options_.progress) options_.progress(++done, static_cast<int64_t>(chosen.size()));
    }
    return std::move(rows_);
  }

 private:
  bool IsLate() const { return deadline_ && std::chrono::steady_clock::now() >= *deadline_; }

  void LeaveOut(size_t index) {
    for (Finding& finding : report_.findings) {
      const bool open = finding.stretch == index && finding.verdict == "predicted";
      if (open && CanBeJudged(finding)) {
        finding.verdict = "not known: the time for the proof was over before this region";
      }
    }
  }

  void ProbeStretch(size_t index) {
    std::vector<Finding*> findings;
    std::vector<Edit> edits;
    bool races = false;
    for (Finding& finding : report_.findings) {
      if (finding.stretch != index) continue;
      findings.push_back(&finding);
      races = races || IsRace(finding);
      for (const Edit& edit : finding.edits) {
        if (std::find(edits.begin(), edits.end(), edit) == edits.end()) edits.push_back(edit);
      }
    }
    std::vector<Answer> answers(findings.size(), Answer::kUnknown);
    std::vector<std::string> reasons(findings.size());
    for (const CaptureMode mode : options_.modes) {
      const ProbeReport& probe = AddRow(index, mode, {}, races);
      for (size_t i = 0; i < findings.size(); ++i) {
        Answer answer = Judge(*findings[i], mode, probe);
        if (IsRace(*findings[i]) && probe.differing > 0) answer = Answer::kAsPredicted;
        if (answers[i] != Answer::kOtherwise && answer != Answer::kUnknown) answers[i] = answer;
        if (reasons[i].empty()) reasons[i] = ReasonOfNoAnswer(*findings[i], probe);
      }
      if (!edits.empty() && probe.stopped.empty()) AddRow(index, mode, edits, races);
    }
    for (size_t i = 0; i < findings.size(); ++i) {
      if (IsBudget(*findings[i])) answers[i] = JudgeBudget(index);
      if (answers[i] == Answer::kAsPredicted) findings[i]->verdict = "reproduced";
      if (answers[i] == Answer::kOtherwise) findings[i]->verdict = "refuted";
      if (IsBudget(*findings[i]) && answers[i] == Answer::kUnknown) {
        reasons[i] = "the time for the proof was over";
      }
      const bool open = answers[i] == Answer::kUnknown && findings[i]->verdict == "predicted";
      if (open && CanBeJudged(*findings[i]) && !reasons[i].empty()) {
        findings[i]->verdict = "not known: " + reasons[i];
      }
    }
  }

  // The prediction holds if as many graphs of the stretch fit as predicted, and not one more.
  Answer JudgeBudget(size_t index) {
    ProbeOptions probe;
    probe.device_lib = options_.device_lib;
    probe.mode = options_.modes.front();
    probe.deadline = deadline_;
    const BudgetProbe budget =
        ProbeBudget(work_, report_.stretches[index], probe, options_.stream_limit);
    const int64_t room = options_.stream_limit - budget.streams;
    if (budget.code == 0 && IsLate()) return Answer::kUnknown;
    const bool as_predicted =
        IsExhaustion(budget.code) && budget.graphs == room / report_.budgets[index].streams;
    return as_predicted ? Answer::kAsPredicted : Answer::kOtherwise;
  }

  const ProbeReport& AddRow(size_t stretch, CaptureMode mode, std::vector<Edit> edits,
                            bool executed) {
    ProbeOptions probe;
    probe.device_lib = options_.device_lib;
    probe.mode = mode;
    probe.edits = std::move(edits);
    probe.executions = executed ? options_.executions : 0;
    probe.seed = options_.seed;
    probe.deadline = deadline_;
    ProbeRow row;
    row.stretch = stretch;
    row.mode = mode;
    row.edited = !probe.edits.empty();
    row.report = Probe(work_, report_.stretches[stretch], probe);
    rows_.push_back(std::move(row));
    return rows_.back().report;
  }

  const Work& work_;
  const ProveOptions& options_;
  LintReport& report_;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  std::vector<ProbeRow> rows_;
};

}  // namespace

std::vector<ProbeRow> Prove(const Work& work, const ProveOptions& options, LintReport& report) {
  if (std::any_of(report.findings.begin(), report.findings.end(), IsRace)) {
    // A device that can vary the interleaving is asked to, unless the user has said how.
    setenv("ACLTAPE_SOFT_JITTER", std::to_string(options.seed).c_str(), /*overwrite=*/0);
  }
  if (std::any_of(report.findings.begin(), report.findings.end(), IsBudget)) {
    // ... and one whose limit can be set has the one that the finding is about.
    setenv("ACLTAPE_SOFT_STREAMS", std::to_string(options.stream_limit).c_str(), /*overwrite=*/0);
  }
  return Trial(work, options, report).Run();
}

}  // namespace acltape::replayer::probe
