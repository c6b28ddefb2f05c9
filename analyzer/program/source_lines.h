// The lines of the program's source from which the calls of a trace come.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>

#include "storage/reader.h"

namespace acltape::analyzer {

// A line of the user's own code.
struct SourceLine {
  std::string file;  // as Python names it
  int64_t line = 0;
  std::string function;
};

class SourceLines {
 public:
  // A trace without lines costs one query. The trace must outlive the object.
  explicit SourceLines(const storage::Reader& trace);

  // False if the trace has no lines at all.
  bool any() const { return !lines_.empty(); }
  // True if the trace says for each node of autograd which leaf's gradient it computes. Older
  // traces do not.
  bool has_forward_calls() const { return has_forward_calls_; }

  // The line of a call, such as "train.py:17 (forward)"; "backward of train.py:17 (forward)" for
  // work of a backward pass, which has the line of the leaf whose gradient it computes. A file
  // of a package is named from the package on, another one below the folder in which the program
  // ran from there on. A call without a line of its own has the line of the first call that it
  // launched. Empty if the line is not known.
  std::string Of(int64_t call_id) const;
  // The same, of a row of the table `stack`. Empty if it has no line.
  std::string OfStack(int64_t stack_id) const;

  // The line of a row of the table `stack`; null if it has none.
  const SourceLine* Find(int64_t stack_id) const;

  // Visits all calls that have a line, in no particular order.
  void Visit(const std::function<void(int64_t call_id, const SourceLine& line)>& visit) const;

 private:
  int64_t OwnStack(int64_t call_id) const;
  int64_t ForwardLeaf(int64_t call_id) const;

  const storage::Reader& trace_;
  std::string folder_;  // in which the program ran, with a slash at its end
  std::unordered_map<int64_t, SourceLine> lines_;  // by stack_id
  bool has_forward_calls_ = false;
};

}  // namespace acltape::analyzer
