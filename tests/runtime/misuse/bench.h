// Right arguments of every interface function, and handles and addresses that have ended. A bench
// serves one call in a process of its own.
#pragma once

#include <vector>

#include "tests/runtime/misuse/call.h"

namespace acltape::misuse {

// A type of handle: how to make one, and how to end one.
struct HandleType {
  const char* type;
  Argument (*make)();
  void (*end)(Argument handle);
};

// Null for types that are no handles.
const HandleType* FindHandleType(std::string_view type);

// True for parameters that hold the address of memory which the call, or its task, uses.
bool IsAddress(const Function& function, const Parameter& parameter);

// Initialises the process and sets its device.
void SetUp();

// Arguments with which the function does its work.
std::vector<Argument> RightArguments(const Function& function);

// The parameters for which no argument is known; their types have to be added to the tables.
std::string ParametersWithoutArgument(const Function& function);

// Memory that was allocated with the function's own kind of memory and freed again.
Argument FreedAddress(const Function& function, const Parameter& parameter);

}  // namespace acltape::misuse
