// Caches of keys and values in int8 beside queries of floats: a row stands for (row + offset) *
// scale. Scales serve channels, heads or rows, as a mode says.
#pragma once

#include "runtime/opapi/kernels/infer_arguments.h"
#include "runtime/opapi/kernels/key_rows.h"

namespace acltape::opapi {

// Properties of keys and values that their scales have to fit.
struct ScaledCache {
  at::ScalarType query;  // dtype of scales of channels and heads
  bool one_row = false;  // one query a sequence
  bool packed = false;   // sequences follow each other in one batch
  int64_t sequences = 0;
  int64_t rows = 0;    // keys that a sequence may have
  int64_t blocks = 0;  // the cache has so many; 0: it does not lie in blocks
  int64_t block_rows = 0;
};

// The scale of keys or values, and their offset where one is given.
struct CacheScale {
  KeyRows scale, offset;
  bool of_rows = false;  // each row has its own

  // The numbers that `rows` of int8 stand for, in float32.
  KeyRows Apply(const KeyRows& rows) const;
};

struct CacheScales {
  CacheScale key, value;
};

// The scales that the call gives for keys and values of these rows; rejects the call where there
// are none, or where they do not fit.
CacheScales ReadCacheScales(const Call& call, const InferArguments& at, const ScaledCache& cache,
                            const KeyRows& key, const KeyRows& value);
// Rejects scales beside keys that need none.
void ExpectNoCacheScales(const Call& call, const InferArguments& at);

}  // namespace acltape::opapi
