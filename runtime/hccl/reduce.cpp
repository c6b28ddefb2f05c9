#include "runtime/hccl/reduce.h"

#include <type_traits>

#include "runtime/device/short_floats.h"
#include "runtime/hccl/half.h"

namespace acltape::hccl {
namespace {

using device::Bfloat16;

template <typename T>
struct Wide {
  using Type = T;
};
template <>
struct Wide<Half> {
  using Type = float;
};
template <>
struct Wide<Bfloat16> {
  using Type = float;
};
// Signed integers that are too large wrap, which C++ defines for unsigned ones.
template <typename T>
requires std::is_integral_v<T>
struct Wide<T> {
  using Type = std::make_unsigned_t<decltype(T{} + T{})>;
};

struct Sum {
  template <typename T>
  static T Of(T a, T b) {
    using W = typename Wide<T>::Type;
    return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
  }
};
struct Product {
  template <typename T>
  static T Of(T a, T b) {
    using W = typename Wide<T>::Type;
    return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
  }
};
template <bool kGreater>
struct Extreme {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return kGreater == (a > b) ? a : b;
    } else {
      const auto first = static_cast<typename Wide<T>::Type>(a);
      const auto second = static_cast<typename Wide<T>::Type>(b);
      const bool take_first = first != first || (kGreater ? first > second : first < second);
      return take_first ? a : b;
    }
  }
};

template <typename T, typename Op>
void Run(void* to, const void* first, const void* second, uint64_t count) {
  auto* out = static_cast<T*>(to);
  const auto* a = static_cast<const T*>(first);
  const auto* b = static_cast<const T*>(second);
  // Each element depends on those of its own index alone, also when `to` is one of the others.
#pragma GCC ivdep
  for (uint64_t i = 0; i < count; ++i) out[i] = Op::template Of<T>(a[i], b[i]);
}

using Function = void (*)(void*, const void*, const void*, uint64_t);
struct Row {
  HcclDataType dtype;
  Function by_op[HCCL_REDUCE_RESERVED];
};
template <typename T>
constexpr Row Of(HcclDataType dtype) {
  return {dtype, {Run<T, Sum>, Run<T, Product>, Run<T, Extreme<true>>, Run<T, Extreme<false>>}};
}

constexpr Row kRows[] = {
    Of<int8_t>(HCCL_DATA_TYPE_INT8),     Of<int16_t>(HCCL_DATA_TYPE_INT16),
    Of<int32_t>(HCCL_DATA_TYPE_INT32),   Of<int64_t>(HCCL_DATA_TYPE_INT64),
    Of<uint8_t>(HCCL_DATA_TYPE_UINT8),   Of<uint16_t>(HCCL_DATA_TYPE_UINT16),
    Of<uint32_t>(HCCL_DATA_TYPE_UINT32), Of<uint64_t>(HCCL_DATA_TYPE_UINT64),
    Of<Half>(HCCL_DATA_TYPE_FP16),       Of<Bfloat16>(HCCL_DATA_TYPE_BFP16),
    Of<float>(HCCL_DATA_TYPE_FP32),      Of<double>(HCCL_DATA_TYPE_FP64),
};

const Row* Find(HcclDataType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

}  // namespace

bool Reducible(HcclDataType dtype) { return Find(dtype) != nullptr; }

void Reduce(HcclDataType dtype, HcclReduceOp op, void* to, const void* first, const void* second,
            uint64_t count) {
  if (count != 0) Find(dtype)->by_op[op](to, first, second, count);
}

}  // namespace acltape::hccl
