#include "analyzer/metrics/metrics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "analyzer/metrics/element_type.h"
#include "analyzer/metrics/measure_with.h"
#include "analyzer/metrics/pieces.h"
#include "storage/error.h"

namespace acltape::analyzer::metrics {
namespace {

using storage::DType;

const block::Kernels& BestKernels() {
  static const block::Kernels& best = *UsableKernels().back();
  return best;
}

SideStatistics StatisticsOf(const block::Side& side, int64_t elements) {
  SideStatistics statistics;
  statistics.nan_count = side.nan;
  statistics.inf_count = elements - side.finite - side.nan;
  if (side.finite == 0) return statistics;
  statistics.min = side.low;
  statistics.max = side.high;
  statistics.mean = side.sum / static_cast<double>(side.finite);
  statistics.norm = std::sqrt(side.square);
  return statistics;
}

// True if the squares fit. Squares of smaller or greater doubles leave the range of double.
bool SquaresFit(double most) { return most == 0 || (most > 1e-140 && most < 1e140); }

// Computes the sums of squares and products again, in a type with a greater range of exponents.
void SumWide(const TensorPair& pair, int64_t elements, TensorMetrics& metrics) {
  long double aa = 0, bb = 0, ab = 0, dd = 0, norm_a = 0, norm_b = 0;
  const block::Kernels& kernels = block::kBaselineKernels;
  for (int64_t i = 0; i < elements; ++i) {
    double x = 0;
    double y = 0;
    kernels.load[pair.a_type](pair.a + static_cast<size_t>(i) * pair.a_bytes, 1, &x);
    kernels.load[pair.b_type](pair.b + static_cast<size_t>(i) * pair.b_bytes, 1, &y);
    const long double u = x;
    const long double v = y;
    if (std::isfinite(x)) norm_a += u * u;
    if (std::isfinite(y)) norm_b += v * v;
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    aa += u * u;
    bb += v * v;
    ab += u * v;
    dd += (u - v) * (u - v);
  }
  const auto pairs = static_cast<long double>(std::max<int64_t>(metrics.comparable(), 1));
  metrics.a.norm = static_cast<double>(std::sqrt(norm_a));
  metrics.b.norm = static_cast<double>(std::sqrt(norm_b));
  metrics.rmse = static_cast<double>(std::sqrt(dd / pairs));
  metrics.nmse = dd == 0 ? 0 : static_cast<double>(dd / aa);
  metrics.cosine = aa == 0 && bb == 0   ? 1
                   : aa == 0 || bb == 0 ? 0
                                        : static_cast<double>(ab / (std::sqrt(aa) * std::sqrt(bb)));
}

void SetDirection(const block::Sums& sums, TensorMetrics& metrics) {
  if (sums.square_a == 0 || sums.square_b == 0) {
    metrics.cosine = sums.square_a == sums.square_b ? 1 : 0;
  } else if (sums.square_error == 0) {
    metrics.cosine = 1;  // independent of the rounding of the roots
  } else {
    metrics.cosine = sums.product / (std::sqrt(sums.square_a) * std::sqrt(sums.square_b));
  }
  metrics.nmse = sums.square_error == 0 ? 0 : sums.square_error / sums.square_a;
}

}  // namespace

std::vector<const block::Kernels*> UsableKernels() {
  std::vector<const block::Kernels*> usable{&block::kBaselineKernels};
// Clang before 19 does not know these names of processors; builds for fuzzing need no speed here.
#if defined(__x86_64__) && (!defined(__clang__) || __clang_major__ >= 19)
  if (__builtin_cpu_supports("x86-64-v3")) usable.push_back(&block::kV3Kernels);
  if (__builtin_cpu_supports("x86-64-v4")) usable.push_back(&block::kV4Kernels);
#endif
  return usable;
}

double TensorMetrics::ShareAboveUlp(int64_t limit) const {
  if (comparable() == 0) return 0;
  // Bucket k > 0 reaches up to 2^(k-1).
  const size_t bucket =
      limit <= 0 ? 0 : 1 + static_cast<size_t>(std::bit_width(static_cast<uint64_t>(limit) - 1));
  int64_t above = 0;
  for (size_t k = bucket + 1; k < ulp_buckets.size(); ++k) above += ulp_buckets[k];
  return static_cast<double>(above) / static_cast<double>(comparable());
}

TensorMetrics Measure(DType a_type, const uint8_t* a, DType b_type, const uint8_t* b,
                      int64_t elements, const MeasureOptions& options) {
  return MeasureWith(BestKernels(), a_type, a, b_type, b, elements, options);
}

TensorMetrics MeasureWith(const block::Kernels& kernels, DType a_type, const uint8_t* a,
                          DType b_type, const uint8_t* b, int64_t elements,
                          const MeasureOptions& options) {
  const ElementType* row_a = FindElementType(a_type);
  const ElementType* row_b = FindElementType(b_type);
  if (row_a == nullptr || row_b == nullptr || row_a->parts != row_b->parts) {
    throw Error(ErrorKind::kCannotJudge,
                std::string("elements of the types ") + std::string(DTypeName(a_type)) + " and " +
                    std::string(DTypeName(b_type)) +
                    " cannot be compared as numbers; compare tensors of real or of complex types");
  }
  TensorPair pair{row_a->type,
                  row_b->type,
                  a,
                  b,
                  static_cast<size_t>(storage::DTypeBytes(row_a->part)),
                  static_cast<size_t>(storage::DTypeBytes(row_b->part)),
                  options.small_value};
  if (pair.small_value < 0) pair.small_value = DefaultSmallValue(CoarserType(a_type, b_type));
  if (IsFloating(pair.a_type) && IsFloating(pair.b_type)) {
    pair.ulp_type = std::min(pair.a_type, pair.b_type);
  }
  TensorMetrics metrics;
  metrics.elements = elements * row_a->parts;
  const PieceMetrics all = MeasurePieces(kernels, pair, metrics.elements, options.threads);
  const block::Sums& sums = all.sums;
  metrics.differing = all.differing;
  metrics.first_index = all.first;
  if (all.first >= 0) {
    const auto first = static_cast<size_t>(all.first);
    metrics.first_a = ElementText(row_a->part, a + first * pair.a_bytes);
    metrics.first_b = ElementText(row_b->part, b + first * pair.b_bytes);
  }
  metrics.nan_mismatches = sums.nan_mismatches;
  metrics.inf_mismatches = sums.inf_mismatches;
  metrics.a = StatisticsOf(sums.a, metrics.elements);
  metrics.b = StatisticsOf(sums.b, metrics.elements);
  const auto pairs = static_cast<double>(std::max<int64_t>(metrics.comparable(), 1));
  metrics.max_abs = sums.max_abs;
  metrics.mean_abs = sums.abs / pairs;
  metrics.rmse = std::sqrt(sums.square_error / pairs);
  metrics.max_rel = sums.max_rel;
  metrics.mean_rel = sums.rel / pairs;
  metrics.max_abs_index = all.max_abs_index;
  metrics.max_abs_or_rel = sums.max_either;
  metrics.small_value = pair.small_value;
  metrics.max_rel_large = sums.max_rel_large;
  metrics.max_abs_small = sums.max_abs_small;
  // These are bits of the type that both sides have, or of the type to which they were rounded.
  const bool bits = pair.same() || pair.ulp_type >= 0;
  const int width = 8 * static_cast<int>(std::min(pair.a_bytes, pair.b_bytes));
  metrics.agreeing_bits = bits ? std::countl_zero(all.unlike) - (64 - width) : -1;
  metrics.max_ulp = pair.ulp_type < 0 ? -1 : static_cast<int64_t>(all.max_ulp);
  metrics.mean_ulp = all.ulp_sum / pairs;
  for (size_t width = 0; width < block::kWidths; ++width) {
    metrics.ulp_buckets[std::min(width, metrics.ulp_buckets.size() - 1)] += all.widths[width];
  }
  SetDirection(sums, metrics);
  if (metrics.comparable() > 0) {
    metrics.within_hundredth = static_cast<double>(sums.within[0]) / pairs;
    metrics.within_thousandth = static_cast<double>(sums.within[1]) / pairs;
    metrics.within_ten_thousandth = static_cast<double>(sums.within[2]) / pairs;
  }
  const auto fits = [](const SideStatistics& side) {
    return SquaresFit(std::max(std::fabs(side.min), std::fabs(side.max)));
  };
  if (!fits(metrics.a) || !fits(metrics.b) || !SquaresFit(metrics.max_abs)) {
    SumWide(pair, metrics.elements, metrics);
  }
  return metrics;
}

}  // namespace acltape::analyzer::metrics
