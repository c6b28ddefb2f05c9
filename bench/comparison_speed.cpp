// Measures how fast Measure compares two tensors, against a bare sum over the same two streams of
// bytes.
//
//   comparison_speed [MIB [SET]]  MiB per side, 256 unless told; the instruction set, the best
//   unless told
//
// Rates are bytes of one side, and elements, per second of processor time on one core; both sides
// are read.
// Medians of rounds in which the baseline and the comparison take turns. "typical": random numbers
// of which one in eight differs by a few units; "equal": equal bits; "special": NaN and infinities
// among them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "analyzer/metrics/measure_with.h"
#include "analyzer/metrics/metrics.h"
#include "base/median.h"

namespace {

using acltape::analyzer::metrics::MeasureWith;
using acltape::analyzer::metrics::UsableKernels;
using acltape::analyzer::metrics::block::Kernels;
using acltape::base::UpperMedian;
using acltape::storage::DType;

constexpr int kRounds = 7;

// Processor time of this thread, which other work on the machine lengthens little.
double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

typedef uint64_t Words __attribute__((vector_size(64)));

// Reads both sides, which is the least that any comparison must do.
uint64_t SumStreams(const uint8_t* a, const uint8_t* b, size_t bytes) {
  Words sum = {};
  for (size_t i = 0; i + sizeof(Words) <= bytes; i += sizeof(Words)) {
    Words x;
    Words y;
    std::memcpy(&x, a + i, sizeof x);
    std::memcpy(&y, b + i, sizeof y);
    sum += x + y;
  }
  uint64_t total = 0;
  for (size_t lane = 0; lane < 8; ++lane) total += sum[lane];
  return total;
}

struct Case {
  const char* type;
  DType a;
  DType b;
  const char* content;
};

constexpr Case kCases[] = {
    {"float32", DType::kFloat32, DType::kFloat32, "typical"},
    {"float32", DType::kFloat32, DType::kFloat32, "equal"},
    {"float32", DType::kFloat32, DType::kFloat32, "special"},
    {"float32", DType::kFloat32, DType::kFloat32, "unlike"},
    {"float16", DType::kFloat16, DType::kFloat16, "typical"},
    {"float16", DType::kFloat16, DType::kFloat16, "special"},
    {"bfloat16", DType::kBfloat16, DType::kBfloat16, "typical"},
    {"float64", DType::kFloat64, DType::kFloat64, "typical"},
    {"int8", DType::kInt8, DType::kInt8, "typical"},
    {"int64", DType::kInt64, DType::kInt64, "typical"},
    {"float32, bfloat16", DType::kFloat32, DType::kBfloat16, "typical"},
    {"float32, float16", DType::kFloat32, DType::kFloat16, "typical"},
};

// Fills elements of a type from normally distributed numbers; its last bits are noise anyway.
void Fill(DType type, const char* content, std::vector<uint8_t>& a, std::vector<uint8_t>& b) {
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  const bool special = std::string(content) == "special";
  if (type == DType::kFloat32) {
    for (size_t i = 0; i + 4 <= a.size(); i += 4) {
      float value = normal(random);
      if (special && random() % 64 == 0) value = random() % 2 == 0 ? NAN : -INFINITY;
      std::memcpy(&a[i], &value, 4);
    }
  } else if (type == DType::kFloat64) {
    for (size_t i = 0; i + 8 <= a.size(); i += 8) {
      const double value = normal(random);
      std::memcpy(&a[i], &value, 8);
    }
  } else {
    // A cleared bit of the exponent keeps 16-bit floating numbers finite.
    const bool floating = type == DType::kFloat16 || type == DType::kBfloat16;
    for (size_t i = 0; i + 8 <= a.size(); i += 8) {
      const uint64_t word = random() & (floating ? 0xbfffbfffbfffbfff : ~uint64_t{0});
      std::memcpy(&a[i], &word, 8);
      // The upper bytes of a NaN or an infinity.
      if (special && floating && random() % 16 == 0) a[i + 1] = random() % 2 == 0 ? 0x7f : 0xfc;
    }
  }
  b = a;
  if (std::string(content) == "equal") return;
  if (std::string(content) == "unlike") {
    std::rotate(b.begin(), b.begin() + 4096, b.end());
    return;
  }
  const auto bytes = static_cast<size_t>(acltape::storage::DTypeBytes(type));
  for (size_t i = 0; i < b.size(); i += bytes) {
    if (random() % 8 == 0) b[i] ^= static_cast<uint8_t>(random() % 8);
  }
}

uint64_t Run(const Kernels& kernels, const Case& each, const std::vector<uint8_t>& a,
             const std::vector<uint8_t>& b, int64_t elements, int threads) {
  const auto metrics = acltape::analyzer::metrics::MeasureWith(
      kernels, each.a, a.data(), each.b, b.data(), elements, {.threads = threads});
  return static_cast<uint64_t>(metrics.differing);
}

}  // namespace

int main(int argc, char** argv) {
  const size_t bytes = (argc > 1 ? std::stoul(argv[1]) : 256) << 20;
  const Kernels* chosen = acltape::analyzer::metrics::UsableKernels().back();
  for (const Kernels* usable : acltape::analyzer::metrics::UsableKernels()) {
    if (argc > 2 && std::string(argv[2]) == usable->instruction_set) chosen = usable;
  }
  const Kernels& kernels = *chosen;
  uint64_t sink = 0;
  fmt::print("{}, {} MiB a side; GB/s of one side; one thread unless said\n",
             kernels.instruction_set, bytes >> 20);
  fmt::print("{:<17} {:<7} {:>9} {:>9} {:>7} {:>12}\n", "types", "content", "baseline", "Measure",
             "ratio", "elements/s");
  std::vector<uint8_t> a(bytes);
  std::vector<uint8_t> b;
  for (const Case& each : kCases) {
    Fill(each.a, each.content, a, b);
    const int64_t elements = static_cast<int64_t>(bytes) / DTypeBytes(each.a);
    if (each.a != each.b) {
      // The upper half of a float is a bfloat16; the same bits, cleared of special ones, a half.
      std::vector<uint16_t> narrow(static_cast<size_t>(elements));
      for (size_t i = 0; i < narrow.size(); ++i) {
        std::memcpy(&narrow[i], &a[4 * i + 2], 2);
        if (each.b == DType::kFloat16) narrow[i] &= 0xbfff;
      }
      b.resize(narrow.size() * 2);
      std::memcpy(b.data(), narrow.data(), b.size());
    }
    std::vector<double> baseline;
    std::vector<double> measured;
    std::vector<double> threaded;
    for (int round = 0; round < kRounds; ++round) {
      double from = ThreadSeconds();
      sink += SumStreams(a.data(), b.data(), std::min(a.size(), b.size()));
      baseline.push_back(static_cast<double>(b.size()) / (ThreadSeconds() - from) / 1e9);
      from = ThreadSeconds();
      sink += Run(kernels, each, a, b, elements, 1);
      measured.push_back(static_cast<double>(bytes) / (ThreadSeconds() - from) / 1e9);
      from = WallSeconds();
      sink += Run(kernels, each, a, b, elements, 0);
      threaded.push_back(static_cast<double>(bytes) / (WallSeconds() - from) / 1e9);
    }
    fmt::print("{:<17} {:<7} {:>9.2f} {:>9.2f} {:>7.2f} {:>10.0f} M   {:.2f} on {} threads\n",
               each.type, each.content, UpperMedian(baseline), UpperMedian(measured),
               UpperMedian(measured) / UpperMedian(baseline),
               UpperMedian(measured) * 1e3 / static_cast<double>(DTypeBytes(each.a)),
               UpperMedian(threaded), std::thread::hardware_concurrency());
  }
  return sink == 1 ? 1 : 0;
}
