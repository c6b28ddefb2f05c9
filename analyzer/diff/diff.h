// Two recorded programs, call by call: what belongs together, what was inserted, deleted, changed,
// fused or split, whose results differ, and where that begins.
//
//   const DiffReport report = Diff(a, b, {});
//   if (report.first >= 0) ... report.rows[report.first] ...
//
// Calls are aligned by dataflow (analyzer/diff/alignment.h), so that another version, element type,
// device or payload policy is comparable. Results are compared by content, else by digest and
// statistics. What differs is put down to the first call whose inputs agree and whose result does
// not; what only inherits a difference is counted, not blamed. A result that drifted with
// the rounding of its inputs (at most ten times their error, msprobe's rule for a conspicuous
// operator) is no divergence.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/diff/values.h"
#include "analyzer/work/work.h"
#include "storage/reader.h"

namespace acltape::analyzer {

enum class DiffRelation : uint8_t {
  kSame,      // one operator with equal arguments, perhaps in place or with another element type
  kChanged,   // another operator, argument or shape at the same place of the dataflow
  kInserted,  // only B has it
  kDeleted,   // only A has it
  kFused,     // several calls of A are one of B
  kSplit,     // one call of A is several of B
  kRewritten  // several are several others
};
std::string_view DiffRelationName(DiffRelation relation);

enum class DiffCause : uint8_t {
  kNone,
  kOrigin,       // its inputs agree and its result does not
  kStructural,   // the same, of a call that was changed, inserted or deleted
  kInput,        // the two programs were given different contents here
  kAccumulated,  // no more than the rounding of its inputs explains
  kInherited     // an input already differed
};
std::string_view DiffCauseName(DiffCause cause);

struct DiffRow {
  DiffRelation relation = DiffRelation::kSame;
  std::vector<int64_t> a_calls;  // call ids, in order; empty for what was inserted
  std::vector<int64_t> b_calls;
  int64_t a_step = -1;  // as numbered in the trace
  int64_t b_step = -1;
  std::string a_op;  // of the last call
  std::string b_op;
  std::string change;  // "op aten::relu -> aten::gelu", "alpha 1 -> 2"
  std::string notes;   // "aten::relu -> aten::relu_", "self float32 -> float16"
  bool copy = false;   // of what was inserted or deleted: a copy or a cast
  bool dead = false;   // of what was inserted or deleted: nothing aligned uses its result
  bool picked = true;  // DiffOptions::pick wants it
  DiffVerdict verdict = DiffVerdict::kNotComparable;
  DiffCause cause = DiffCause::kNone;
  std::string output;  // the result that is meant, "out"
  std::string reason;
  double error = 0;  // relative, L2
  std::optional<TensorMetrics> metrics;
  // Of what has an input that differs: index of the row where that began, -1 when not looked for,
  // and (kInherited) how many calls ago.
  int64_t origin = -1;
  int depth = 0;
};

// What became of the divergence that began at a row.
struct DiffPropagation {
  int64_t origin = -1;    // row
  int64_t inherited = 0;  // rows
  int depth = 0;          // longest chain of calls
  int64_t last = -1;      // the last row that inherits it
  int64_t absorbed = 0;   // rows with such an input whose result agrees again
  int64_t first_absorbed = -1;
};

struct DiffCounts {
  int64_t a_calls = 0;  // that read or write memory
  int64_t b_calls = 0;
  int64_t aligned = 0;  // rows of both
  int64_t changed = 0;
  int64_t inserted = 0;
  int64_t deleted = 0;
  int64_t copies = 0;  // of those inserted and deleted: copies and casts
  int64_t groups = 0;  // fused, split and rewritten
  int64_t equal = 0;
  int64_t within = 0;
  int64_t different = 0;
  int64_t not_comparable = 0;
};

struct DiffReport {
  Dialect dialect = Dialect::kAten;
  std::string standard;
  std::vector<DiffRow> rows;  // in order of A, what was inserted where it stands in B
  DiffCounts counts;
  int64_t first = -1;  // the first meaningful divergence: a row with a cause of its own
  std::vector<DiffPropagation> propagation;  // of every origin, in order
  std::vector<std::string> notes;            // what limits the answer
  bool different() const { return first >= 0; }
};

struct DiffOptions {
  std::string standard;  // name or file; empty: see ValueComparer
  // The calls of A whose results are looked at, as indices in Work::calls; null: all. Calls of B
  // without a counterpart are never left out.
  std::function<std::vector<size_t>(const Work& a)> pick;
  std::function<void(int64_t done, int64_t total)> progress;
};

// Throws Error kTrace when a trace holds no calls or the two are of different levels, Error kUsage
// for an unknown standard.
DiffReport Diff(const storage::Reader& a, const storage::Reader& b, const DiffOptions& options);

}  // namespace acltape::analyzer
