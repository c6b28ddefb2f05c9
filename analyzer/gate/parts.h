// The parts of a measurement (analyzer/gate/measure.h), one file each.
#pragma once

#include <functional>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/gate/measure.h"
#include "analyzer/gate/steady_steps.h"

namespace acltape::analyzer::gate {

// Returns true for a leaf of the program's work: it executes, and where the program has a device,
// it uses memory of the device. What a data loader or an optimizer's counters do on the host beside
// a program of the device is no work of the program.
std::function<bool(size_t call)> WorkOfProgram(const Work& leaves);

// Operators, graphs, reads, inputs, arguments and bytes of a step, of leaves of PyTorch or of the
// device work of an ACL program.
void MeasureLeaves(const Work& leaves, const SteadySteps& steady, Measured& measured);

// Launches, executions, updates, copies and streams, of calls of the ACL level. `leaves` are those
// of PyTorch, to which a step belongs there; null if the trace has none.
void MeasureDevice(const Work& calls, const Work* leaves, const SteadySteps& steady,
                   Measured& measured);

// The findings of lint about the captures of the program, or about its steps, without those about
// leaves that `counts` leaves out.
void MeasureFindings(const Work& work, const std::function<bool(size_t call)>& counts,
                     Measured& measured);

}  // namespace acltape::analyzer::gate
