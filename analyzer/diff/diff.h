// Compares two recorded programs, call by call: which calls belong together, which were inserted,
// deleted, changed, fused or split, whose results differ, and where the difference begins.
//
//   const DiffReport report = Diff(a, b, {});
//   if (report.first >= 0) ... report.rows[report.first] ...
//
// Calls are aligned by dataflow (analyzer/diff/alignment.h). Programs of another version, element
// type, device or payload policy can therefore be compared. Results are compared by content, or
// else by digest and statistics. The origin of a difference is the first call whose inputs agree
// and whose result does not. Calls that only inherit a difference are counted but not blamed. A
// result that drifted with the rounding of its inputs is no divergence (at most ten times their
// error, msprobe's rule for a conspicuous operator).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/calls/coverage.h"
#include "analyzer/calls/work.h"
#include "analyzer/diff/values.h"
#include "storage/reader.h"

namespace acltape::analyzer::diff {

enum class DiffRelation : uint8_t {
  kSame,      // one operator with equal arguments, perhaps in place or with another element type
  kChanged,   // another operator, argument or shape at the same place of the dataflow
  kInserted,  // only B has it
  kDeleted,   // only A has it
  kFused,     // several calls of A are one call of B
  kSplit,     // one call of A is several calls of B
  kRewritten  // several calls are several others
};
std::string_view DiffRelationName(DiffRelation relation);

enum class DiffCause : uint8_t {
  kNone,
  kOrigin,       // its inputs agree and its result does not
  kStructural,   // as kOrigin, but the call was changed, inserted or deleted
  kInput,        // the two programs were given different contents here
  kAccumulated,  // explained by the rounding of its inputs
  kInherited     // an input already differed
};
std::string_view DiffCauseName(DiffCause cause);

struct DiffRow {
  DiffRelation relation = DiffRelation::kSame;
  std::vector<int64_t> a_calls;  // call ids, in order; empty if inserted
  std::vector<int64_t> b_calls;
  int64_t a_step = -1;  // as numbered in the trace
  int64_t b_step = -1;
  std::string a_op;  // operator of the last call
  std::string b_op;
  std::string change;  // "op aten::relu -> aten::gelu", "alpha 1 -> 2"
  std::string notes;   // "aten::relu -> aten::relu_", "self float32 -> float16"
  bool copy = false;   // if inserted or deleted: a copy or a cast
  bool dead = false;   // if inserted or deleted: no aligned call uses its result
  bool picked = true;  // DiffOptions::pick selects it
  DiffVerdict verdict = DiffVerdict::kNotComparable;
  DiffCause cause = DiffCause::kNone;
  std::string output;  // name of the compared result, "out"
  std::string reason;
  double error = 0;  // relative, L2
  std::optional<metrics::TensorMetrics> metrics;
  // If an input of the row differs, the index of the row where the difference began, or -1 if
  // nobody looked for it. For kInherited also the number of calls since then.
  int64_t origin = -1;
  int depth = 0;
};

// A place of the program at which a difference begins, and its effects.
struct DiffPropagation {
  int64_t origin = -1;    // index of the first row with this cause
  int64_t rows = 0;       // rows with this cause: the program may pass the place often
  int64_t inherited = 0;  // number of rows that inherit it
  int depth = 0;          // longest chain of calls
  int64_t last = -1;      // the last row that inherits it
  int64_t absorbed = 0;   // rows with a differing input and an agreeing result
  int64_t first_absorbed = -1;
};

struct DiffCounts {
  int64_t a_calls = 0;  // calls that read or write memory
  int64_t b_calls = 0;
  int64_t aligned = 0;  // rows with calls of both
  int64_t changed = 0;
  int64_t inserted = 0;
  int64_t deleted = 0;
  int64_t copies = 0;  // copies and casts among those inserted and deleted
  int64_t groups = 0;  // fused, split and rewritten
  int64_t equal = 0;
  int64_t within = 0;
  int64_t different = 0;
  int64_t not_comparable = 0;
  // Leaves of Coverage::computed without a counterpart, of which no compared result tells.
  int64_t without_counterpart = 0;
};

struct DiffReport {
  Dialect dialect = Dialect::kAten;
  std::string standard;
  // The rows in order of A. An inserted call stands where it is in B.
  std::vector<DiffRow> rows;
  DiffCounts counts;
  Coverage coverage;                         // it counts the picked calls of A
  int64_t first = -1;                        // the first row with a cause of its own
  std::vector<DiffPropagation> propagation;  // one for each place, in order
  std::vector<std::string> notes;            // limits of the answer
  bool different() const { return first >= 0; }
};

struct DiffOptions {
  std::string standard;  // name or file; empty: see ValueComparer
  // Selects the calls of A whose results are compared, as indices in Work::calls; null: all. Calls
  // of B without a counterpart are always compared.
  std::function<std::vector<size_t>(const Work& a)> pick;
  std::function<void(int64_t done, int64_t total)> progress;
};

// The level at which two traces are compared, and the reason if they would not be read at one.
struct CommonLevel {
  storage::Level level = storage::Level::kAten;
  std::string note;
};

// Returns nothing for traces without a common level, and for a program of the host against one of a
// device: each of these is read at its own level.
std::optional<CommonLevel> FindCommonLevel(const storage::Reader& a, const storage::Reader& b);

// Throws Error kTrace when a trace holds no calls or the two have different levels, and Error
// kUsage for an unknown standard.
DiffReport Diff(const storage::Reader& a, const storage::Reader& b, const DiffOptions& options);

}  // namespace acltape::analyzer::diff
