// Puts what a killed recorder had received into its trace (Note [What was received is kept] in
// recorder/collector/spool.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace acltape::collector {

struct Folded {
  bool done = false;  // the trace was made anew
  // Not 0: the recorder was killed, and its keeper goes on while the recorded program runs, which
  // has this number.
  uint32_t goes_on = 0;
  int64_t calls_before = 0;
  int64_t calls = 0;
  // The path of the file that was put aside because the other one does not hold all of it: the
  // spool, if the trace was left as it is; the earlier trace, if it was made anew. Empty: there was
  // no such file.
  std::string kept;
};

// Looks for the spool of a trace and does nothing where there is none, or where the trace is still
// being recorded. Else the trace is made anew from all records and replaced; its contents of
// tensors are taken over. If the trace has calls that the spool lacks, the one with more calls is
// kept under the trace's name, and the other beside it. A spool of a trace that was closed is
// removed. `progress` gets the bytes that are read and their number. Waits while another process
// does the same, and while the keeper of a recording that was killed with its program takes what
// the rings hold (keeper.h).
//
// Throws Error kDevice when the new trace cannot be written, kTrace when the spool is of another
// version; trace and spool stay as they were then.
Folded FoldSpool(const std::string& trace,
                 const std::function<void(int64_t done, int64_t all)>& progress);

}  // namespace acltape::collector
