// Measures the costs of graphs, copies, event records and waits on a device, independent of a
// program. It times graphs of copies and graphs of waits between two streams.
#pragma once

#include <cstddef>

#include "analyzer/prediction/costs.h"
#include "replayer/device/device.h"

namespace acltape::replayer {

constexpr size_t kCalibrationBytes = size_t{1} << 20;

// Sets all costs except those of signatures, as medians. Both blocks hold kCalibrationBytes, and
// their content is overwritten.
void MeasureDeviceCosts(Device& device, int repetitions, const Block& pinned, const Block& memory,
                        analyzer::prediction::DeviceCosts& costs);

}  // namespace acltape::replayer
