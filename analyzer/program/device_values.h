// Takes values of PyTorch's tensors on a device from the calls of the device.
//
// A leaf of PyTorch whose results lie on a device is recorded without them, because the device
// computes later. The operators that the leaf launched are recorded too, with their results, in the
// order of their stream. The values that they left at the addresses of a leaf's result are the
// leaf's result. The same holds for what a copy that does not block brings to the host: the value
// is there after the leaf has returned.
#pragma once

#include <cstdint>

#include "storage/reader.h"
#include "storage/results.h"

namespace acltape::analyzer {

// Adds a snapshot for each result that values of the device cover, and returns their number. Bytes
// are compared by address, because the two levels have different buffers: one per tensor, and one
// per block of the device's allocator. If several calls of a leaf wrote a byte, the last one
// counts. A result that several calls wrote in parts (a gradient that is zero outside a slice) is
// built from these parts. A result with an unknown byte gets no value. Copies that a thread of the
// adapter puts on the device have to have their leaves as parents (queue_copies.h).
int64_t TakeDeviceValues(const storage::Reader& trace, storage::Results& results);

}  // namespace acltape::analyzer
