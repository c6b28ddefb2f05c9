// One recorded call at a time on the device, with contents that are given for each run: what a call
// computes from values that it was not recorded with.
#pragma once

#include <functional>
#include <vector>

#include "replayer/execution.h"

namespace acltape::replayer {

// Results of a call in order of LeafUses::writes; in order of address where the layout is dense,
// row-major where not.
using CallResults = std::vector<Bytes>;

class CallRunner {
 public:
  explicit CallRunner(Execution& execution) : execution_(execution) {}

  // Bytes [FirstByte, EndByte) of the buffer that a call reads.
  using Input = std::function<std::vector<uint8_t>(const analyzer::TensorUse& read)>;
  // Runs a kernel leaf that is not substituted; `input` may run others. Throws LeafRefused when the
  // device cannot run it.
  CallResults Run(int64_t leaf, const Input& input);

 private:
  Execution& execution_;
  Block scratch_;
  Block results_;
};

}  // namespace acltape::replayer
