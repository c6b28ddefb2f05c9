// Ranges and marks that a program reports to the vendor's tools (aclprof* and mstx*): they become
// user ranges of the trace.
//
// Note [Ranges that do not nest]
// User ranges of a trace nest by thread, but ranges with numbers may overlap, and any thread may
// end them. So a range that has ended lasts in the trace until those that began in it have ended,
// and, where another thread ended it, until the next range or mark of its own thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "recorder/acl/real.h"

namespace acltape::acl_agent {

// Says how ranges are told apart: by their order on the thread, or by the numbers of an interface.
enum class MarkKind : uint8_t { kNested, kProfiler, kTools };

void BeginMarkedRange(MarkKind kind, uint64_t number, const char* name);
// Ends the innermost open range of the thread (kNested), or the one with the number.
void EndMarkedRange(MarkKind kind, uint64_t number);
// A range without an inside.
void MarkPlace(const char* name);

void ForgetMarkLocks();
void ForgetMessageLocks();

// The wrapped functions that mark.
extern const WrappedFunction kMarkFunctions[];

}  // namespace acltape::acl_agent
