#include "cli/replay/regression.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cli/frame/command.h"
#include "cli/tables/coverage_words.h"
#include "meaning/options.h"
#include "replayer/statistics.h"
#include "storage/checked_row.h"
#include "storage/database.h"
#include "storage/error.h"
#include "storage/plain_file.h"
#include "storage/reader.h"

namespace acltape::cli {
namespace {

using nlohmann::json;
using replayer::Estimate;

struct EarlierTimes {
  std::string name;  // "run 7", "before.json"
  Estimate captured;
  Estimate eager;      // in the same run
  int64_t leaves = 0;  // leaves of a step; 0: as many as in this trace
};

// A growth of captured host time below this share of the eager one is what other programs on a
// machine cost, whatever the limit.
constexpr double kLeastGrowth = 0.02;

Estimate TimesOfRun(const storage::Reader& trace, int64_t run, double confidence) {
  std::vector<double> samples;
  storage::Statement found(trace.database(),
                           "SELECT host_ns FROM sample WHERE run_id = ? AND call_id IS NULL AND "
                           "region_id IS NULL AND host_ns IS NOT NULL");
  found.Bind(1, run);
  const storage::CheckedRow row(found, trace.path(), "sample");
  while (found.Next()) {
    samples.push_back(
        static_cast<double>(row.Integer(0, "host_ns", -storage::kMostNs, storage::kMostNs)));
  }
  return samples.empty() ? Estimate() : replayer::MedianOf(std::move(samples), confidence);
}

// The number in the first column of the first row; none where it is NULL.
std::optional<int64_t> FirstNumber(storage::Statement& found) {
  if (!found.Next() || found.IsNull(0)) return std::nullopt;
  return found.Integer(0);
}

// The runs of one comparison stand side by side, the eager one first.
std::optional<int64_t> EagerRunBefore(const storage::Reader& trace, int64_t run) {
  storage::Statement found(trace.database(),
                           "SELECT max(run_id) FROM run WHERE run_id < ? AND mode = 'eager' AND "
                           "json_extract(options, '$.purpose') = 'timing'");
  found.Bind(1, run);
  return FirstNumber(found);
}

EarlierTimes FromRun(const storage::Reader& trace, int64_t run, double confidence) {
  EarlierTimes earlier{fmt::format("run {}", run), TimesOfRun(trace, run, confidence), {}};
  if (const auto eager = EagerRunBefore(trace, run)) {
    earlier.eager = TimesOfRun(trace, *eager, confidence);
  }
  return earlier;
}

// The last comparison before this one, on this device, by the same plan or by none.
std::optional<int64_t> LastRun(const storage::Reader& trace, const replayer::CompareReport& report,
                               const std::string& plan) {
  storage::Statement found(
      trace.database(),
      "SELECT max(run_id) FROM run WHERE mode = 'captured' AND exit_code = 0 AND "
      "json_extract(options, '$.purpose') = 'timing' AND device = ?1 AND "
      "json_extract(options, '$.plan') IS ?2 AND (?3 = 0 OR run_id < ?3)");
  found.Bind(1, std::string_view(report.device));
  if (!plan.empty()) found.Bind(2, std::string_view(plan));  // else NULL
  found.Bind(3, report.eager_run_id);
  return FirstNumber(found);
}

// The device on which a captured run of `compare` was timed.
std::string DeviceOfRun(const storage::Reader& trace, int64_t run) {
  storage::Statement found(trace.database(),
                           "SELECT device, mode FROM run WHERE run_id = ? AND "
                           "json_extract(options, '$.purpose') = 'timing'");
  found.Bind(1, run);
  if (!found.Next() || found.Text(1) != "captured") {
    throw Error(ErrorKind::kUsage,
                fmt::format("run {} of the trace is no captured run of `compare`; `acltape query "
                            "TRACE \"SELECT run_id, mode, options FROM run\"` lists the runs.",
                            run));
  }
  return std::string(storage::CheckedRow(found, trace.path(), "run").Text(0, "device"));
}

// The number of a run, when the baseline is one.
std::optional<int64_t> RunNumber(const std::string& baseline) {
  int64_t run = 0;
  const char* end = baseline.data() + baseline.size();
  const auto [rest, error] = std::from_chars(baseline.data(), end, run);
  return error == std::errc() && rest == end ? std::optional(run) : std::nullopt;
}

EarlierTimes FromFile(const std::string& path, bool planned) {
  std::string why;
  const std::optional<std::string> text = storage::ReadPlainFile(path, &why);
  if (!text) {
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}' is neither the number of a run nor a file of times, since it {}; "
                            "`acltape compare TRACE @format json > FILE` writes one."_cli,
                            path, why));
  }
  EarlierTimes earlier{path, {}, {}};
  try {
    const json document = json::parse(*text);
    for (const json& row : document.value("setting", json::array())) {
      if (row.at("quantity") == kLeavesPerStep) earlier.leaves = row.at("value");
    }
    for (const json& row : document.at("times")) {
      if (row.at("quantity") != "host_per_step" || row.at("unit") != "ns") continue;
      const Estimate estimate{row.at("median").get<double>(), row.at("low").get<double>(),
                              row.at("high").get<double>(), row.at("samples").get<int64_t>()};
      if (row.at("execution") == "eager") earlier.eager = estimate;
      if (row.at("execution") == (planned ? "planned" : "captured")) earlier.captured = estimate;
    }
  } catch (const json::exception&) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("'{}' is not what `acltape compare TRACE @format json` prints."_cli, path));
  }
  if (earlier.captured.samples == 0 || earlier.captured.low <= 0 || earlier.eager.samples == 0) {
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}' has no host time {} and of eager execution; compare in the same "
                            "way for both.",
                            path, planned ? "of an execution by a plan" : "of captured execution"));
  }
  return earlier;
}

std::string PercentText(double ratio) { return fmt::format("{:+.1f}%", 100 * (ratio - 1)); }

std::string ChangeText(const Estimate& change) {
  return fmt::format("{} [{}, {}]", PercentText(change.median), PercentText(change.low),
                     PercentText(change.high));
}

std::string TimeText(const Estimate& time) {
  return fmt::format("{} [{}, {}]", HumanNs(time.median), HumanNs(time.low), HumanNs(time.high));
}

std::string ShareText(const Estimate& share) {
  return fmt::format("{:.2f}% [{:.2f}%, {:.2f}%]", 100 * share.median, 100 * share.low,
                     100 * share.high);
}

using Judgement = RegressionAnswer::Verdict;

struct JudgementRow {
  Judgement verdict;
  const char* name;
  const char* sentence;  // the run, the limit, the change
};
constexpr JudgementRow kJudgements[] = {
    {Judgement::kSlower, "slower", "is slower than {} by more than {}: {}"},
    {Judgement::kNotSlower, "not slower", "is not slower than {} by more than {}: {}"},
    {Judgement::kCannotTell, "not known",
     "may or may not be slower than {} by more than {}, chance is not excluded: {}; repeat more "
     "often, or allow more"},
};

const JudgementRow& RowOfJudgement(Judgement verdict) {
  return *std::find_if(std::begin(kJudgements), std::end(kJudgements),
                       [&](const JudgementRow& row) { return row.verdict == verdict; });
}

// Few repetitions exclude no chance, however many steps each has and however far the intervals lie
// apart: what slows a machine for a moment slows neighbouring steps together.
Judgement Judge(const Estimate& now, const Estimate& before, const Estimate& change,
                int64_t repetitions, const RegressionQuestion& question) {
  const double most = 1 + question.limit;
  if (change.high <= most) return Judgement::kNotSlower;
  const bool grown = now.median - before.median > kLeastGrowth;
  const bool enough = repetitions >= replayer::LeastSamples(question.confidence);
  return grown && enough && change.low > most ? Judgement::kSlower : Judgement::kCannotTell;
}

}  // namespace

double ParsePercent(const std::string& option, const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const bool whole = rest == end || (rest + 1 == end && *rest == '%');
  if (error != std::errc() || !whole || !std::isfinite(number) || number < 0) {
    throw Error(ErrorKind::kUsage,
                fmt::format("`{} {}` is no part of the whole; write 5% or 2.5%.", option, text));
  }
  return number / 100;
}

void CheckBaseline(const storage::Reader& trace, const RegressionQuestion& question) {
  if (question.baseline.empty()) return;
  if (const auto run = RunNumber(question.baseline)) {
    DeviceOfRun(trace, *run);
  } else {
    FromFile(question.baseline, !question.plan.empty());
  }
}

int RegressionAnswer::ExitCode() const {
  if (verdict == Judgement::kSlower) return kExitDifferences;
  return verdict == Judgement::kNotSlower ? kExitFine : static_cast<int>(ErrorKind::kCannotJudge);
}

RegressionAnswer FindRegression(const storage::Reader& trace, const replayer::CompareReport& report,
                                const RegressionQuestion& question) {
  RegressionAnswer answer;
  const bool planned = !question.plan.empty();
  const Estimate& now = planned ? report.planned.host_ns : report.captured.host_ns;
  if (now.samples == 0) {
    answer.sentence = "nothing was captured, so there is no captured host time to judge";
    return answer;
  }
  EarlierTimes before;
  if (question.baseline.empty()) {
    const auto last = LastRun(trace, report, question.plan);
    if (!last) {
      answer.sentence =
          "the trace has no earlier run like this one to hold it against; this one is kept for the "
          "next time, or name another with @baseline"_cli;
      return answer;
    }
    before = FromRun(trace, *last, question.confidence);
  } else if (const auto run = RunNumber(question.baseline)) {
    const std::string device = DeviceOfRun(trace, *run);
    if (device != report.device) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("run {} was timed on another device: {}, and now {}.", *run, device,
                              report.device));
    }
    before = FromRun(trace, *run, question.confidence);
  } else {
    before = FromFile(question.baseline, planned);
  }
  const Estimate share = replayer::QuotientOf(now, report.eager.host_ns);
  const Estimate share_before = replayer::QuotientOf(before.captured, before.eager);
  const Estimate change = replayer::QuotientOf(share, share_before);
  if (change.samples == 0) {
    answer.sentence =
        fmt::format("{} has no times, captured and eager, to hold this run against", before.name);
    return answer;
  }
  answer.verdict = Judge(share, share_before, change, report.repetitions, question);
  // Times of steps that differ, or of a part of the step, say nothing of a step as a whole.
  std::string partly;
  if (report.coverage.TooLittle()) {
    partly = PartlyTimed(report.coverage);
  } else if (before.leaves != 0 && answer.verdict == Judgement::kNotSlower &&
             analyzer::TooFew(std::min(before.leaves, report.leaves_per_step),
                              std::max(before.leaves, report.leaves_per_step))) {
    partly = fmt::format("{} has {} leaves in a step, and this run {}", before.name, before.leaves,
                         report.leaves_per_step);
  }
  if (!partly.empty()) answer.verdict = Judgement::kCannotTell;
  const JudgementRow& verdict = RowOfJudgement(answer.verdict);
  const std::string limit = fmt::format("{:g}%", 100 * question.limit);
  const char* what = planned ? "host time by the plan" : "captured host time";
  answer.sentence = partly.empty()
                        ? fmt::format("{}, as a share of the eager one, {}", what,
                                      fmt::format(fmt::runtime(verdict.sentence), before.name,
                                                  limit, ChangeText(change)))
                        : fmt::format("there is no verdict on {}: {}", what, partly);
  answer.table.Add({"against", before.name});
  answer.table.Add({"host time before", TimeText(before.captured)});
  answer.table.Add({"host time now", TimeText(now)});
  answer.table.Add({"eager host time before", TimeText(before.eager)});
  answer.table.Add({"eager host time now", TimeText(report.eager.host_ns)});
  answer.table.Add({"share of the eager one before", ShareText(share_before)});
  answer.table.Add({"share of the eager one now", ShareText(share)});
  answer.table.Add({"change of the share", ChangeText(change)});
  answer.table.Add({"leaves that compute, and were run", report.coverage.Share()});
  answer.table.Add({"allowed", "+" + limit});
  answer.table.Add({"verdict", verdict.name});
  return answer;
}

}  // namespace acltape::cli
