#include "analyzer/lint/lint.h"

#include <algorithm>
#include <optional>

#include "analyzer/calls/level.h"
#include "analyzer/lint/both_levels.h"
#include "analyzer/lint/words.h"
#include "analyzer/streams/budget.h"
#include "generated/meaning/interface_numbers.h"
#include "storage/database.h"

namespace acltape::analyzer::lint {
namespace {

// Occurrences in one stretch beyond this number are counted together.
constexpr int64_t kMostOccurrences = 20;

bool Applies(LintScope scope, Dialect dialect, bool of_stretch) {
  const bool acl = dialect == Dialect::kAcl;
  switch (scope) {
    case LintScope::kAclStretch:
      return of_stretch && acl;
    case LintScope::kAtenStretch:
      return of_stretch && !acl;
    case LintScope::kStretch:
      return of_stretch;
    case LintScope::kAclTrace:
      return !of_stretch && acl;
    default:
      return !of_stretch;
  }
}

}  // namespace

namespace {

StepFacts FindStepFacts(const Work& work, const std::vector<Stretch>& stretches) {
  StepFacts facts;
  if (work.steps.size() < 2 || stretches.empty() || stretches.front().step < 0) return facts;
  if (stretches.front().recorded()) return facts;
  facts.families = graph::FindFamilies(work);
  for (const graph::StepFamily& family : facts.families) {
    facts.variations.push_back(graph::FindVariation(work, family));
  }
  return facts;
}

}  // namespace

StretchBudget BudgetOf(const CaptureFacts& facts) {
  StretchBudget budget;
  for (const CaptureMember& member : facts.members) {
    budget.entries += member.entries;
    const int64_t pieces = (member.entries + streams::kQueueEntries - 1) / streams::kQueueEntries;
    budget.streams += std::max<int64_t>(pieces, 1);
  }
  return budget;
}

std::string_view CaptureModeName(CaptureMode mode) {
  return meaning::kAclCaptureModes[static_cast<size_t>(mode)].name;
}

CaptureMode LintContext::ExchangedMode(int32_t thread, size_t call) const {
  CaptureMode mode = CaptureMode::kGlobal;
  for (const ModeExchange& exchange : exchanges) {
    if (exchange.call >= call) break;
    if (exchange.thread == thread) mode = exchange.mode;
  }
  return mode;
}

Codes LintContext::UnsafeCodes(size_t call, int32_t code) const {
  const int32_t thread = work.calls[call].thread;
  const CaptureMode exchanged = ExchangedMode(thread, call);
  Codes codes{};
  for (const CaptureMode mode : kCaptureModes) {
    if (RefusesUnsafe(mode, thread == stretch().thread, exchanged)) {
      codes[static_cast<size_t>(mode)] = code;
    }
  }
  return codes;
}

bool LintContext::EndsInAnotherThread() const {
  return stretch().end_call >= 0 && work.calls[stretch().end_call].thread != stretch().thread;
}

Codes LintContext::EndCodes(int32_t code) const {
  constexpr int32_t kWrongThread = meaning::kAclErrorRtStreamCaptureWrongThread;
  if (!EndsInAnotherThread()) return InEveryMode(code);
  return {kWrongThread, kWrongThread, code};
}

void Found::Begin(const LintRule& rule, const LintContext& context) {
  rule_ = &rule;
  context_ = &context;
  occurrences_.clear();
}

void Found::Add(int64_t call, std::string message, const Options& options) {
  const Work& work = context_->work;
  const auto side = [&](int64_t index) {
    return index < 0 ? Side{} : Side{work.op(index).op_id, context_->places.Of(index)};
  };
  const Key key = {rule_, side(call), side(options.other), options.subject};
  const int64_t occurrence = options.merged ? 0 : std::min(occurrences_[key]++, kMostOccurrences);
  const auto [entry, created] = first_.try_emplace({key, occurrence}, findings_.size());
  if (!created && context_->options.merge) {
    ++findings_[entry->second].count;
    return;
  }
  Finding& finding = findings_.emplace_back();
  finding.rule = rule_;
  finding.stretch = context_->stretch_index;
  finding.call_id = call < 0 ? 0 : work.calls[call].call_id;
  finding.codes = options.codes == nullptr ? rule_->codes : *options.codes;
  finding.fails_at = options.fails_at == FailsAt::kNowhere ? rule_->fails_at : options.fails_at;
  finding.message = std::move(message);
  if (call >= 0) finding.evidence.push_back(finding.call_id);
  if (options.other >= 0) finding.evidence.push_back(work.calls[options.other].call_id);
  finding.edits = options.edits;
  finding.of_graphs = options.of_graphs;
  CompareWithRecording(call, finding);
}

void Found::CompareWithRecording(int64_t call, Finding& finding) const {
  if (IsAboutFailures(*rule_)) finding.verdict = "reproduced";
  if (context_->stretches.empty()) return;
  const Stretch& stretch = context_->stretch();
  if (!stretch.recorded() || call < 0) return;
  const int32_t predicted = finding.code(stretch.mode);
  int64_t failing = -1;
  if (finding.fails_at == FailsAt::kCall) failing = call;
  if (finding.fails_at == FailsAt::kEnd) failing = stretch.end_call;
  if (failing < 0) return;
  const int32_t recorded = context_->work.calls[failing].status;
  if (predicted == 0 && recorded == 0) return;  // the interface refuses it in other modes only
  finding.verdict = recorded == predicted ? "reproduced" : "refuted";
}

namespace {

// Returns a text that findings with one cause have in common.
std::string CauseOf(const Work& work, const Places& places, Words& words, const Finding& finding) {
  std::string cause(finding.rule->id);
  if (finding.by_adapter) {
    return cause + " | adapter | " +
           work.op(static_cast<size_t>(work.Find(finding.call_id))).FullName();
  }
  if (finding.rule->cause == LintCause::kSteps || finding.call_id == 0) return cause;
  const auto side = [&](int64_t call_id) {
    const int64_t found = work.Find(call_id);
    if (found < 0) return std::string();
    const auto call = static_cast<size_t>(found);
    if (places.Of(call) != 0) return places.Text(call);
    return words.Operator(call) + " " + std::to_string(work.calls[call].scope);
  };
  const bool placed = places.Of(static_cast<size_t>(work.Find(finding.call_id))) != 0;
  if (placed && words.over_torch()) {
    if (finding.rule->cause == LintCause::kHostWait) cause = "host wait";
    if (finding.rule->cause == LintCause::kBaked) cause = "baked";
  }
  cause += " | " + side(finding.call_id);
  if (finding.rule->cause == LintCause::kBothLines && finding.evidence.size() > 1) {
    cause += " | " + side(finding.evidence[1]);
  }
  return cause;
}

// Puts names into messages, adds the evidence at their end, and writes edits as sentences.
void Spell(const Work& work, const Places& places, const std::vector<Stretch>& stretches,
           std::vector<Finding>& findings) {
  Words words(work, places);
  for (Finding& finding : findings) {
    finding.message = words.Spell(finding.message) + words.Evidence(finding.evidence);
    const bool advised = words.over_torch() && !finding.rule->torch_edit.empty();
    if (!stretches.empty() && !advised) {
      finding.advice = words.Edits(finding.edits, stretches[finding.stretch]);
    }
    if (finding.advice.empty()) {
      finding.advice = advised ? finding.rule->torch_edit : finding.rule->edit;
    }
    const int64_t call = finding.call_id == 0 ? -1 : work.Find(finding.call_id);
    if (call >= 0) finding.subject = words.Operator(static_cast<size_t>(call));
    finding.cause = CauseOf(work, places, words, finding);
  }
}

}  // namespace

namespace {

// True if the adapter of a framework makes the call by itself: it asks about events of its own
// while it runs an operator, or a thread of its own issues the call.
bool IsOfAdapter(const Work& work, size_t call, const Places& places, bool both_levels) {
  const AclCallKind kind = work.form(call).acl_kind();
  if (kind == AclCallKind::kOperator || kind == AclCallKind::kUnknown) return false;
  const bool in_operator = work.calls[call].parent_id != 0;
  if (kind == AclCallKind::kEventQuery) return in_operator || !both_levels;
  return places.Of(call) == 0 && !in_operator;
}

// True if one operator of the framework made both calls of the finding: its kernel forks a stream
// and orders the two by itself, which it does in a capture too. Without leaves the line tells that.
bool IsInsideOfOneOperator(const Work& work, const Places& places, bool both_levels,
                           const Finding& finding) {
  if (finding.rule->id != "LINT-32" || finding.evidence.size() < 2) return false;
  const int64_t first = work.Find(finding.evidence[0]);
  const int64_t second = work.Find(finding.evidence[1]);
  if (first < 0 || second < 0) return false;
  if (!both_levels) {
    const int32_t place = places.Of(static_cast<size_t>(first));
    return place != 0 && place == places.Of(static_cast<size_t>(second));
  }
  if (work.calls[first].parent_id == 0) return false;
  return work.calls[first].parent_id == work.calls[second].parent_id;
}

void MarkAdapter(const Work& work, const Places& places, std::vector<Finding>& findings) {
  if (work.dialect != Dialect::kAcl || findings.empty()) return;
  storage::Database& database = work.trace->database();
  const bool framework =
      database.Integer(
          "SELECT 1 FROM meta WHERE key = 'torch_library' AND coalesce(value, '') <> ''") != 0;
  if (!framework) return;
  const bool both_levels = HoldsLevel(*work.trace, Level::kAten);
  for (Finding& finding : findings) {
    const int64_t call = finding.call_id == 0 ? -1 : work.Find(finding.call_id);
    if (IsInsideOfOneOperator(work, places, both_levels, finding)) {
      finding.by_adapter = true;
      continue;
    }
    // The allocator of the framework takes the memory, and a graph's pool keeps it.
    const bool of_memory =
        call >= 0 && IsMemoryCall(work.form(static_cast<size_t>(call)).acl_kind());
    if (of_memory && (finding.rule->id == "LINT-04" || finding.rule->id == "LINT-12")) {
      finding.by_adapter = true;
      continue;
    }
    // A code that a capture of the program gave is no guess.
    if (call < 0 || finding.verdict != "predicted" || finding.codes == Codes{}) continue;
    finding.by_adapter = IsOfAdapter(work, static_cast<size_t>(call), places, both_levels);
  }
}

}  // namespace

LintReport Lint(const Work& work, const LintOptions& options) {
  LintReport report;
  report.stretches = FindStretches(work, options.stretch);
  if (options.wanted) {
    std::erase_if(report.stretches,
                  [&](const Stretch& stretch) { return !options.wanted(stretch); });
  }
  const bool acl = work.dialect == Dialect::kAcl;
  const Handles handles(work);
  const std::vector<ModeExchange> exchanges = FindExchanges(work);
  const StepFacts steps = FindStepFacts(work, report.stretches);
  const Places places(work);
  LintOptions looked_at = options;
  // A program on the interface alone: its calls are the entries.
  std::optional<executions::OwnGraphs> own;
  if (acl && options.graphs == nullptr && !HasLeavesBeside(work)) {
    looked_at.graphs = &own.emplace(executions::FindOwnGraphs(work, work));
  }
  std::optional<Places> others;
  const Work* calls = looked_at.graphs == nullptr ? nullptr : looked_at.graphs->calls;
  if (calls != nullptr && calls != &work) others.emplace(*calls);
  LintContext context{work,  report.stretches, handles,   exchanges,
                      steps, places,           looked_at, others ? *others : places};
  Found found;
  const auto check = [&](bool of_stretch) {
    for (const LintRule& rule : LintRules()) {
      if (!Applies(rule.scope, work.dialect, of_stretch)) continue;
      found.Begin(rule, context);
      rule.check(context, found);
    }
  };
  check(/*of_stretch=*/false);
  report.budgets.resize(report.stretches.size());
  for (size_t i = 0; i < report.stretches.size(); ++i) {
    CaptureFacts facts;
    if (acl) {
      facts = FindCaptureFacts(work, report.stretches[i], handles);
      report.budgets[i] = BudgetOf(facts);
    }
    context.stretch_index = i;
    context.facts = &facts;
    check(/*of_stretch=*/true);
  }
  report.findings = found.Take();
  LeaveOutToldFailures(work, report.stretches, report.findings);
  MarkAdapter(work, places, report.findings);
  Spell(work, places, report.stretches, report.findings);
  std::stable_sort(report.findings.begin(), report.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.call_id < b.call_id; });
  return report;
}

}  // namespace acltape::analyzer::lint
