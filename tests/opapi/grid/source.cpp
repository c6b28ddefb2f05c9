#include "tests/opapi/grid/source.h"

#include <ATen/MemoryOverlap.h>

#include <cmath>
#include <limits>

namespace acltape::opapi::grid {

Source::Source(uint64_t seed, double low, double high)
    : generator_(at::detail::createCPUGenerator(seed)), low_(low), high_(high) {}

Tensor Source::Random(at::IntArrayRef sizes, at::ScalarType dtype) {
  return Random(sizes, dtype, low_, high_);
}

Tensor Source::Random(at::IntArrayRef sizes, at::ScalarType dtype, double low, double high) {
  const Tensor values = at::empty(sizes, at::kDouble).uniform_(low, high, generator_);
  if (dtype == at::kBool) return values.gt((low + high) / 2);
  // Negative values of unsigned dtypes would be undefined.
  return dtype == at::kByte ? values.abs().to(dtype) : values.to(dtype);
}

Tensor Source::Indices(at::IntArrayRef sizes, int64_t bound, at::ScalarType dtype) {
  return Random(sizes, at::kDouble, 0, static_cast<double>(bound)).floor().to(dtype);
}

Tensor Source::Shuffled(int64_t count) {
  return std::get<1>(at::sort(at::empty({count}, at::kDouble).uniform_(0, 1, generator_)));
}

Tensor Source::Specials(at::ScalarType dtype) const {
  if (dtype == at::kBool) return at::tensor({int64_t{1}, int64_t{0}}, at::kLong).to(at::kBool);
  if (!at::isFloatingType(dtype)) {
    const int64_t top = dtype == at::kByte    ? 255
                        : dtype == at::kChar  ? 127
                        : dtype == at::kShort ? 32767
                                              : std::numeric_limits<int32_t>::max();
    const int64_t bottom = dtype == at::kByte ? 0 : -top - 1;
    return at::tensor({int64_t{0}, int64_t{1}, top, bottom, top - 1}, at::kLong).to(dtype);
  }
  const double inf = std::numeric_limits<double>::infinity();
  const double top = dtype == at::kHalf ? 65504 : std::numeric_limits<float>::max() / 2;
  return at::tensor({NAN, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, top, -top, 6e-5, 1e-7, -3.5},
                    at::kDouble)
      .to(dtype);
}

Tensors Source::Views(at::ScalarType dtype) {
  return {
      Random({}, dtype),
      Random({3, 0, 2}, dtype),
      Random({37}, dtype),
      Random({5, 7, 9}, dtype),
      Random({48, 131}, dtype),
      Random({11, 13}, dtype).t(),
      Random({12, 40}, dtype).slice(0, 1, 12, 3).slice(1, 5, 39, 2),
      Random({1, 9}, dtype).expand({4, 9}),
      Random({2, 3, 4, 5}, dtype).permute({0, 2, 3, 1}),
      Random({64}, dtype).slice(0, 3, 36),
      Specials(dtype),
  };
}

bool Source::IsExpanded(const Tensor& view) {
  return at::has_internal_overlap(view) == at::MemOverlap::Yes;
}

Tensors Source::Matrices(at::ScalarType dtype) {
  return {
      Random({3, 0}, dtype),
      Random({1, 1}, dtype),
      Random({5, 8}, dtype),
      Random({3, 6, 10}, dtype),
      Random({40, 66}, dtype),
      Random({12, 14}, dtype).t(),
      Random({12, 40}, dtype).slice(0, 1, 12, 3).slice(1, 4, 40, 2),
      Random({2, 6, 4, 8}, dtype).permute({0, 2, 3, 1}),
  };
}

std::vector<Source::Pair> Source::Pairs(at::ScalarType a, at::ScalarType b) {
  const Tensor left = Specials(a), right = Specials(b);
  return {
      {Random({}, a), Random({}, b)},
      {Random({}, a), Random({4, 3}, b)},
      {Random({4, 3}, a), Random({}, b)},
      {Random({3, 0, 2}, a), Random({1, 1, 2}, b)},
      {Random({37}, a), Random({37}, b)},
      {Random({5, 7, 9}, a), Random({9}, b)},
      {Random({5, 1, 9}, a), Random({7, 1}, b)},
      {Random({41, 67}, a), Random({41, 67}, b)},
      {Random({11, 13}, a).t(), Random({13, 11}, b)},
      {Random({12, 40}, a).slice(0, 1, 12, 3).slice(1, 5, 39, 2), Random({17}, b).expand({4, 17})},
      {Random({2, 3, 4, 5}, a).permute({0, 2, 3, 1}), Random({2, 4, 5, 3}, b)},
      {left.reshape({-1, 1}), right.reshape({1, -1})},
  };
}

}  // namespace acltape::opapi::grid
