// What bisection asks: does the program still give the right results when these calls, and no
// others, are executed the suspected way?
//
// Elements are numbered 0 to size() - 1 in the order of execution. The search (search.h) knows
// nothing else of them, so calls, regions, streams, reused buffers, updates and an external command
// are bisected alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace acltape::replayer {

// Sorted, without repetition.
using ElementSet = std::vector<size_t>;

struct Outcome {
  enum class Verdict {
    kGood,         // as the reference
    kBad,          // different
    kUnstable,     // sometimes one, sometimes the other
    kCannotJudge,  // the experiment could not be made (exit code 125 of a command)
  };
  Verdict verdict = Verdict::kGood;
  int executions = 0;       // that it took
  int bad_executions = 0;   // of those
  std::string fingerprint;  // of the results: two bad outcomes with one fingerprint are the same
  std::string evidence;     // JSON object: first different output and how it differs
};

class Experiment {
 public:
  virtual ~Experiment() = default;
  virtual size_t size() const = 0;
  // "call 812 aten::mm"
  virtual std::string Describe(size_t element) const = 0;
  // With the elements of `altered` executed the suspected way, all others the trusted way. Throws
  // Error kDevice or kTrace when nothing can be executed at all.
  virtual Outcome Try(const ElementSet& altered) = 0;
  // An outcome of `altered` that an earlier process saw and that is not asked for again.
  virtual void Recall(const ElementSet& /*altered*/, const Outcome& /*outcome*/) {}
  // The command that makes this experiment again.
  virtual std::string Command(const ElementSet& altered) const = 0;
};

}  // namespace acltape::replayer
