// The totals of the calls and steps of a trace, in tables of their own (tables::kTotals), so that
// the views about a whole trace need not read every call. A recording and a copy write them when
// they close. A trace without them is as good: the views read the calls then.
//
// Totals are only shown. No memory is reserved by them, and nothing is left out for them, because
// those of a hostile trace can be anything (docs/trust.md).
#pragma once

#include <cstdint>
#include <optional>

namespace acltape::storage {

class CallTotals;
class Database;
class Reader;

// Writes the totals of all calls of the trace in one transaction, in place of others. `buffers`:
// how many rows buffer_row has; they are counted when it is empty. Returns false and writes nothing
// if the totals gave up, or the gaps among them.
bool WriteCallTotals(Database& trace, CallTotals& totals, std::optional<int64_t> buffers);

// Reads all calls and writes their totals.
void AddUpCalls(Database& trace);

// Reads the calls of all steps and writes what each step adds up to, in place of others. Does
// nothing where the trace has no table for that (before schema version 6), and where steps share
// calls, which takes time without bound.
void AddUpSteps(Database& trace);

struct TraceCounts {
  int64_t calls = 0;
  int64_t leaves = 0;
  int64_t buffers = 0;  // buffers of all processes
  int64_t ops = 0;      // operators that a call of any process names
};
// How much a trace holds, of the chosen process (process_choice.h): as it says itself, else
// counted.
TraceCounts CountsOf(const Reader& reader);

}  // namespace acltape::storage
