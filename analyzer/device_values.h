// Values of PyTorch's tensors on a device, taken over from the calls of the device.
//
// A leaf of PyTorch whose results lie on a device is recorded without them: the device computes
// later. The operators that the leaf launched are recorded too, with what they wrote, in the order
// of their stream. Where such a value is all of a leaf's result, it is the leaf's result.
#pragma once

#include <cstdint>

#include "storage/reader.h"
#include "storage/results.h"

namespace acltape::analyzer {

// Adds a snapshot for each result that a value of the device covers; returns how many. Bytes are
// compared by address: the two levels have buffers of their own, one per tensor and one per block
// of the device's allocator. Of several writers in a leaf the last one counts; one that wrote only
// a part of the result leaves it without a value.
int64_t TakeDeviceValues(const storage::Reader& trace, storage::Results& results);

}  // namespace acltape::analyzer
