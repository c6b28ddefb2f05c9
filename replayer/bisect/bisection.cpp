#include "replayer/bisect/bisection.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "meaning/options.h"
#include "replayer/bisect/element_text.h"

namespace acltape::replayer::bisect {
namespace {

using Ending = SearchResult::Verdict;

std::string Rate(const script::Outcome& outcome) {
  return fmt::format("{} of {} executions", outcome.bad_executions, outcome.executions);
}

// Returns the reason why an experiment could not be judged, such as "; nothing was compared". Empty
// if the evidence does not say.
std::string ReasonOf(const script::Outcome& outcome) {
  if (outcome.evidence.empty()) return "";
  const nlohmann::json evidence = nlohmann::json::parse(outcome.evidence);
  const auto found = evidence.find("error");
  return found == evidence.end() ? "" : "; " + found->get<std::string>();
}

std::string FoundSentence(const BisectionReport& report) {
  const FoundCause& first = report.found.front();
  std::string sentence;
  if (!first.cause.minimal) {
    const SearchResult& search = report.search;
    sentence = fmt::format(
        "out of time: the difference is there with {} of {} altered; the last "
        "one that it needs is among elements {} to {}",
        first.cause.elements.size(), report.elements, search.suspects_first,
        search.suspects_end - 1);
    return sentence;
  }
  if (!report.differs_with.empty()) {
    sentence = fmt::format("found: {} {}", report.differs_with,
                           fmt::join(first.descriptions, "; together with "));
    if (first.descriptions.size() > 1) sentence += "; with one less there is no difference";
  } else if (first.descriptions.size() == 1) {
    sentence = "found: " + first.descriptions[0] + " differs on its own";
  } else {
    sentence = "found: together, ";
    for (size_t i = 0; i < first.descriptions.size(); ++i) {
      if (i > 0) sentence += i + 1 == first.descriptions.size() ? " and " : ", ";
      sentence += first.descriptions[i];
    }
    sentence += " differ; with one less there is no difference";
  }
  if (report.found.size() > 1) sentence += fmt::format("; {} causes in all", report.found.size());
  if (!report.search.complete) sentence += "; out of time for more";
  return sentence;
}

}  // namespace

int BisectionReport::ExitCode() const {
  switch (search.verdict) {
    case Ending::kNothing:
      if (elements == 0 && (equal_beforehand.empty() || !nothing_altered.empty())) return 125;
      return coverage.TooLittle() ? 125 : 0;
    case Ending::kFound:
      return 1;
    default:
      return 125;
  }
}

std::string BisectionReport::Verdict() const {
  switch (search.verdict) {
    case Ending::kNothing: {
      if (elements == 0 && !nothing_altered.empty()) return "cannot judge: " + nothing_altered;
      if (elements == 0 && equal_beforehand.empty()) {
        return "nothing was compared: there is nothing to alter; name other calls, another plan or "
               "another @what"_cli;
      }
      const std::string same = elements == 0 ? equal_beforehand
                               : nothing_differs.empty()
                                   ? "with everything altered the results are the same"
                                   : nothing_differs;
      if (!coverage.TooLittle()) return "nothing found: " + same;
      return fmt::format(
          "not known: {}, and what was compared tells of {} of {} leaves that computed", same,
          coverage.covered, coverage.computed);
    }
    case Ending::kFound:
      if (found.empty()) {
        return fmt::format("different with everything altered, in {}", Rate(search.altered));
      }
      return FoundSentence(*this);
    case Ending::kFlakyReference:
      if (!bad_reference.empty()) return bad_reference;
      return fmt::format(
          "flaky: with nothing altered the results differ in {}, so no difference "
          "can be put down to the alteration",
          Rate(search.reference));
    case Ending::kReferenceDiffers:
      if (!bad_reference.empty()) return bad_reference;
      return fmt::format("the good side is not good: with nothing altered the results differ in {}",
                         Rate(search.reference));
    case Ending::kCannotJudge: {
      const bool reference = search.reference.verdict == script::Outcome::Verdict::kCannotJudge;
      return fmt::format("cannot judge: the program with {} altered gave no verdict",
                         reference ? "nothing" : "everything") +
             ReasonOf(reference ? search.reference : search.altered);
    }
    case Ending::kOutOfTime:
      return "out of time before both ends were judged";
  }
  return "";
}

BisectionReport Bisect(script::Experiment& experiment, const BisectionOptions& options,
                       Journal* journal, const ExperimentWith& experiment_with) {
  BisectionReport report;
  report.elements = experiment.size();
  report.bound = BoundForOne(experiment.size());
  Trials trials(experiment, options.trials, journal);
  report.search = options.only_judge ? JudgeEnds(trials, experiment.size(), options.search)
                                     : FindCauses(trials, experiment.size(), options.search);
  report.experiments = trials.experiments();
  report.from_journal = trials.from_journal();
  report.reference_command = experiment.Command({});
  report.altered_command = experiment.Command(AllElements(experiment.size()));
  for (const Cause& cause : report.search.causes) {
    FoundCause found;
    found.cause = cause;
    for (const size_t element : cause.elements) {
      found.descriptions.push_back(experiment.Describe(element));
    }
    found.command = experiment.Command(cause.elements);
    if (experiment_with && cause.minimal) {
      found.classification =
          Classify(cause.elements, trials, experiment_with, options.trials, journal);
      report.counter_experiments +=
          std::count_if(found.classification->results.begin(), found.classification->results.end(),
                        [](const CounterResult& r) { return r.effect != Effect::kNotMade; });
    }
    report.found.push_back(std::move(found));
  }
  return report;
}

}  // namespace acltape::replayer::bisect
