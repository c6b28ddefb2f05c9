// The question of a bisection: does the program still give the right results if exactly these
// elements are executed in the suspected way?
//
// Elements are numbered 0 to size() - 1 in the order of execution. The search (bisect/search.h)
// knows nothing else about them. So it treats calls, regions, streams, reused buffers, updates and
// external commands alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace acltape::replayer::script {

// A set of elements, sorted and without repetition.
using ElementSet = std::vector<size_t>;

struct Outcome {
  enum class Verdict {
    kGood,         // the results equal the reference
    kBad,          // the results differ
    kUnstable,     // the results vary
    kCannotJudge,  // the experiment could not be made (exit code 125 of a command)
  };
  Verdict verdict = Verdict::kGood;
  int executions = 0;       // executions in this experiment
  int bad_executions = 0;   // executions with a bad result
  std::string fingerprint;  // bad outcomes with equal fingerprints are the same
  std::string evidence;     // JSON object: first different output and how it differs
};

class Experiment {
 public:
  virtual ~Experiment() = default;
  virtual size_t size() const = 0;
  // Returns a text such as "call 812 aten::mm".
  virtual std::string Describe(size_t element) const = 0;
  // Executes the elements of `altered` in the suspected way and all others in the trusted way.
  // Throws Error kDevice or kTrace if nothing can be executed at all.
  virtual Outcome Try(const ElementSet& altered) = 0;
  // Tells the experiment an outcome that an earlier process saw. This set is then not tried again.
  virtual void Recall(const ElementSet& /*altered*/, const Outcome& /*outcome*/) {}
  // Returns the command that makes this experiment again.
  virtual std::string Command(const ElementSet& altered) const = 0;
};

}  // namespace acltape::replayer::script
