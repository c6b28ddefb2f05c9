#include "runtime/opapi/kernels/random_generator.h"

#include <ATen/CPUGeneratorImpl.h>

#include "runtime/kernel_launch.h"
#include "runtime/philox.h"

namespace acltape::opapi {
namespace {

// The second word of the counters. Tasks of aclrtRandomNumAsync count from 0 in practice, so it
// keeps their numbers apart from those of operators with the same seed.
constexpr uint32_t kOfOperators = 0x61636c6e;

at::Generator Seeded(uint64_t seed) { return at::make_generator<at::CPUGeneratorImpl>(seed); }

at::Generator Advanced(uint64_t seed, int64_t offset) {
  at::Generator generator = Seeded(seed);
  auto* engine = generator.get<at::CPUGeneratorImpl>();
  for (int64_t i = 0; i < offset; ++i) engine->random();
  return generator;
}

at::Generator Independent(uint64_t seed, uint64_t offset) {
  Philox words(seed, {{0, kOfOperators, static_cast<uint32_t>(offset),
                       static_cast<uint32_t>(offset >> 32)}});
  at::Generator generator = Seeded(seed);
  auto* of_library = generator.get<at::CPUGeneratorImpl>();
  at::mt19937_data_pod state = of_library->engine().data();
  for (uint32_t& word : state.state_) word = words.Next();
  state.left_ = 1;  // the first draw makes the twister's next block out of the state
  state.next_ = 0;
  at::mt19937 engine;
  engine.set_data(state);
  of_library->set_engine(engine);
  return generator;
}

}  // namespace

at::Generator MakeGenerator(int64_t seed, int64_t offset) {
  const auto key = static_cast<uint64_t>(seed);
  return SoftRandomGenerator() == 1 ? Advanced(key, offset)
                                    : Independent(key, static_cast<uint64_t>(offset));
}

}  // namespace acltape::opapi
