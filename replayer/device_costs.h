// Measures what graphs, copies, event records and waits cost on a device, whatever the program: on
// graphs of copies and of hops between two streams.
#pragma once

#include <cstddef>

#include "analyzer/prediction/costs.h"
#include "replayer/device.h"

namespace acltape::replayer {

constexpr size_t kCalibrationBytes = size_t{1} << 20;

// Sets all costs but those of signatures, as medians. Both blocks hold kCalibrationBytes and lose
// their content.
void MeasureDeviceCosts(Device& device, int repetitions, const Block& pinned, const Block& memory,
                        analyzer::DeviceCosts& costs);

}  // namespace acltape::replayer
