// Finds the smallest sets of elements whose alteration makes a program fail.
//
// First both ends are judged: with nothing altered the program must be good, and with everything
// altered it must fail. Then a binary search finds the smallest prefix that fails; its last element
// is the first guess. If that element fails alone, it is the cause. This takes at most ceil(log2 n)
// + 3 experiments for a cause of one element (BoundForOne). If it does not fail alone, it needs
// partners. They are found in the same way: each is the end of the smallest prefix that fails
// together with those found before (the dichotomic search for minimal unsatisfiable cores of
// Hemery, Lecoutre, Sais and Boussemart, ECAI 2006). This takes at most BoundFor(n, k) experiments
// for a cause of k elements.
//
// Both steps assume that failure is monotonic: a set fails if a part of it fails. This may not
// hold, and some prefixes may be impossible to judge. So every answer is verified: the set must
// fail, and no set with one element less may fail. If an answer does not pass, or could not be
// judged, delta debugging (delta_debugging.h) reduces the smallest set that is known to fail.
//
// trials.h handles failures that vary from run to run. If a program already fails with nothing
// altered, nothing is searched: either it always differs, or the reference is flaky.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replayer/bisect/trials.h"

namespace acltape::replayer::bisect {

enum class SearchMethod {
  kPrefixes,        // binary search over prefixes, then delta debugging if needed
  kDeltaDebugging,  // delta debugging of all elements
};

struct SearchOptions {
  SearchMethod method = SearchMethod::kPrefixes;
  // Number of independent causes to look for. Each is searched without the elements of the causes
  // before it.
  int causes = 1;
  // Executions of a reference that fails, to measure how often it does.
  int64_t executions_of_flaky = 50;
};

// A set of elements that fails, while no set with one element less fails.
struct Cause {
  script::ElementSet elements;
  size_t first_guess = 0;   // the end of the smallest failing prefix
  bool minimal = false;     // false: time ran out before it was verified
  bool monotonic = true;    // false: delta debugging was needed
  script::Outcome outcome;  // with exactly these elements altered
  int64_t experiments = 0;  // until the cause was verified, with those of earlier causes
  // The part of them until the first guess was tried alone.
  int64_t to_first_guess = 0;
};

struct SearchResult {
  enum class Verdict {
    kNothing,           // with everything altered it is good
    kFound,             // at least one cause
    kFlakyReference,    // with nothing altered it is good in one run and bad in another
    kReferenceDiffers,  // with nothing altered it is always bad
    kCannotJudge,       // one of the ends cannot be judged
    kOutOfTime,         // before a cause was found
  };
  Verdict verdict = Verdict::kNothing;
  std::vector<Cause> causes;
  bool complete = true;       // false: time ran out; the suspects are the result so far
  script::Outcome reference;  // with nothing altered
  script::Outcome altered;    // with everything altered
  // The cause lies in elements [0, suspects_end). Its last element is suspects_first or a later
  // one.
  size_t suspects_first = 0;
  size_t suspects_end = 0;
  // True if outcomes varied between executions of one set. The next three members then matter.
  bool varies = false;
  double rate = 1;         // rate of failure of the altered program
  int64_t executions = 1;  // executions without a failure after which a set was clean
  // Upper bound of the probability that any clean answer of the search is wrong.
  double error = 0;
};

SearchResult FindCauses(Trials& trials, size_t elements, const SearchOptions& options);
// Judges both ends without a search. The verdict kFound then comes without causes.
SearchResult JudgeEnds(Trials& trials, size_t elements, const SearchOptions& options);

// Returns ceil(log2 n), and 0 for n < 2.
int64_t CeilLog2(size_t n);
// Return the most experiments that a cause of one element, or of k elements, can take if failure is
// monotonic.
int64_t BoundForOne(size_t elements);
int64_t BoundFor(size_t elements, size_t k);

}  // namespace acltape::replayer::bisect
