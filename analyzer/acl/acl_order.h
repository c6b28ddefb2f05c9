// The device work of an ACL program in one order in which it may take effect. Graphs that the
// program executes are replaced by the calls that they hold.
//
// There is a queue for each stream. Work leaves the head of its queue as soon as everything that it
// waits for has left. In most programs this happens at once, in recorded order. If a graph waits
// for an event that the program records later (rule UPD-06), it leaves after that record. A wait
// inside of a graph for a record of the same graph needs no queue: the calls of a graph are taken
// in the order of capture, and the record comes first there.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analyzer/acl/acl_program.h"
#include "storage/error.h"

namespace acltape::analyzer {

// The device work of the trace cannot be taken as leaves in one order. The kind is kTrace.
class WithoutLeaves : public Error {
 public:
  // `advice` says what works in place of it; it may be empty.
  explicit WithoutLeaves(const std::string& why, const std::string& advice = "")
      : Error(ErrorKind::kTrace, advice.empty() ? why : why + "; " + advice), why_(why) {}
  // Returns the obstacle, without the advice.
  const std::string& why() const { return why_; }

 private:
  std::string why_;
};

// One piece of device work.
struct AclTurn {
  int64_t call = 0;  // index in AclProgram::calls: an operator, a copy, a fill or a value write
  int64_t execution = -1;  // index of the execution of its graph; -1: it runs alone
  // Calls whose recorded contents (AclCall::before) have arrived since the previous turn. They
  // arrive in the order of the call's stream.
  std::vector<int64_t> contents;
  // True if the host has waited for device work since the previous turn.
  bool waited = false;
};

// Finds the order. From the next execution on, launches of a task update replace the calls that
// they update. Throws WithoutLeaves, one sentence, when work waits for something that nothing in
// the trace releases, or when the device chooses what a graph runs; Error kTrace when the trace
// does not hold the capture of an executed graph.
std::vector<AclTurn> OrderOfWork(const AclProgram& program);

// Objects that are older than the recording and were set when it began: the program waited for what
// nothing in the trace had released until then.
struct SetBefore {
  std::set<int64_t> events;
  std::set<int64_t> notifies;  // by recorded address
};

// Finds what a replay has to set before the first call. Orders the work for this only where the
// trace has waits for such objects.
SetBefore FindSetBefore(const AclProgram& program);

// True if memory lets a wait for `value` go on, under the condition of its flag (rule STR-21).
bool IsValueReached(uint64_t memory, uint64_t value, int64_t condition);
bool IsValueReached(const AclCall& wait, uint64_t memory);

// The 8 bytes that a value write or a fill leaves; none for other work. `number` is the value that
// is written or repeated.
std::optional<uint64_t> ValueLeftBy(AclCallKind kind, uint64_t number);

// The position of that number among the parameters of the function of a value write or a fill.
int PositionOfValue(AclCallKind kind);

}  // namespace acltape::analyzer
