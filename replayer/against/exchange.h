// A step of one recorded program executed with some of its calls in the form that another program
// gave them.
//
// The rows of a diff say which calls belong together. Each call is executed on its own, on what the
// calls before it gave in this execution; values outside of the step are recorded ones of A. Where
// a row takes the form of B, its calls of B are executed (operator, host arguments, and contents
// that B's program brought), on the results of A's dataflow: what B reads from a call with a
// counterpart is the counterpart's result, rounded to B's element type where that differs. What
// only B has is executed as part of the row that uses it, casts and copies among it. The result
// takes the place of A's.
#pragma once

#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzer/diff/diff.h"
#include "replayer/against/call_runner.h"
#include "replayer/recorded_content.h"

namespace acltape::replayer {

// A row cannot take B's form; the text says why.
class NotExchangeable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A result of A in the step: its leaf and index in LeafUses::writes.
using ResultPlace = std::pair<int64_t, size_t>;

class Exchange {
 public:
  // `a_step`: a number of A's trace, -1 for calls outside of steps. Everything must outlive it.
  Exchange(Execution& a, Execution& b, const analyzer::DiffReport& diff, int64_t a_step);

  // Rows of the step that have calls of both and compute something, in order.
  const std::vector<size_t>& rows() const { return rows_; }
  size_t row_count() const { return diff_.rows.size(); }
  const analyzer::DiffRow& row(size_t index) const { return diff_.rows[index]; }
  const analyzer::Program& program(int side) const { return sides_[side].program(); }
  std::string OperatorOf(int side, int64_t call) const;
  // The call of a side that gives a row's results.
  int64_t LastLeaf(int side, size_t row) const;

  // Both forms on recorded values. Throws Error kTrace when the trace does not hold them.
  CallResults OnRecorded(int side, size_t row);
  // B's form on what A recorded, laid out as A's results. Throws NotExchangeable.
  CallResults ExchangedOnRecorded(size_t row);
  // What was recorded of the results, null where nothing was.
  CallResults Recorded(int side, size_t row);
  // Leaves that a side's form of the row executed last was found to need and that the other side
  // has no counterpart of, copies aside: what is read straight from in A, all that had to be
  // executed besides in B.
  const std::set<int64_t>& unpaired(int side) const { return unpaired_[side]; }

  // Executes the step with these rows in B's form; by row of the diff, empty: none.
  using Values = std::unordered_map<int64_t, CallResults>;  // by leaf of A
  // `reuse` may hold the values of another execution up to its first altered row.
  const Values& Run(const std::vector<bool>& altered, const Values* reuse);

  // What a step is judged by: results that nothing in the step reads or that outlive it, and what
  // the host reads.
  std::vector<ResultPlace> Outputs() const;

 private:
  struct Side {
    Side(Execution& chosen, const analyzer::DiffReport& diff, int index, int64_t step);
    const analyzer::Program& program() const { return execution.program(); }
    const std::vector<int64_t>& CallsOf(const analyzer::DiffRow& row) const {
      return index == 0 ? row.a_calls : row.b_calls;
    }
    bool Executes(int64_t leaf) const;
    Execution& execution;
    int index;
    RecordedContent content;
    CallRunner runner;
    std::unordered_map<int64_t, int64_t> leaf_of_call;
    std::vector<int64_t> row_of;  // by leaf, -1: in none
    int64_t first_leaf = 0;       // of the step
    int64_t end_leaf = 0;
  };

  void NoteUnpaired(const Side& side, int64_t leaf);
  CallResults RunLeaf(Side& side, int64_t leaf);
  CallResults RecordedOf(Side& side, int64_t leaf);
  CallResults FormOfB(size_t row);
  Bytes ResultForB(int64_t leaf, size_t write);
  const CallResults& EvaluateB(int64_t leaf);

  const analyzer::DiffReport& diff_;
  Side sides_[2];
  std::vector<size_t> rows_;
  bool golden_ = false;     // A's values are the recorded ones
  bool plain_b_ = false;    // so are B's
  size_t current_row_ = 0;  // that takes B's form
  Values values_;           // of A, in this execution
  Values of_b_;             // of the row under way
  std::set<int64_t> unpaired_[2];
};

}  // namespace acltape::replayer
