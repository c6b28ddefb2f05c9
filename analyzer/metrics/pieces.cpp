#include "analyzer/metrics/pieces.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

namespace acltape::analyzer::metrics {
namespace {

void AddSide(block::Side& side, const block::Side& next) {
  side.sum += next.sum;
  side.square += next.square;
  side.low = std::min(side.low, next.low);
  side.high = std::max(side.high, next.high);
  side.finite += next.finite;
  side.nan += next.nan;
}

// Measures blocks with one table of kernels.
class BlockMeasure {
 public:
  BlockMeasure(const block::Kernels& kernels, const TensorPair& pair)
      : kernels_(kernels), pair_(pair) {}

  // Measures the elements [from, end).
  PieceMetrics Run(int64_t from, int64_t end) {
    PieceMetrics piece;
    std::memset(counts_, 0, sizeof counts_);
    for (int64_t index = from; index < end; index += block::kElements) {
      AddBlock(index, static_cast<size_t>(std::min<int64_t>(block::kElements, end - index)), piece);
    }
    for (size_t k = 0; k < block::kWidths; ++k) piece.widths[k] += counts_[k];
    if (pair_.ulp_type >= 0) {
      // The kernels counted pairs that cannot be compared as distance 0.
      piece.widths[0] -= piece.sums.nan_mismatches + piece.sums.inf_mismatches;
    }
    return piece;
  }

 private:
  void AddBlock(int64_t index, size_t n, PieceMetrics& piece) {
    const uint8_t* a = pair_.a + static_cast<size_t>(index) * pair_.a_bytes;
    const uint8_t* b = pair_.b + static_cast<size_t>(index) * pair_.b_bytes;
    if (n < block::kElements) {
      a = Padded(a, n * pair_.a_bytes, padded_a_);
      b = Padded(b, n * pair_.b_bytes, padded_b_);
    }
    if (pair_.same()) {
      AddSameType(index, n, a, b, piece);
    } else {
      AddTwoTypes(index, n, a, b, piece);
    }
  }

  // Copies the elements and adds zeros. Zero bytes are the number 0 in every type.
  static const uint8_t* Padded(const uint8_t* elements, size_t bytes, uint8_t* room) {
    std::memcpy(room, elements, bytes);
    std::memset(room + bytes, 0, kBlockBytes - bytes);
    return room;
  }

  void AddSameType(int64_t index, size_t n, const uint8_t* a, const uint8_t* b,
                   PieceMetrics& piece) {
    const block::Type type = pair_.a_type;
    const block::Bits bits = kernels_.compare_bits[std::countr_zero(pair_.a_bytes)](a, b);
    block::Sums sums;
    if (bits.differing == 0) {
      kernels_.sum_equal[type](a, n, &sums);
      if (pair_.ulp_type >= 0) counts_[0] += static_cast<uint32_t>(n);
      piece.AddSums(sums);
      return;
    }
    piece.unlike |= bits.unlike;
    if (piece.first < 0) piece.first = index + FirstDifferent(a, b, n);
    piece.differing += bits.differing;
    if (pair_.ulp_type >= 0) {
      AddDistances(kernels_.distances[type - block::kBfloat16](a, b, n, counts_), piece);
    }
    kernels_.sum[type](a, b, n, pair_.small_value, &sums);
    if (sums.max_abs > piece.sums.max_abs) {
      piece.max_abs_index = index + kernels_.find_error[type](a, b, n, sums.max_abs);
    }
    piece.AddSums(sums);
  }

  // Compares elements of different types as numbers.
  void AddTwoTypes(int64_t index, size_t n, const uint8_t* a, const uint8_t* b,
                   PieceMetrics& piece) {
    kernels_.load[pair_.a_type](a, block::kElements, values_a_);
    kernels_.load[pair_.b_type](b, block::kElements, values_b_);
    const int64_t differing = kernels_.count_unequal(values_a_, values_b_);
    if (differing > 0 && piece.first < 0) piece.first = index + FirstUnequal(n);
    piece.differing += differing;
    if (pair_.ulp_type >= 0) {
      const auto measure =
          kernels_
              .rounded_distances[pair_.a_type - block::kBfloat16][pair_.b_type - block::kBfloat16];
      AddDistances(measure(a, b, n, counts_, &piece.unlike), piece);
    }
    block::Sums sums;
    const auto* doubles_a = reinterpret_cast<const uint8_t*>(values_a_);
    const auto* doubles_b = reinterpret_cast<const uint8_t*>(values_b_);
    kernels_.sum[block::kFloat64](doubles_a, doubles_b, n, pair_.small_value, &sums);
    if (sums.max_abs > piece.sums.max_abs) {
      piece.max_abs_index =
          index + kernels_.find_error[block::kFloat64](doubles_a, doubles_b, n, sums.max_abs);
    }
    piece.AddSums(sums);
  }

  int64_t FirstDifferent(const uint8_t* a, const uint8_t* b, size_t n) const {
    size_t i = 0;
    while (i + 1 < n * pair_.a_bytes && a[i] == b[i]) ++i;
    return static_cast<int64_t>(i / pair_.a_bytes);
  }

  int64_t FirstUnequal(size_t n) const {
    size_t i = 0;
    const auto equal = [](double x, double y) { return x == y || (x != x && y != y); };
    while (i + 1 < n && equal(values_a_[i], values_b_[i])) ++i;
    return static_cast<int64_t>(i);
  }

  static void AddDistances(const block::Distances& distances, PieceMetrics& piece) {
    piece.max_ulp = std::max(piece.max_ulp, distances.greatest);
    piece.ulp_sum += distances.sum;
  }

  static constexpr size_t kBlockBytes = block::kElements * sizeof(double);

  const block::Kernels& kernels_;
  const TensorPair& pair_;
  alignas(64) double values_a_[block::kElements];
  alignas(64) double values_b_[block::kElements];
  alignas(64) uint8_t padded_a_[kBlockBytes];
  alignas(64) uint8_t padded_b_[kBlockBytes];
  uint32_t counts_[block::kWidths];
};

// The number of elements of a piece, which one thread takes at once. It is small enough for the
// counts of a bucket.
constexpr int64_t kPiece = int64_t{1} << 16;

}  // namespace

PieceMetrics::PieceMetrics() {
  sums.a.low = sums.b.low = std::numeric_limits<double>::infinity();
  sums.a.high = sums.b.high = -std::numeric_limits<double>::infinity();
}

void PieceMetrics::Add(const PieceMetrics& next) {
  if (next.sums.max_abs > sums.max_abs) max_abs_index = next.max_abs_index;
  AddSums(next.sums);
  differing += next.differing;
  if (first < 0) first = next.first;
  unlike |= next.unlike;
  max_ulp = std::max(max_ulp, next.max_ulp);
  ulp_sum += next.ulp_sum;
  for (size_t k = 0; k < block::kWidths; ++k) widths[k] += next.widths[k];
}

void PieceMetrics::AddSums(const block::Sums& next) {
  AddSide(sums.a, next.a);
  AddSide(sums.b, next.b);
  for (double block::Sums::*sum :
       {&block::Sums::square_a, &block::Sums::square_b, &block::Sums::product,
        &block::Sums::square_error, &block::Sums::abs, &block::Sums::rel}) {
    sums.*sum += next.*sum;
  }
  for (double block::Sums::*most :
       {&block::Sums::max_abs, &block::Sums::max_rel, &block::Sums::max_either,
        &block::Sums::max_rel_large, &block::Sums::max_abs_small}) {
    sums.*most = std::max(sums.*most, next.*most);
  }
  for (int k = 0; k < 3; ++k) sums.within[k] += next.within[k];
  sums.nan_mismatches += next.nan_mismatches;
  sums.inf_mismatches += next.inf_mismatches;
}

PieceMetrics MeasurePieces(const block::Kernels& kernels, const TensorPair& pair, int64_t elements,
                           int threads) {
  const int64_t pieces = (elements + kPiece - 1) / kPiece;
  std::vector<PieceMetrics> measured(static_cast<size_t>(pieces));
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    BlockMeasure measure(kernels, pair);
    for (int64_t piece = next++; piece < pieces; piece = next++) {
      measured[static_cast<size_t>(piece)] =
          measure.Run(piece * kPiece, std::min(elements, (piece + 1) * kPiece));
    }
  };
  int64_t wanted = threads;
  if (threads <= 0) {
    constexpr int64_t kPiecesPerThread = 4;  // so that the cost of a thread is small
    wanted = std::min<int64_t>(std::thread::hardware_concurrency(), pieces / kPiecesPerThread);
  }
  wanted = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(pieces, 1));
  std::vector<std::thread> others;
  for (int64_t i = 1; i < wanted; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  PieceMetrics all;
  for (const PieceMetrics& piece : measured) all.Add(piece);
  return all;
}

}  // namespace acltape::analyzer::metrics
