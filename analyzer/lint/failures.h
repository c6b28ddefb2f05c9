// The calls that failed in the recording: which was first, what followed from it, what the program
// or its framework handled, and what failed while the program ended.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/reader.h"

namespace acltape::analyzer::lint {

enum class FailureRole : uint8_t {
  kEnded,        // no work of the program follows
  kWentOn,       // the program did other work later, and never what failed
  kHandled,      // the operator around it went on, or the same call succeeded later
  kConsequence,  // follows from an earlier failure
  kTeardown      // failed while the program ended
};
std::string_view FailureRoleName(FailureRole role);

// Equal failures of one line of the program are one row.
struct Failure {
  FailureRole role = FailureRole::kEnded;
  int64_t call_id = 0;  // the first of them
  int64_t count = 1;    // how often
  int64_t process = 0;
  int64_t thread = 0;
  int64_t stream = 0;               // 0: none
  int64_t leaf = 0;                 // the leaf of PyTorch around it, 0: none
  bool leaf_threw = false;          // the program got an exception
  bool launched = false;            // an operator's second phase
  int64_t capture = 0;              // the model in whose capture it failed, 0: none
  int64_t capture_begin = 0;        // the call that began the capture
  int64_t cause = -1;               // the index of the failure from which a consequence follows
  int64_t operator_call = 0;        // the operator of which the device's text tells, 0: not known
  int64_t operator_candidates = 0;  // how many calls of this operator it can be
  int64_t execution = 0;            // the execution of the graph that holds this operator, 0: none
  int32_t code = 0;      // 0: an operator of PyTorch threw, and no call of the interface failed
  std::string function;  // the function of the interface; empty with code 0
  std::string op;        // the outermost operator of PyTorch around it; empty: none
  std::string text;      // the device's; empty: not known
  std::string where;     // line of the program; empty: not known
  std::string operator_name;   // "aclnnIndexSelect"
  std::string operator_where;  // its line

  // "aten::item", else the function.
  const std::string& Subject() const { return op.empty() ? function : op; }
};

struct Failures {
  std::vector<Failure> rows;  // in the order of their first calls
  std::string ended;          // "the program ended with code 1"; empty: it ended well

  // The first failure that nothing handled; null: none.
  const Failure* First() const;
  // True if a capture failed, or a call in it.
  bool InCapture() const;
};

// Looks at both levels of the trace, and at the reader's process. A trace without failures costs
// one look at its statuses.
Failures FindFailures(const storage::Reader& trace);

// One sentence: what failed, with which code and text, where it lies, and how it went on.
std::string FailureSentence(const Failures& failures, const Failure& failure);

}  // namespace acltape::analyzer::lint
