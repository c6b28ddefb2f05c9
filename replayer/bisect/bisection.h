// A whole bisection: it searches causes, classifies them, and gives the commands that show them
// again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/calls/coverage.h"
#include "replayer/bisect/classification.h"
#include "replayer/bisect/search.h"

namespace acltape::replayer::bisect {

struct BisectionOptions {
  SearchOptions search;
  TrialOptions trials;
  bool only_judge = false;  // judge both ends without a search, as `git bisect run` needs
};

struct FoundCause {
  Cause cause;
  std::vector<std::string> descriptions;  // one for each element
  std::optional<Classification> classification;
  std::vector<std::string> evidence;  // sentences that name bytes, waits or values
  std::string command;                // shows the difference again
  std::string narrowed;               // a sentence: this part of the elements is enough
  std::string narrowed_command;       // shows it with that part alone
  // The first call of the cause; 0 if the elements are not calls of a step.
  int64_t first_call = 0;
  std::string experiment;  // MixedStepJson of a step that shows the difference
};

struct BisectionReport {
  SearchResult search;
  std::vector<FoundCause> found;
  std::vector<std::string> flaky;  // sentences: these calls differ from run to run
  size_t elements = 0;
  // Says what the compared outputs tell of. It is empty for a check, which compares by itself, and
  // for a search among picked calls against the recording, which answers for these.
  analyzer::Coverage coverage;
  // A check has here the calls of its step that are no views, and those that it is asked about.
  analyzer::Coverage asked;
  size_t unjudged = 0;       // calls that are no element, because the recording lacks their results
  int64_t experiments = 0;   // all experiments of the search
  int64_t from_journal = 0;  // experiments whose outcomes were in the journal
  int64_t counter_experiments = 0;
  int64_t narrowing_experiments = 0;
  // Most experiments for a cause of one element, see BoundForOne.
  int64_t bound = 0;
  std::string reference_command;  // with nothing altered
  std::string altered_command;    // with everything altered
  // Texts of the verdict if the elements are not calls. `differs_with` replaces "differs on its
  // own", for example "the step is right on one stream and differs with". `bad_reference` replaces
  // the sentence about a bad reference.
  // `nothing_differs` replaces "with everything altered the results are the same".
  std::string differs_with;
  std::string nothing_differs;
  std::string bad_reference;
  // The verdict if both sides were compared before the search and nothing was left to alter. Empty
  // if they were not compared.
  std::string equal_beforehand;
  // The reason why nothing could be altered though the sides differ; else empty.
  std::string nothing_altered;

  // Returns 0 if nothing was found, 1 if a cause was found, and 125 otherwise, also if nothing was
  // compared, or too little.
  int ExitCode() const;
  // Returns the result of the bisection in one sentence.
  std::string Verdict() const;
};

// `journal` may be null. If `experiment_with` is empty, no cause is classified.
BisectionReport Bisect(script::Experiment& experiment, const BisectionOptions& options,
                       Journal* journal, const ExperimentWith& experiment_with);

}  // namespace acltape::replayer::bisect
