// The memory that a kernel is about to touch, checked against the device's table of blocks. Private
// to the soft device, like runtime/kernel_launch.h.
#pragma once

#include "runtime/kernel_launch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct SoftMemoryUse {
  const void* first;
  uint64_t bytes;
  const char* name;  // the argument's name, for the message
  int only_read;     // not 0: nothing is written there
} SoftMemoryUse;

// Called by the worker right before a kernel runs, so that memory which was freed after the launch,
// or after the capture, is found. Gives 0, or the failure of the task (507015) with a message that
// names the operator and the argument.
__attribute__((visibility("default"))) aclError SoftCheckMemory(const char* op,
                                                                const SoftMemoryUse* uses,
                                                                size_t count);

// From now on the copies that the calling thread submits are those of a tool that looks at the
// program's memory (not 0), or the program's own (0). What a tool reads past a block is no
// finding.
__attribute__((visibility("default"))) void SoftLookOn(int looks);

// Grows whenever memory that could be used cannot be used any longer. While it stands still, what
// was found good stays good, so a kernel of a model need not look again at each replay. Read before
// SoftCheckMemory is called.
__attribute__((visibility("default"))) const uint64_t* SoftMemoryGeneration(void);

#ifdef __cplusplus
}
#endif
