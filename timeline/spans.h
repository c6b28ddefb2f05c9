// The spans around the calls: steps, user ranges and modules, work on the device, memory.
#pragma once

#include <memory>

#include "timeline/source.h"

namespace acltape::timeline {

std::unique_ptr<Source> MakeStepSource(Output& output);
std::unique_ptr<Source> MakeRangeSource(Output& output);
// Null when the trace has no times of the device (a table or view device_span).
std::unique_ptr<Source> MakeDeviceSource(Output& output);
std::unique_ptr<Source> MakeMemorySource(Output& output);

}  // namespace acltape::timeline
