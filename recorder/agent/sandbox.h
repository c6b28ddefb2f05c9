// Replacements for calls of the system in a process that may be killed for making them.
#pragma once

#include <cstdint>

namespace acltape::agent {

// Called before the process gives up rights: learns what needs the system while it may be asked.
void PrepareForSandbox();

// The calling thread's number, without a call of the system.
uint32_t ThreadNumberHere();

}  // namespace acltape::agent
