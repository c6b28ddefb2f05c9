// Encodes the arguments and returns of a leaf as signature bytes and slots
// (recorder/wire/records.h).
//
// The overloads of Encode take what an operator's C++ signature has; EncodeValue takes the same
// values boxed. Both write the same bytes for the same call.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/util/OptionalArrayRef.h>

#include <array>
#include <tuple>
#include <type_traits>
#include <utility>

#include "recorder/torch/op_info.h"
#include "recorder/torch/thread_state.h"

namespace c10 {
struct IValue;
template <class T>
class List;
template <typename T>
class IListRef;
}  // namespace c10
namespace at {
using ITensorListRef = c10::IListRef<at::Tensor>;
}

namespace acltape::torch_plugin {

// Appends one boxed value; tensors take the next slots.
void EncodeValue(ThreadState& state, const c10::IValue& value, NumberMeaning meaning);

void EncodeNone(ThreadState& state);
void Encode(ThreadState& state, const at::Tensor& tensor);
void Encode(ThreadState& state, at::TensorList tensors);
void Encode(ThreadState& state, const at::ITensorListRef& tensors);
void Encode(ThreadState& state, const c10::List<c10::optional<at::Tensor>>& tensors);
void Encode(ThreadState& state, const std::vector<at::Tensor>& tensors);
void Encode(ThreadState& state, const at::Scalar& number);
void Encode(ThreadState& state, bool value);
void Encode(ThreadState& state, int64_t value);
void Encode(ThreadState& state, double value);
void Encode(ThreadState& state, const c10::SymInt& value);
void Encode(ThreadState& state, at::IntArrayRef values);
void Encode(ThreadState& state, c10::SymIntArrayRef values);
void Encode(ThreadState& state, at::ArrayRef<double> values);
void Encode(ThreadState& state, at::ArrayRef<bool> values);
void Encode(ThreadState& state, at::ScalarType value);
void Encode(ThreadState& state, at::Layout value);
void Encode(ThreadState& state, at::MemoryFormat value);
void Encode(ThreadState& state, at::Device value);
void Encode(ThreadState& state, c10::string_view value);
void Encode(ThreadState& state, const at::Generator& value);

template <size_t N>
void Encode(ThreadState& state, const std::array<bool, N>& values) {
  Encode(state, at::ArrayRef<bool>(values.data(), N));
}
template <typename T>
void Encode(ThreadState& state, const c10::optional<T>& value) {
  value.has_value() ? Encode(state, *value) : EncodeNone(state);
}
template <typename T>
void Encode(ThreadState& state, const c10::OptionalArrayRef<T>& value) {
  value.has_value() ? Encode(state, *value) : EncodeNone(state);
}

// Appends what an operator's C++ function of return type R returned. References are left out: they
// are to arguments that the operator has written.
template <typename R>
struct ReturnEncoder {
  static void Run(ThreadState& state, const R& value) {
    if constexpr (!std::is_reference_v<R>) Encode(state, value);
    ++state.position;
  }
};
template <typename... T>
struct ReturnEncoder<std::tuple<T...>> {
  template <size_t... I>
  static void Each(ThreadState& state, const std::tuple<T...>& values, std::index_sequence<I...>) {
    (ReturnEncoder<T>::Run(state, std::get<I>(values)), ...);
  }
  static void Run(ThreadState& state, const std::tuple<T...>& values) {
    Each(state, values, std::index_sequence_for<T...>());
  }
};
template <typename R>
void EncodeReturn(ThreadState& state, const R& value) {
  ReturnEncoder<R>::Run(state, value);
}

// Writes the encoding of a tensor, kTensor tag included, to `out`; returns its end. `out` has room
// for TensorEncodingBytes.
std::byte* EncodeTensor(const at::Tensor& tensor, uint16_t slot, std::byte* out);
inline size_t TensorEncodingBytes(int64_t rank) { return 14 + 16 * static_cast<size_t>(rank); }

}  // namespace acltape::torch_plugin
