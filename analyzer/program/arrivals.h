// Gives the leaves of PyTorch what exchanges brought to the memory of a device.
//
// An exchange (analyzer/calls/leaf_kind.h) returns before its results are there, and on the host
// the recorder keeps them as an input of their next reader. On a device nobody can read them there
// without a wait that the program does not have. The calls of HCCL that the exchange issued are
// recorded with what they received, in the order of their stream, and the trace gives that to the
// exchange as its results (analyzer/program/device_values.h). So here the next leaf that touches
// the memory gets them as an input, as on the host.
#pragma once

#include "analyzer/program/program.h"

namespace acltape::analyzer {

// Adds the contents to `Leaf::before` of those that touch them first, in a program of PyTorch's
// level whose leaves have their recorded contents. Memory that is overwritten first gets none. If
// a leaf reads what an exchange received and the trace does not hold, sets `Program::lacks`.
void AddArrivals(Program& program);

}  // namespace acltape::analyzer
