// Tensors in memory that the recorder does not know: of a device of another kind (CUDA), or in a
// form of their own (mkldnn, nested, sparse). Their calls have shapes and times, and no memory and
// no values, so that nobody can say of a replay of them that it is right.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>

#include "analyzer/calls/coverage.h"
#include "storage/reader.h"

namespace acltape::analyzer {

struct MemoryCoverage {
  int64_t leaves = 0;                   // leaves of PyTorch with tensors
  std::unordered_set<int64_t> unknown;  // call ids of those with a tensor in unknown memory
  std::string memory;  // names of that memory, "cuda:0, mkldnn"; a trace before version 7 has none

  // True if the trace cannot be judged by its values: calls of unknown memory are more than a
  // twentieth.
  bool lacks_values() const {
    return TooFew(leaves - static_cast<int64_t>(unknown.size()), leaves);
  }
  // "2453 of 2712 calls have tensors in memory that the recorder does not know (cuda:0)"
  std::string Sentence() const;
};

// Reads every leaf. Tensors without values ("meta"), with which shapes are worked out, are no lack.
MemoryCoverage CoverageOfMemory(const storage::Reader& trace);

// Throws Error kCannotJudge, one sentence, for a trace that lacks values.
void RequireKnownMemory(const storage::Reader& trace);

}  // namespace acltape::analyzer
