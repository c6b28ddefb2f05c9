#include "recorder/torch/arguments.h"

#include <torch/csrc/autograd/variable.h>

#include <cstring>

#include "recorder/torch/allocator.h"

namespace acltape::torch_plugin {

namespace {

using wire::ArgumentTag;

template <typename T>
std::byte* Put(std::byte* out, T value) {
  std::memcpy(out, &value, sizeof(T));
  return out + sizeof(T);
}

template <typename T>
void Append(ThreadState& state, ArgumentTag tag, T value) {
  std::byte* out = state.signature.Room(1 + sizeof(T));
  state.signature.Advance(Put(Put(out, tag), value));
}

void AppendTag(ThreadState& state, ArgumentTag tag) {
  state.signature.Advance(Put(state.signature.Room(1), tag));
}

void AppendText(ThreadState& state, ArgumentTag tag, const std::string& text) {
  std::byte* out = Put(state.signature.Room(5 + text.size()), tag);
  out = Put(out, static_cast<uint32_t>(text.size()));
  std::memcpy(out, text.data(), text.size());
  state.signature.Advance(out + text.size());
}

template <typename Stored, typename Range>
void AppendList(ThreadState& state, ArgumentTag tag, const Range& values) {
  const auto count = static_cast<uint32_t>(values.size());
  std::byte* out = Put(state.signature.Room(5 + sizeof(Stored) * count), tag);
  out = Put(out, count);
  for (const auto& value : values) out = Put(out, static_cast<Stored>(value));
  state.signature.Advance(out);
}

constexpr c10::DispatchKeySet kOpaqueKeys =
    c10::DispatchKeySet({c10::DispatchKey::Sparse, c10::DispatchKey::SparseCsrCPU,
                         c10::DispatchKey::SparseCsrCUDA, c10::DispatchKey::MkldnnCPU});
constexpr c10::DispatchKeySet kUnusualKeys =
    kOpaqueKeys | c10::DispatchKeySet({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative});

__attribute__((cold, noinline)) uint8_t UnusualFlagsOf(const at::TensorImpl* impl) {
  uint8_t flags = 0;
  if (impl->key_set().has_any(kOpaqueKeys)) flags |= wire::kTensorOpaque;
  if (impl->is_conj()) flags |= wire::kTensorConjugate;
  if (impl->is_neg()) flags |= wire::kTensorNegative;
  return flags;
}

inline uint8_t FlagsOf(const at::TensorImpl* impl) {
  uint8_t flags = 0;
  if (__builtin_expect(!(impl->key_set() & kUnusualKeys).empty(), 0)) {
    flags |= UnusualFlagsOf(impl);
  }
  if (__builtin_expect(impl->unsafe_storage().unsafeGetStorageImpl() == nullptr, 0)) {
    flags |= wire::kTensorOpaque;
  }
  if (impl->is_wrapped_number()) flags |= wire::kTensorWrapped;
  // A leaf of the autograd graph, by the fields: asking the tensor takes a lock when it is a view.
  const auto* meta = static_cast<const torch::autograd::AutogradMeta*>(impl->autograd_meta());
  if (meta != nullptr && meta->requires_grad_ && meta->grad_fn_ == nullptr) {
    flags |= wire::kTensorParameter;
  }
  return flags;
}

// A tensor without strides: they and the offset are written as zeros.
__attribute__((cold, noinline)) std::byte* WriteOpaque(c10::IntArrayRef sizes, std::byte* out) {
  out = Put(out, int64_t{0});
  for (const int64_t size : sizes) out = Put(out, size);
  for (size_t i = 0; i < sizes.size(); ++i) out = Put(out, int64_t{0});
  return out;
}

__attribute__((always_inline)) inline std::byte* WriteTensor(const at::TensorImpl* impl,
                                                             uint16_t slot, std::byte* out) {
  const uint8_t flags = FlagsOf(impl);
  const c10::IntArrayRef sizes = impl->sizes();
  const size_t rank = sizes.size();
  const caffe2::TypeMeta type = impl->dtype();
  out = Put(out, ArgumentTag::kTensor);
  out = Put(out, static_cast<uint8_t>(c10::typeMetaToScalarType(type)));
  out = Put(out, static_cast<uint8_t>(rank));
  out = Put(out, flags);
  out = Put(out, slot);
  if (__builtin_expect((flags & wire::kTensorOpaque) != 0, 0)) return WriteOpaque(sizes, out);
  int64_t offset = impl->storage_offset();
  if (offset != 0) offset *= static_cast<int64_t>(type.itemsize());
  out = Put(out, offset);
  const int64_t* strides = impl->strides().data();
  for (size_t i = 0; i < rank; ++i) {
    Put(out + 8 * i, sizes[i]);
    Put(out + 8 * (rank + i), strides[i]);
  }
  return out + 16 * rank;
}

void AppendNumber(ThreadState& state, int64_t number, NumberMeaning meaning) {
  switch (meaning) {
    case NumberMeaning::kDtype:
      Encode(state, static_cast<at::ScalarType>(number));
      break;
    case NumberMeaning::kLayout:
      Encode(state, static_cast<at::Layout>(number));
      break;
    case NumberMeaning::kMemoryFormat:
      Encode(state, static_cast<at::MemoryFormat>(number));
      break;
    case NumberMeaning::kPlain:
      Encode(state, number);
      break;
  }
}

void AppendComplex(ThreadState& state, c10::complex<double> number) {
  std::byte* out = Put(state.signature.Room(17), ArgumentTag::kComplex);
  state.signature.Advance(Put(Put(out, number.real()), number.imag()));
}

void AppendBoxedTensors(ThreadState& state, at::ArrayRef<c10::IValue> list) {
  Append(state, ArgumentTag::kTensorList, static_cast<uint32_t>(list.size()));
  for (const c10::IValue& element : list) {
    if (element.isTensor()) {
      Encode(state, element.toTensor());
    } else {
      EncodeNone(state);
    }
  }
}

bool IsListOfTensors(const c10::IValue& value) {
  if (!value.isList()) return false;
  for (const c10::IValue& element : value.toListRef()) {
    if (!element.isTensor() && !element.isNone()) return false;
  }
  return true;
}

}  // namespace

ACLTAPE_HOT void EncodeNone(ThreadState& state) { AppendTag(state, ArgumentTag::kNone); }

ACLTAPE_HOT void Encode(ThreadState& state, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    AppendTag(state, ArgumentTag::kUndefinedTensor);
    return;
  }
  const at::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  const c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  const BufferHeader* header = storage != nullptr ? HeaderOf(storage) : nullptr;
  const auto slot = static_cast<uint16_t>(state.slots.size());
  state.slots.Push(header != nullptr ? header->buffer_id : 0);
  if (__builtin_expect(state.keep_tensors, 0)) state.tensors.Push({&tensor, state.position});
  std::byte* out = state.signature.Room(TensorEncodingBytes(impl->dim()));
  state.signature.Advance(WriteTensor(impl, slot, out));
}

void Encode(ThreadState& state, at::TensorList tensors) {
  Append(state, ArgumentTag::kTensorList, static_cast<uint32_t>(tensors.size()));
  for (const at::Tensor& tensor : tensors) Encode(state, tensor);
}

void Encode(ThreadState& state, const at::ITensorListRef& tensors) {
  Append(state, ArgumentTag::kTensorList, static_cast<uint32_t>(tensors.size()));
  for (const at::Tensor& tensor : tensors) Encode(state, tensor);
}

void Encode(ThreadState& state, const std::vector<at::Tensor>& tensors) {
  Encode(state, at::TensorList(tensors));
}

void Encode(ThreadState& state, const c10::List<c10::optional<at::Tensor>>& tensors) {
  // Boxed, the same list gives references to its elements; by itself it gives copies.
  AppendBoxedTensors(state, c10::IValue(tensors).toListRef());
}

ACLTAPE_HOT void Encode(ThreadState& state, const at::Scalar& number) {
  if (number.isFloatingPoint()) {
    Encode(state, number.toDouble());
  } else if (number.isComplex()) {
    AppendComplex(state, number.toComplexDouble());
  } else if (number.isBoolean()) {
    Encode(state, number.toBool());
  } else {
    Encode(state, number.toLong());
  }
}

ACLTAPE_HOT void Encode(ThreadState& state, bool value) {
  if (value && state.position < 64) state.true_arguments |= uint64_t{1} << state.position;
  Append(state, ArgumentTag::kBool, static_cast<uint8_t>(value));
}

ACLTAPE_HOT void Encode(ThreadState& state, int64_t value) {
  Append(state, ArgumentTag::kInt, value);
}

ACLTAPE_HOT void Encode(ThreadState& state, double value) {
  Append(state, ArgumentTag::kReal, value);
}

void Encode(ThreadState& state, const c10::SymInt& value) {
  if (value.is_symbolic()) {
    AppendText(state, ArgumentTag::kOther, "SymInt");
  } else {
    Encode(state, value.as_int_unchecked());
  }
}

ACLTAPE_HOT void Encode(ThreadState& state, at::IntArrayRef values) {
  AppendList<int64_t>(state, ArgumentTag::kIntList, values);
}

ACLTAPE_HOT void Encode(ThreadState& state, c10::SymIntArrayRef values) {
  const size_t count = values.size();
  std::byte* out = Put(state.signature.Room(5 + 8 * count), ArgumentTag::kIntList);
  out = Put(out, static_cast<uint32_t>(count));
  for (const c10::SymInt& value : values) {
    if (__builtin_expect(value.is_symbolic(), 0)) {
      AppendText(state, ArgumentTag::kOther, "GenericList");
      return;
    }
    out = Put(out, value.as_int_unchecked());
  }
  state.signature.Advance(out);
}

void Encode(ThreadState& state, at::ArrayRef<double> values) {
  AppendList<double>(state, ArgumentTag::kRealList, values);
}

void Encode(ThreadState& state, at::ArrayRef<bool> values) {
  AppendList<uint8_t>(state, ArgumentTag::kBoolList, values);
}

void Encode(ThreadState& state, at::ScalarType value) {
  Append(state, ArgumentTag::kDtype, static_cast<uint8_t>(value));
}

void Encode(ThreadState& state, at::Layout value) {
  Append(state, ArgumentTag::kLayout, static_cast<int64_t>(value));
}

void Encode(ThreadState& state, at::MemoryFormat value) {
  Append(state, ArgumentTag::kMemoryFormat, static_cast<int64_t>(value));
}

void Encode(ThreadState& state, at::Device value) {
  AppendText(state, ArgumentTag::kDevice, value.str());
}

void Encode(ThreadState& state, c10::string_view value) {
  AppendText(state, ArgumentTag::kText, std::string(value.data(), value.size()));
}

void Encode(ThreadState& state, const at::Generator&) {
  AppendText(state, ArgumentTag::kOther, "Generator");
}

std::byte* EncodeTensor(const at::Tensor& tensor, uint16_t slot, std::byte* out) {
  return WriteTensor(tensor.unsafeGetTensorImpl(), slot, out);
}

void EncodeValue(ThreadState& state, const c10::IValue& value, NumberMeaning meaning) {
  if (value.isTensor()) {
    Encode(state, value.toTensor());
  } else if (value.isNone()) {
    EncodeNone(state);
  } else if (value.isInt()) {
    AppendNumber(state, value.toInt(), meaning);
  } else if (value.isDouble()) {
    Encode(state, value.toDouble());
  } else if (value.isBool()) {
    Encode(state, value.toBool());
  } else if (value.isIntList()) {
    Encode(state, at::IntArrayRef(value.toIntVector()));
  } else if (value.isTensorList() || IsListOfTensors(value)) {
    AppendBoxedTensors(state, value.toListRef());
  } else if (value.isDoubleList()) {
    Encode(state, at::ArrayRef<double>(value.toDoubleVector()));
  } else if (value.isBoolList()) {
    AppendList<uint8_t>(state, ArgumentTag::kBoolList, value.toBoolList());
  } else if (value.isString()) {
    AppendText(state, ArgumentTag::kText, value.toStringRef());
  } else if (value.isDevice()) {
    Encode(state, value.toDevice());
  } else if (value.isComplexDouble()) {
    AppendComplex(state, value.toComplexDouble());
  } else {
    AppendText(state, ArgumentTag::kOther, value.tagKind());
  }
}

}  // namespace acltape::torch_plugin
