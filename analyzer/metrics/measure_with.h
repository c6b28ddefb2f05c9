// Measure with a chosen table of kernels, so that tests can hold them against each other.
#pragma once

#include <vector>

#include "analyzer/metrics/block.h"
#include "analyzer/metrics/metrics.h"

namespace acltape::analyzer {

// What this machine can run, the best last.
std::vector<const block::Kernels*> UsableKernels();

// As Measure.
TensorMetrics MeasureWith(const block::Kernels& kernels, storage::DType a_type, const uint8_t* a,
                          storage::DType b_type, const uint8_t* b, int64_t elements,
                          const MeasureOptions& options = {});

}  // namespace acltape::analyzer
