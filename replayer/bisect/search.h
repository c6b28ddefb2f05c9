// Finds the smallest sets of elements whose alteration makes a program fail.
//
// First both ends are looked at: with nothing altered the program must be good, with everything
// altered it must fail. Then binary search finds the smallest prefix that fails; its last element
// is the first guess. If it fails alone, it is the cause: at most ceil(log2 n) + 3 experiments for
// a cause of one element, which is BoundForOne. If not, it needs partners, which are found in the
// same way, each being the end of the smallest prefix that fails together with those found before
// (the dichotomic search for minimal unsatisfiable cores of Hemery, Lecoutre, Sais and Boussemart,
// ECAI 2006): at most BoundFor(n, k) for a cause of k elements.
//
// Neither step is right when failure is not monotonic, that is when a set does not fail although a
// part of it does, and prefixes may be impossible to judge. So every answer is verified: it fails,
// and no set with one element less does. What contradicts that, or could not be judged, is reduced
// by delta debugging (delta_debugging.h) from the smallest set that is known to fail.
//
// Elements whose failure varies from run to run: trials.h. A program that already fails with
// nothing altered is not searched: either it always differs, or the reference is flaky.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replayer/bisect/trials.h"

namespace acltape::replayer {

enum class SearchMethod {
  kPrefixes,        // binary search over prefixes, verified; delta debugging where that fails
  kDeltaDebugging,  // delta debugging of everything
};

struct SearchOptions {
  SearchMethod method = SearchMethod::kPrefixes;
  int causes = 1;  // independent ones to look for, each without the elements of those before
  int64_t executions_of_flaky = 50;  // of a reference that fails, to know its rate
};

// A set that fails, while no set with one element less does.
struct Cause {
  ElementSet elements;
  size_t first_guess = 0;      // the end of the smallest failing prefix
  bool minimal = false;        // false: the budget ended before that was verified
  bool monotonic = true;       // false: delta debugging was needed
  Outcome outcome;             // with exactly these elements altered
  int64_t experiments = 0;     // up to the verified cause, those before it included
  int64_t to_first_guess = 0;  // of those: until the guess was verified or refuted on its own
};

struct SearchResult {
  enum class Verdict {
    kNothing,           // with everything altered it is good
    kFound,             // at least one cause
    kFlakyReference,    // with nothing altered it is good in one run and bad in another
    kReferenceDiffers,  // with nothing altered it is always bad
    kCannotJudge,       // one of both ends cannot be judged
    kOutOfTime,         // before a cause was found
  };
  Verdict verdict = Verdict::kNothing;
  std::vector<Cause> causes;
  bool complete = true;  // false: the budget ended the search; what is below holds
  Outcome reference;     // with nothing altered
  Outcome altered;       // with everything altered
  // The cause lies in elements [0, suspects_end), its last element at or behind suspects_first.
  size_t suspects_first = 0;
  size_t suspects_end = 0;
  bool varies = false;     // outcomes did; then:
  double rate = 1;         // at which the altered program failed
  int64_t executions = 1;  // after which a set without failure counted as clean
  double error = 0;        // that any clean answer of the search is wrong, at most
};

SearchResult FindCauses(Trials& trials, size_t elements, const SearchOptions& options);
// Looks at both ends only. kFound is without causes then.
SearchResult JudgeEnds(Trials& trials, size_t elements, const SearchOptions& options);

// ceil(log2 n), 0 for n < 2.
int64_t CeilLog2(size_t n);
// Most experiments for a cause of one element, and of k, when failure is monotonic.
int64_t BoundForOne(size_t elements);
int64_t BoundFor(size_t elements, size_t k);

}  // namespace acltape::replayer
