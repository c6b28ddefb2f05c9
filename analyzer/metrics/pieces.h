// The pass over both contents. Threads take pieces of them. The results of the kernels (block.h)
// for each block are added in the order of elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "analyzer/metrics/block.h"

namespace acltape::analyzer::metrics {

// The two contents that are measured.
struct TensorPair {
  block::Type a_type;
  block::Type b_type;
  const uint8_t* a;
  const uint8_t* b;
  size_t a_bytes;  // bytes of an element
  size_t b_bytes;
  double small_value;
  // The block::Type in whose units distances are measured; -1 if there is none.
  int ulp_type = -1;
  bool same() const { return a_type == b_type; }
};

// The result for a range of elements. Sums are added in the order of elements, so that they do not
// depend on which thread took which range.
struct PieceMetrics {
  block::Sums sums;
  int64_t differing = 0;
  int64_t first = -1;  // index of the first element that differs
  int64_t max_abs_index = -1;
  uint64_t unlike = 0;  // bits that differ in some pair
  uint64_t max_ulp = 0;
  double ulp_sum = 0;
  int64_t widths[block::kWidths] = {};  // ULP distances by width

  PieceMetrics();
  // Adds the result of the elements that follow these.
  void Add(const PieceMetrics& next);
  void AddSums(const block::Sums& next);
};

// Measures all `elements` of the pair. With threads = 0 the machine and the size decide their
// number.
PieceMetrics MeasurePieces(const block::Kernels& kernels, const TensorPair& pair, int64_t elements,
                           int threads);

}  // namespace acltape::analyzer::metrics
