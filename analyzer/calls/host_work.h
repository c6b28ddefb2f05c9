// Work of the host beside a device. A program over an adapter such as torch_npu runs on its device;
// its data set, the workers that load it and the counters of its optimizer are tensors of the host.
// Their leaves are work of the host: shown and timed, and no part of what is planned, captured,
// replayed or judged. What they bring to the device is an input of the leaf that takes it there
// (recorder/torch/values.cpp). A program without a leaf on a device has no such work: its leaves
// are all that it does.
#pragma once

#include <cstdint>
#include <optional>

#include "storage/reader.h"

namespace acltape::analyzer {

class Work;

class HostWork {
 public:
  // Looks whether a leaf of PyTorch ran on a device, in the process that the reader looks at.
  explicit HostWork(const storage::Reader& trace);

  // True if the leaf ran on the host beside a device.
  bool Has(const storage::Call& leaf) const { return beside_device_ && leaf.device == 0; }
  bool beside_device() const { return beside_device_; }

 private:
  bool beside_device_ = false;
};

// The leaves of the host beside a device, and their time. Zeros where there are none.
struct HostWorkTotal {
  int64_t leaves = 0;
  int64_t ns = 0;
};
// With a range, of the calls [first_call, last_call] alone.
struct CallRange {
  int64_t first_call = 0;
  int64_t last_call = 0;
};
HostWorkTotal TotalHostWork(const storage::Reader& trace, std::optional<CallRange> range);

// Loads the work as LoadWork does, with the host's: for the comparison of two programs of which one
// may have run on the host alone.
Work LoadWorkOfHostToo(const storage::Reader& trace);

}  // namespace acltape::analyzer
