// The waits of a program of which only the leaves of PyTorch were recorded: the operators that
// bring a value of the device to the host, and copies between the two that block. What they wait
// for, and synchronises between them, are in calls of the device, which such a trace lacks.
#pragma once

#include "analyzer/calls/work.h"
#include "analyzer/waits/host_waits.h"

namespace acltape::analyzer::waits {

// Finds the waits of a work of leaves.
HostWaits FindLeafWaits(const Work& work);

}  // namespace acltape::analyzer::waits
