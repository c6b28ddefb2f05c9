// Executes one recorded call at a time on the device, with contents that are given for each run. So
// a call can be executed on values that it was not recorded with.
#pragma once

#include <functional>
#include <vector>

#include "replayer/engine/execution.h"

namespace acltape::replayer::against {

// The results of a call, in the order of LeafUses::writes. The elements are in order of address if
// the layout is dense, else in row-major order.
using CallResults = std::vector<Bytes>;

class CallRunner {
 public:
  explicit CallRunner(Execution& execution) : execution_(execution) {}

  // Returns bytes [FirstByte, EndByte) of the buffer that a call reads.
  using Input = std::function<std::vector<uint8_t>(const analyzer::TensorUse& read)>;
  // Runs a kernel leaf that is not substituted. `input` may itself run other leaves here. Throws
  // LeafRefused if the device cannot run the leaf.
  CallResults Run(int64_t leaf, const Input& input);

 private:
  Execution& execution_;
  Block scratch_;
  Block results_;
};

}  // namespace acltape::replayer::against
