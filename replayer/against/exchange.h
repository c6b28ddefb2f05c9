// Executes a step of recorded program A with some of its calls in the form that program B gave
// them.
//
// The rows of a diff pair the calls of A with those of B. Each call is executed separately, on the
// results that the calls before it gave in this execution. Values from outside the step are the
// recorded values of A.
//
// If a row takes the form of B, its calls of B are executed instead: B's operator, B's host
// arguments, and contents that B's program brought. They read A's dataflow. If B reads from a call
// that has a counterpart in A, it gets the counterpart's result, rounded to B's element type if the
// types differ. Calls that only B has, such as casts and copies, are executed as part of the row
// that uses them. So are calls of B whose counterpart gives a result of another shape, because no
// value of A can stand for theirs. The result replaces the result of A.
//
// A result from outside the step that a trace does not hold, such as one inside a graph of the
// program, is computed from what it holds.
#pragma once

#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzer/calls/coverage.h"
#include "analyzer/diff/diff.h"
#include "replayer/against/call_runner.h"
#include "replayer/values/recorded_content.h"

namespace acltape::replayer::against {

// A row cannot take B's form. The text says why.
class NotExchangeable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A result of A in the step, as its leaf and its index in LeafUses::writes.
using ResultPlace = std::pair<int64_t, size_t>;

class Exchange {
 public:
  // `a_step` is a step number of A's trace, or -1 for calls outside of steps. All arguments must
  // outlive the object.
  Exchange(Execution& a, Execution& b, const analyzer::diff::DiffReport& diff, int64_t a_step);

  // Rows of the step that have calls of both programs and write a result, in order.
  const std::vector<size_t>& rows() const { return rows_; }
  size_t row_count() const { return diff_.rows.size(); }
  const analyzer::diff::DiffRow& row(size_t index) const { return diff_.rows[index]; }
  const analyzer::Program& program(int side) const { return sides_[side].program(); }
  std::string OperatorOf(int side, int64_t call) const;
  // Returns the leaf of one program (0: A, 1: B) that gives a row's results.
  int64_t LastLeaf(int side, size_t row) const;

  // Executes a row in the form of one program, on the recorded values of that program. Throws Error
  // kTrace if the trace does not hold them.
  CallResults OnRecorded(int side, size_t row);
  // Executes a row in B's form on A's recorded values. The results are laid out as A's. Throws
  // NotExchangeable.
  CallResults ExchangedOnRecorded(size_t row);
  // Returns the recorded results; null for each that was not recorded.
  CallResults Recorded(int side, size_t row);
  // Leaves that the latest executed row used and that have no counterpart in the other program;
  // copies are left out. For A they are the leaves that the row reads directly. For B they are all
  // leaves that had to be executed in addition.
  const std::set<int64_t>& unpaired(int side) const { return unpaired_[side]; }
  // Other rows whose calls of B had to be executed for the latest exchanged row, because their
  // results have other shapes in A.
  const std::set<size_t>& joined() const { return joined_; }

  // Executes the step. `altered` marks the rows of the diff that take B's form; empty marks none.
  using Values = std::unordered_map<int64_t, CallResults>;  // by leaf of A
  // `reuse` may hold the values of another execution. They are used up to the first altered row.
  const Values& Run(const std::vector<bool>& altered, const Values* reuse);

  // Returns the results by which a step is judged: those that the host reads, that are given to
  // other processes, that calls after the step read, or that nothing in the step reads.
  std::vector<ResultPlace> Outputs() const;
  // Counts the leaves of A's step that compute, and those of them that these compared results tell
  // of. Results tell nothing of the form that B gave to the leaves `apart`.
  analyzer::Coverage CoverageOf(const std::vector<ResultPlace>& compared,
                                const std::set<int64_t>& apart) const;

 private:
  // One of the two recorded programs, with its execution.
  struct Side {
    Side(Execution& chosen, const analyzer::diff::DiffReport& diff, int index, int64_t step);
    const analyzer::Program& program() const { return execution.program(); }
    // True if all calls of the row are leaves of the program.
    bool Has(const analyzer::diff::DiffRow& row) const;
    const std::vector<int64_t>& CallsOf(const analyzer::diff::DiffRow& row) const {
      return index == 0 ? row.a_calls : row.b_calls;
    }
    bool Executes(int64_t leaf) const;
    bool Holds(int64_t leaf) const { return first_leaf <= leaf && leaf < end_leaf; }  // the step
    Execution& execution;
    int index;
    RecordedContent content;
    CallRunner runner;
    std::unordered_map<int64_t, int64_t> leaf_of_call;
    std::vector<int64_t> row_of;  // by leaf, -1: in none
    int64_t first_leaf = 0;       // first leaf of the step
    int64_t end_leaf = 0;
    std::unordered_map<int64_t, CallResults> derived;  // by leaf; results that the trace lacks
  };

  void NoteUnpaired(const Side& side, int64_t leaf);
  CallResults RunLeaf(Side& side, int64_t leaf);
  CallResults RecordedOf(Side& side, int64_t leaf);
  // Computes a result that the trace of the side does not hold, from recorded values. Returns null
  // if the trace holds it, or if nothing computes it.
  Bytes Derive(Side& side, int64_t leaf, size_t write);
  CallResults FormOfB(size_t row);
  Bytes ResultForB(int64_t leaf, size_t write);
  const CallResults& EvaluateB(int64_t leaf);

  const analyzer::diff::DiffReport& diff_;
  Side sides_[2];
  std::vector<size_t> rows_;
  bool golden_ = false;     // values of A are the recorded ones
  bool plain_b_ = false;    // values of B are the recorded ones
  bool deriving_ = false;   // reads are no reading of a row now
  size_t current_row_ = 0;  // the row that takes B's form now
  Values values_;           // results of A's leaves in this execution
  Values of_b_;             // results of B's leaves for the current row
  std::set<int64_t> unpaired_[2];
  std::set<size_t> joined_;
};

}  // namespace acltape::replayer::against
