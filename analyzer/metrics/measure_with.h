// Measures with a chosen table of kernels, so that tests can compare the tables with each other.
#pragma once

#include <vector>

#include "analyzer/metrics/block.h"
#include "analyzer/metrics/metrics.h"

namespace acltape::analyzer::metrics {

// The tables that this machine can run, the best one last.
std::vector<const block::Kernels*> UsableKernels();

// Measures as Measure does, with the given kernels.
TensorMetrics MeasureWith(const block::Kernels& kernels, storage::DType a_type, const uint8_t* a,
                          storage::DType b_type, const uint8_t* b, int64_t elements,
                          const MeasureOptions& options = {});

}  // namespace acltape::analyzer::metrics
