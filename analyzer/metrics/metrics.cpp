#include "analyzer/metrics/metrics.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "analyzer/metrics/measure_with.h"
#include "storage/error.h"

namespace acltape::analyzer {
namespace {

using storage::DType;

// What the kernels make of an element type.
struct TypeRow {
  DType dtype;
  block::Type type;
  int parts = 1;  // of a complex number 2
  DType part;     // its type
};

constexpr TypeRow kTypes[] = {
    {DType::kBool, block::kBool, 1, DType::kBool},
    {DType::kUint8, block::kUint8, 1, DType::kUint8},
    {DType::kQuint8, block::kUint8, 1, DType::kUint8},
    {DType::kInt8, block::kInt8, 1, DType::kInt8},
    {DType::kQint8, block::kInt8, 1, DType::kInt8},
    {DType::kUint16, block::kUint16, 1, DType::kUint16},
    {DType::kInt16, block::kInt16, 1, DType::kInt16},
    {DType::kUint32, block::kUint32, 1, DType::kUint32},
    {DType::kInt32, block::kInt32, 1, DType::kInt32},
    {DType::kQint32, block::kInt32, 1, DType::kInt32},
    {DType::kUint64, block::kUint64, 1, DType::kUint64},
    {DType::kInt64, block::kInt64, 1, DType::kInt64},
    {DType::kBfloat16, block::kBfloat16, 1, DType::kBfloat16},
    {DType::kFloat16, block::kFloat16, 1, DType::kFloat16},
    {DType::kFloat32, block::kFloat32, 1, DType::kFloat32},
    {DType::kFloat64, block::kFloat64, 1, DType::kFloat64},
    {DType::kComplex32, block::kFloat16, 2, DType::kFloat16},
    {DType::kComplex64, block::kFloat32, 2, DType::kFloat32},
    {DType::kComplex128, block::kFloat64, 2, DType::kFloat64},
};

const TypeRow* RowOf(DType dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

bool Floating(block::Type type) { return type >= block::kBfloat16; }

const block::Kernels& BestKernels() {
  static const block::Kernels& best = *UsableKernels().back();
  return best;
}

// What there is to measure.
struct Pair {
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
struct Partial {
  block::Sums sums;
  int64_t differing = 0;
  int64_t first = -1;
  int64_t max_abs_index = -1;
  uint64_t unlike = 0;
  uint64_t max_ulp = 0;
  double ulp_sum = 0;
  int64_t widths[block::kWidths] = {};

  Partial() {
    sums.a.low = sums.b.low = std::numeric_limits<double>::infinity();
    sums.a.high = sums.b.high = -std::numeric_limits<double>::infinity();
  }

  void Add(const Partial& next) {
    if (next.sums.max_abs > sums.max_abs) max_abs_index = next.max_abs_index;
    AddSums(next.sums);
    differing += next.differing;
    if (first < 0) first = next.first;
    unlike |= next.unlike;
    max_ulp = std::max(max_ulp, next.max_ulp);
    ulp_sum += next.ulp_sum;
    for (size_t k = 0; k < block::kWidths; ++k) widths[k] += next.widths[k];
  }

  void AddSums(const block::Sums& next) {
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

  static void AddSide(block::Side& side, const block::Side& next) {
    side.sum += next.sum;
    side.square += next.square;
    side.low = std::min(side.low, next.low);
    side.high = std::max(side.high, next.high);
    side.finite += next.finite;
    side.nan += next.nan;
  }
};

// Measures blocks with one table of kernels.
class BlockMeasure {
 public:
  BlockMeasure(const block::Kernels& kernels, const Pair& pair) : kernels_(kernels), pair_(pair) {}

  // Elements [from, end).
  Partial Run(int64_t from, int64_t end) {
    Partial partial;
    std::memset(counts_, 0, sizeof counts_);
    for (int64_t at = from; at < end; at += block::kElements) {
      AddBlock(at, std::min<int64_t>(block::kElements, end - at), partial);
    }
    for (size_t k = 0; k < block::kWidths; ++k) partial.widths[k] += counts_[k];
    if (pair_.ulp_type >= 0) {
      // Distances of pairs that cannot be compared were counted as 0.
      partial.widths[0] -= partial.sums.nan_mismatches + partial.sums.inf_mismatches;
    }
    return partial;
  }

 private:
  void AddBlock(int64_t at, int64_t count, Partial& partial) {
    const auto n = static_cast<size_t>(count);
    const uint8_t* a = pair_.a + static_cast<size_t>(at) * pair_.a_bytes;
    const uint8_t* b = pair_.b + static_cast<size_t>(at) * pair_.b_bytes;
    if (n < block::kElements) {
      std::fill_n(values_a_, block::kElements, 0.0);
      std::fill_n(values_b_, block::kElements, 0.0);
      std::fill_n(errors_, block::kElements, 0.0);
    }
    kernels_.load[pair_.a_type](a, n, values_a_);
    kernels_.load[pair_.b_type](b, n, values_b_);
    const auto subtract_exactly = pair_.same() ? kernels_.subtract_exactly[pair_.a_type] : nullptr;
    double* errors = nullptr;
    if (subtract_exactly != nullptr) {
      errors = errors_;
      subtract_exactly(a, b, n, errors);
    }
    const int64_t differing = CountDifferent(a, b, n, partial);
    if (differing > 0 && partial.first < 0) partial.first = at + FirstDifferent(a, b, n);
    partial.differing += differing;
    AddDistances(a, b, n, partial);
    block::Sums sums;
    if (n < block::kElements ||
        !kernels_.sum_finite(values_a_, values_b_, errors, pair_.small_value, &sums)) {
      kernels_.sum_any(values_a_, values_b_, errors, n, pair_.small_value, &sums);
    }
    if (sums.max_abs > partial.sums.max_abs) {
      partial.max_abs_index = at + FirstWithError(n, errors, sums.max_abs);
    }
    partial.AddSums(sums);
  }

  int64_t CountDifferent(const uint8_t* a, const uint8_t* b, size_t n, Partial& partial) const {
    if (pair_.same()) {
      const block::Bits bits = kernels_.compare_bits[std::countr_zero(pair_.a_bytes)](a, b, n);
      partial.unlike |= bits.unlike;
      return bits.differing;
    }
    int64_t differing = 0;
    for (size_t i = 0; i < n; ++i) differing += Unequal(i) ? 1 : 0;
    return differing;
  }

  // As numbers.
  bool Unequal(size_t i) const {
    const double x = values_a_[i];
    const double y = values_b_[i];
    return !(x == y) && (x == x || y == y);
  }

  int64_t FirstDifferent(const uint8_t* a, const uint8_t* b, size_t n) const {
    const size_t bytes = pair_.a_bytes;
    for (size_t i = 0; i < n; ++i) {
      if (pair_.same() ? std::memcmp(a + i * bytes, b + i * bytes, bytes) != 0 : Unequal(i)) {
        return static_cast<int64_t>(i);
      }
    }
    return -1;
  }

  // What is not finite has become 0.
  int64_t FirstWithError(size_t n, const double* errors, double error) const {
    for (size_t i = 0; i < n; ++i) {
      const double here = errors != nullptr ? errors[i] : std::fabs(values_a_[i] - values_b_[i]);
      if (here == error) return static_cast<int64_t>(i);
    }
    return -1;
  }

  void AddDistances(const uint8_t* a, const uint8_t* b, size_t n, Partial& partial) {
    if (pair_.ulp_type < 0) return;
    if (pair_.same()) {
      kernels_.distances[pair_.a_type](a, b, n, &distances_);
    } else {
      partial.unlike |=
          kernels_.rounded_distances[pair_.ulp_type](values_a_, values_b_, n, &distances_);
    }
    const auto count =
        pair_.ulp_type == block::kFloat64 ? kernels_.count_wide : kernels_.count_narrow;
    const block::Distances distances = count(distances_, n, counts_);
    partial.max_ulp = std::max(partial.max_ulp, distances.greatest);
    partial.ulp_sum += distances.sum;
  }

  const block::Kernels& kernels_;
  const Pair& pair_;
  alignas(64) double values_a_[block::kElements];
  alignas(64) double values_b_[block::kElements];
  alignas(64) double errors_[block::kElements];
  alignas(64) block::DistanceArray distances_;
  uint32_t counts_[block::kWidths];
};

// Elements of a piece; pieces are given to threads. Small enough for the counts of a bucket.
constexpr int64_t kPiece = int64_t{1} << 16;

std::vector<Partial> RunPieces(const block::Kernels& kernels, const Pair& pair, int64_t elements,
                               int threads) {
  const int64_t pieces = (elements + kPiece - 1) / kPiece;
  std::vector<Partial> partials(static_cast<size_t>(pieces));
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    BlockMeasure measure(kernels, pair);
    for (int64_t piece = next++; piece < pieces; piece = next++) {
      partials[static_cast<size_t>(piece)] =
          measure.Run(piece * kPiece, std::min(elements, (piece + 1) * kPiece));
    }
  };
  int64_t wanted = threads;
  if (threads <= 0) {
    constexpr int64_t kPiecesPerThread = 4;  // what a thread costs is then little
    wanted = std::min<int64_t>(std::thread::hardware_concurrency(), pieces / kPiecesPerThread);
  }
  wanted = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(pieces, 1));
  std::vector<std::thread> others;
  for (int64_t i = 1; i < wanted; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return partials;
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

// Squares of doubles as small or as large as these leave the range of double.
bool SquaresFit(double most) { return most == 0 || (most > 1e-140 && most < 1e140); }

// The sums of squares and products again, in a type with a greater exponent.
void SumWide(const Pair& pair, int64_t elements, TensorMetrics& metrics) {
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
  if (sums.square_a == 0 && sums.square_b == 0) {
    metrics.cosine = 1;
  } else if (sums.square_a == 0 || sums.square_b == 0) {
    metrics.cosine = 0;
  } else if (sums.square_error == 0) {
    metrics.cosine = 1;  // whatever the roots are rounded to
  } else {
    metrics.cosine = sums.product / (std::sqrt(sums.square_a) * std::sqrt(sums.square_b));
  }
  metrics.nmse = sums.square_error == 0 ? 0 : sums.square_error / sums.square_a;
}

}  // namespace

std::vector<const block::Kernels*> UsableKernels() {
  std::vector<const block::Kernels*> usable{&block::kBaselineKernels};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v3")) usable.push_back(&block::kV3Kernels);
  if (__builtin_cpu_supports("x86-64-v4")) usable.push_back(&block::kV4Kernels);
#endif
  return usable;
}

double TensorMetrics::ShareAboveUlp(int64_t limit) const {
  if (comparable() == 0) return 0;
  // Bucket k > 0 reaches to 2^(k-1).
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
  const TypeRow* row_a = RowOf(a_type);
  const TypeRow* row_b = RowOf(b_type);
  if (row_a == nullptr || row_b == nullptr || row_a->parts != row_b->parts) {
    throw Error(ErrorKind::kCannotJudge,
                std::string("elements of the types ") + std::string(DTypeName(a_type)) + " and " +
                    std::string(DTypeName(b_type)) +
                    " cannot be compared as numbers; compare tensors of real or of complex types");
  }
  Pair pair{row_a->type,
            row_b->type,
            a,
            b,
            static_cast<size_t>(storage::DTypeBytes(row_a->part)),
            static_cast<size_t>(storage::DTypeBytes(row_b->part)),
            options.small_value};
  if (pair.small_value < 0) pair.small_value = DefaultSmallValue(CoarserType(a_type, b_type));
  if (Floating(pair.a_type) && Floating(pair.b_type)) {
    pair.ulp_type = std::min(pair.a_type, pair.b_type);
  }
  TensorMetrics metrics;
  metrics.elements = elements * row_a->parts;
  Partial all;
  for (const Partial& partial : RunPieces(kernels, pair, metrics.elements, options.threads)) {
    all.Add(partial);
  }
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
  // Bits of the type that both sides have, or that they were rounded to.
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
  const double most = std::max({std::fabs(metrics.a.min), std::fabs(metrics.a.max),
                                std::fabs(metrics.b.min), std::fabs(metrics.b.max)});
  if (!SquaresFit(most) || !SquaresFit(metrics.max_abs)) SumWide(pair, metrics.elements, metrics);
  return metrics;
}

DType CoarserType(DType a, DType b) {
  const TypeRow* row_a = RowOf(a);
  const TypeRow* row_b = RowOf(b);
  if (row_a == nullptr || row_b == nullptr) return a;
  const bool floating_a = Floating(row_a->type);
  const bool floating_b = Floating(row_b->type);
  if (floating_a && floating_b) return row_b->type < row_a->type ? b : a;
  return floating_b ? b : a;
}

double DefaultSmallValue(DType type) {
  const TypeRow* row = RowOf(type);
  const bool sixteen =
      row != nullptr && (row->type == block::kFloat16 || row->type == block::kBfloat16);
  return std::ldexp(1.0, sixteen ? -10 : -20);
}

double ElementValue(DType type, const uint8_t* element) {
  const TypeRow* row = RowOf(type);
  double value = 0;
  if (row != nullptr) block::kBaselineKernels.load[row->type](element, 1, &value);
  return value;
}

std::string ElementText(DType type, const uint8_t* element) {
  const TypeRow* row = RowOf(type);
  if (row == nullptr) return std::to_string(element[0]);
  if (row->type == block::kBool) return element[0] != 0 ? "true" : "false";
  if (row->type == block::kInt64 || row->type == block::kUint64) {
    uint64_t bits;
    std::memcpy(&bits, element, sizeof bits);
    return row->type == block::kUint64 ? std::to_string(bits)
                                       : std::to_string(static_cast<int64_t>(bits));
  }
  const double value = ElementValue(type, element);
  char text[40];
  snprintf(text, sizeof text, row->type == block::kFloat64 ? "%.17g" : "%.9g", value);
  return text;
}

std::string MetricsJson(const TensorMetrics& metrics) {
  using nlohmann::json;
  // JSON has no infinities.
  const auto number = [](double value) -> json {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    return value;
  };
  const auto side = [&](const SideStatistics& statistics) {
    return json{{"nan_count", statistics.nan_count}, {"inf_count", statistics.inf_count},
                {"min", number(statistics.min)},     {"max", number(statistics.max)},
                {"mean", number(statistics.mean)},   {"norm", number(statistics.norm)}};
  };
  json object{{"elements", metrics.elements},
              {"differing", metrics.differing},
              {"first_index", metrics.first_index},
              {"expected", metrics.first_a},
              {"actual", metrics.first_b},
              {"agreeing_bits", metrics.agreeing_bits},
              {"nan_mismatches", metrics.nan_mismatches},
              {"inf_mismatches", metrics.inf_mismatches},
              {"max_abs", number(metrics.max_abs)},
              {"mean_abs", number(metrics.mean_abs)},
              {"rmse", number(metrics.rmse)},
              {"max_rel", number(metrics.max_rel)},
              {"mean_rel", number(metrics.mean_rel)},
              {"max_abs_index", metrics.max_abs_index},
              {"max_abs_or_rel", number(metrics.max_abs_or_rel)},
              {"small_value", metrics.small_value},
              {"max_rel_large", number(metrics.max_rel_large)},
              {"max_abs_small", number(metrics.max_abs_small)},
              {"max_ulp", metrics.max_ulp},
              {"cosine", number(metrics.cosine)},
              {"nmse", number(metrics.nmse)},
              {"within_hundredth", metrics.within_hundredth},
              {"within_thousandth", metrics.within_thousandth},
              {"within_ten_thousandth", metrics.within_ten_thousandth},
              {"reference", side(metrics.a)},
              {"judged", side(metrics.b)}};
  if (metrics.max_ulp >= 0) {
    object["mean_ulp"] = number(metrics.mean_ulp);
    size_t used = metrics.ulp_buckets.size();
    while (used > 1 && metrics.ulp_buckets[used - 1] == 0) --used;
    object["ulp_buckets"] =
        std::vector<int64_t>(metrics.ulp_buckets.begin(), metrics.ulp_buckets.begin() + used);
  }
  return object.dump();
}

}  // namespace acltape::analyzer
