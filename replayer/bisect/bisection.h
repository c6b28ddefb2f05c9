// A whole bisection: search, classification, what to run to see it again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replayer/bisect/classification.h"
#include "replayer/bisect/search.h"

namespace acltape::replayer {

struct BisectionOptions {
  SearchOptions search;
  TrialOptions trials;
  bool only_judge = false;  // both ends, no search: what `git bisect run` asks
};

struct FoundCause {
  Cause cause;
  std::vector<std::string> descriptions;  // of its elements
  std::optional<Classification> classification;
  std::vector<std::string> evidence;  // sentences: which bytes, which wait, which value
  std::string command;                // that shows it again
  std::string narrowed;               // a sentence: which part of its elements is enough
  std::string narrowed_command;       // that shows it with that part alone
  int64_t first_call = 0;             // of calls of a step: the first of them
  std::string experiment;             // MixedStepJson of a step that shows it
};

struct BisectionReport {
  SearchResult search;
  std::vector<FoundCause> found;
  std::vector<std::string> flaky;  // sentences: which calls differ from themselves, how often
  size_t elements = 0;
  int64_t experiments = 0;   // of the search
  int64_t from_journal = 0;  // of those
  int64_t counter_experiments = 0;
  int64_t narrowing_experiments = 0;
  int64_t bound = 0;              // of a cause of one element; experiments until the first guess
  std::string reference_command;  // with nothing altered
  std::string altered_command;    // with everything altered
  // Where elements are not calls: what the verdict says instead of "differs on its own", such as
  // "the step is right on one stream and differs with", and in place of a reference that is bad.
  std::string differs_with;
  std::string bad_reference;

  // 0 nothing to find, 1 found, 125 otherwise.
  int ExitCode() const;
  // One sentence: what came of it.
  std::string Verdict() const;
};

// `journal` may be null; `experiment_with` may be empty: then nothing is classified.
BisectionReport Bisect(Experiment& experiment, const BisectionOptions& options, Journal* journal,
                       const ExperimentWith& experiment_with);

}  // namespace acltape::replayer
