// The generator that random operators draw from (RND-08, RND-09).
//
// Version 2, the default: the numbers at a seed and an offset are independent of those at any other
// pair. Philox, with the seed as its key and the offset in its counter, gives the whole state of
// the library's Mersenne twister, 19,968 bits. So no stream is another one that is shifted, and an
// offset costs nothing, however large it is.
//
// Version 1: the library's Mersenne twister, seeded with `seed` and advanced by `offset` draws of
// 32 bits. Draws at two offsets are one sequence, shifted. Older traces were recorded with it, and
// their replays need it.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>

namespace acltape::opapi {

// Returns a generator at the begin of the numbers of (seed, offset), of the version that the device
// has (SoftRandomGenerator). Equal arguments give equal numbers, eager or replayed.
at::Generator MakeGenerator(int64_t seed, int64_t offset);

}  // namespace acltape::opapi
