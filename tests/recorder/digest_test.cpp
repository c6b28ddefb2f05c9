// The digest of the agent is that of the library, for each vector width that this processor has.
#include "recorder/agent/digest.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <random>
#include <vector>

namespace acltape::agent {
namespace {

void ExpectTheLibrarys(Digest (*digest_of)(const void*, size_t), const char* name) {
  constexpr uint64_t kSeed = 3;
  std::mt19937_64 random(kSeed);
  // XXH3 has other code for up to 16, 128 and 240 bytes, and for each KiB after that.
  for (const size_t bytes : {0, 1, 3, 8, 16, 17, 128, 129, 240, 241, 1024, 1025, 4095, 65537}) {
    for (const size_t misaligned : {0, 1}) {
      std::vector<unsigned char> data(bytes + misaligned);
      for (auto& one : data) one = static_cast<unsigned char>(random());
      const unsigned char* begin = data.data() + misaligned;
      const XXH128_hash_t expected = XXH3_128bits(begin, bytes);
      const Digest digest = digest_of(begin, bytes);
      EXPECT_EQ(digest.low, expected.low64) << name << ", " << bytes << " bytes, seed " << kSeed;
      EXPECT_EQ(digest.high, expected.high64) << name << ", " << bytes << " bytes, seed " << kSeed;
    }
  }
}

TEST(DigestTest, IsTheSameForEveryVectorWidth) {
  ExpectTheLibrarys(DigestOf, "DigestOf");
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) ExpectTheLibrarys(DigestWithAvx2, "AVX2");
  if (__builtin_cpu_supports("avx512f")) ExpectTheLibrarys(DigestWithAvx512, "AVX-512");
#endif
}

}  // namespace
}  // namespace acltape::agent
