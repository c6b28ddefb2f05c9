// The pass over both contents, in pieces that threads take: what the kernels of block.h say about
// each block, added up in the order of elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "analyzer/metrics/block.h"

namespace acltape::analyzer {

// What there is to measure.
struct TensorPair {
  block::Type a_type;
  block::Type b_type;
  const uint8_t* a;
  const uint8_t* b;
  size_t a_bytes;  // of an element
  size_t b_bytes;
  double small_value;
  int ulp_type = -1;  // block::Type in whose units distances are; -1: none
  bool same() const { return a_type == b_type; }
};

// Of a range of blocks. Sums are added in order of elements, so that they do not depend on who
// took which range.
struct PieceMetrics {
  block::Sums sums;
  int64_t differing = 0;
  int64_t first = -1;  // element that differs
  int64_t max_abs_index = -1;
  uint64_t unlike = 0;  // bits that differ in some pair
  uint64_t max_ulp = 0;
  double ulp_sum = 0;
  int64_t widths[block::kWidths] = {};  // ULP distances by width

  PieceMetrics();
  // Of the elements behind these.
  void Add(const PieceMetrics& next);
  void AddSums(const block::Sums& next);
};

// All `elements` of the pair. threads: 0 for as many as the machine has and the size deserves.
PieceMetrics MeasurePieces(const block::Kernels& kernels, const TensorPair& pair, int64_t elements,
                           int threads);

}  // namespace acltape::analyzer
