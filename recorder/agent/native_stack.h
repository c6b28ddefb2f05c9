// The machine code that called: its place in a file, and with whole stacks the places that called
// it. The collector looks up the lines, so that the program does not wait for debug information to
// be read.
#pragma once

#include <cstdint>

#include "recorder/agent/tape.h"

namespace acltape::agent {

// Announces the place of an address inside of a call instruction. `flags` are wire::PlaceFlags. The
// result is its id; 0: the address lies in no file.
uint32_t AnnounceAddress(Tape& tape, const char* address_in_call, uint32_t outer_id,
                         uint32_t flags);

// The id of the place that a function of the interface returns to, with its callers, announced in
// the tape's ring at the first use. `caller` is the return address. Frames are found by the tables
// that compilers write for exceptions (glibc's backtrace), which are there without debug
// information and without frame pointers. Where the caller is not among them it stands alone.
uint32_t NativeStack(Tape& tape, const void* caller);

// Loads the library that unwinds. It would otherwise be loaded at the program's first call, with
// whatever locks the program holds there.
void PrepareNativeStacks();

// Frees what NativeStack keeps for a thread.
void FreeNativeNodes(NativeNodes* nodes);

}  // namespace acltape::agent
