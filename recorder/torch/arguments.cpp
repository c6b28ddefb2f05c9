#include "recorder/torch/arguments.h"

#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>
#include <c10/core/impl/SizesAndStrides.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "recorder/torch/allocator.h"
#include "recorder/torch/tensor_memory.h"

namespace acltape::torch_plugin {

namespace {

using wire::ArgumentTag;

// Reads members of TensorImpl that are public only through functions which test for special tensors
// each time, or which lie in another library. With those functions encoding a tensor would take
// twice as long.
struct InsideTensor : at::TensorImpl {
  // Sizes, strides and offset are the object's own.
  static bool IsPlain(const at::TensorImpl& tensor) {
    return !(tensor.*(&InsideTensor::matches_policy))(SizesStridesPolicy::CustomStrides);
  }
  // Only the object's own code knows the sizes: symbolic shapes, nested tensors, Python subclasses.
  // Asking that code could guard on a shape that is being traced, run Python, or throw.
  static bool HidesSizes(const at::TensorImpl& tensor) {
    return (tensor.*(&InsideTensor::matches_policy))(SizesStridesPolicy::CustomSizes);
  }
  static const c10::impl::SizesAndStrides& Shape(const at::TensorImpl& tensor) {
    return tensor.*(&InsideTensor::sizes_and_strides_);
  }
  static int64_t Offset(const at::TensorImpl& tensor) {
    return tensor.*(&InsideTensor::storage_offset_);
  }
};
// This member is private; an explicit instantiation may name it all the same.
const std::unique_ptr<c10::AutogradMetaInterface>& AutogradMetaOf(const at::TensorImpl& tensor);
template <auto member>
struct AutogradMetaMember {
  friend const std::unique_ptr<c10::AutogradMetaInterface>& AutogradMetaOf(
      const at::TensorImpl& tensor) {
    return tensor.*member;
  }
};
template struct AutogradMetaMember<&at::TensorImpl::autograd_meta_>;

constexpr size_t kTensorHead = 6;  // bytes of an encoded tensor before its numbers
constexpr size_t kInlineDims = C10_SIZES_AND_STRIDES_MAX_INLINE_SIZE;

template <typename T>
std::byte* Put(std::byte* out, T value) {
  std::memcpy(out, &value, sizeof(T));
  return out + sizeof(T);
}

template <typename T>
void Append(ThreadState& state, ArgumentTag tag, T value) {
  std::byte* out = state.record.Room(1 + sizeof(T));
  state.record.Advance(Put(Put(out, tag), value));
}

void AppendTag(ThreadState& state, ArgumentTag tag) {
  state.record.Advance(Put(state.record.Room(1), tag));
}

void AppendText(ThreadState& state, ArgumentTag tag, const std::string& text) {
  std::byte* out = Put(state.record.Room(5 + text.size()), tag);
  out = Put(out, static_cast<uint32_t>(text.size()));
  std::memcpy(out, text.data(), text.size());
  state.record.Advance(out + text.size());
}

template <typename Stored, typename Range>
void AppendList(ThreadState& state, ArgumentTag tag, const Range& values) {
  const auto count = static_cast<uint32_t>(values.size());
  std::byte* out = Put(state.record.Room(5 + sizeof(Stored) * count), tag);
  out = Put(out, count);
  for (const auto& value : values) out = Put(out, static_cast<Stored>(value));
  state.record.Advance(out);
}

// Sparse CSR is a functionality of its own since libtorch 2.3. The keys of its backends then carry
// the bit of the backend, which every tensor there has.
template <typename Key, typename = void>
struct SparseCsrKeys {
  static constexpr c10::DispatchKeySet kSet{Key::SparseCsrCPU, Key::SparseCsrCUDA};
};
template <typename Key>
struct SparseCsrKeys<Key, std::void_t<decltype(Key::SparseCsr)>> {
  static constexpr c10::DispatchKeySet kSet{Key::SparseCsr};
};

constexpr c10::DispatchKeySet kOpaqueKeys =
    c10::DispatchKeySet({c10::DispatchKey::Sparse, c10::DispatchKey::MkldnnCPU}) |
    SparseCsrKeys<c10::DispatchKey>::kSet;
constexpr c10::DispatchKeySet kUnusualKeys =
    kOpaqueKeys | c10::DispatchKeySet({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative});

uint8_t UnusualFlagsOf(const at::TensorImpl* impl) {
  uint8_t flags = 0;
  if (impl->key_set().has_any(kOpaqueKeys)) flags |= wire::kTensorOpaque;
  if (impl->unsafe_storage().unsafeGetStorageImpl() == nullptr) flags |= wire::kTensorOpaque;
  if (InsideTensor::HidesSizes(*impl)) flags |= wire::kTensorOpaque;
  if (impl->is_conj()) flags |= wire::kTensorConjugate;
  if (impl->is_neg()) flags |= wire::kTensorNegative;
  return flags;
}

// The flags that do not depend on the kind of tensor.
__attribute__((always_inline)) inline uint8_t OrdinaryFlagsOf(const at::TensorImpl* impl) {
  uint8_t flags = impl->is_wrapped_number() ? wire::kTensorWrapped : 0;
  // A leaf of the autograd graph, by the fields: asking the tensor takes a lock when it is a view.
  const auto* meta = static_cast<const torch::autograd::AutogradMeta*>(AutogradMetaOf(*impl).get());
  if (meta != nullptr && meta->requires_grad_ && meta->grad_fn_ == nullptr) {
    flags |= wire::kTensorParameter;
  }
  return flags;
}

// A tensor without strides: they and the offset are written as zeros.
std::byte* WriteOpaque(c10::IntArrayRef sizes, std::byte* out) {
  out = Put(out, int64_t{0});
  for (const int64_t size : sizes) out = Put(out, size);
  for (size_t i = 0; i < sizes.size(); ++i) out = Put(out, int64_t{0});
  return out;
}

// The sizes as far as they may be asked for; none for tensors that hide them.
c10::IntArrayRef KnownSizes(const at::TensorImpl* impl) {
  return InsideTensor::HidesSizes(*impl) ? c10::IntArrayRef() : impl->sizes();
}

std::byte* WriteTensor(const at::TensorImpl* impl, uint8_t flags, uint16_t slot, std::byte* out) {
  const c10::IntArrayRef sizes = KnownSizes(impl);
  const size_t rank = sizes.size();
  const caffe2::TypeMeta type = impl->dtype();
  out = Put(out, ArgumentTag::kTensor);
  out = Put(out, static_cast<uint8_t>(c10::typeMetaToScalarType(type)));
  out = Put(out, static_cast<uint8_t>(rank));
  out = Put(out, flags);
  out = Put(out, slot);
  if ((flags & wire::kTensorOpaque) != 0) return WriteOpaque(sizes, out);
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
  std::byte* out = Put(state.record.Room(17), ArgumentTag::kComplex);
  state.record.Advance(Put(Put(out, number.real()), number.imag()));
}

void EncodeBoxedTensors(ThreadState& state, at::ArrayRef<c10::IValue> list) {
  for (const c10::IValue& element : list) {
    if (element.isTensor()) {
      Encode(state, element.toTensor());
    } else {
      EncodeNone(state);
    }
  }
}

void AppendBoxedTensors(ThreadState& state, at::ArrayRef<c10::IValue> list) {
  Append(state, ArgumentTag::kTensorList, static_cast<uint32_t>(list.size()));
  EncodeBoxedTensors(state, list);
}

bool IsListOfTensors(const c10::IValue& value) {
  if (!value.isList()) return false;
  for (const c10::IValue& element : value.toListRef()) {
    if (!element.isTensor() && !element.isNone()) return false;
  }
  return true;
}

// Collectives take lists of lists of tensors.
bool IsListOfTensorLists(const c10::IValue& value) {
  if (!value.isList()) return false;
  for (const c10::IValue& element : value.toListRef()) {
    if (!IsListOfTensors(element)) return false;
  }
  return true;
}

void AppendTensorsOfLists(ThreadState& state, at::ArrayRef<c10::IValue> lists) {
  size_t count = 0;
  for (const c10::IValue& list : lists) count += list.toListRef().size();
  Append(state, ArgumentTag::kTensorList, static_cast<uint32_t>(count));
  for (const c10::IValue& list : lists) EncodeBoxedTensors(state, list.toListRef());
}

// A list of scalars, which may be of any kind: those that are not all integers are all reals.
bool IsListOfNumbers(const c10::IValue& value) {
  if (!value.isList() || value.toListRef().empty()) return false;
  for (const c10::IValue& element : value.toListRef()) {
    if (!element.isInt() && !element.isDouble()) return false;
  }
  return true;
}

void AppendNumbers(ThreadState& state, at::ArrayRef<c10::IValue> list) {
  std::vector<int64_t> integers;
  std::vector<double> reals;
  for (const c10::IValue& element : list) {
    if (element.isInt()) integers.push_back(element.toInt());
    reals.push_back(element.isInt() ? static_cast<double>(element.toInt()) : element.toDouble());
  }
  if (integers.size() == list.size()) {
    AppendList<int64_t>(state, ArgumentTag::kIntList, integers);
  } else {
    AppendList<double>(state, ArgumentTag::kRealList, reals);
  }
}

}  // namespace

ACLTAPE_HOT void EncodeNone(ThreadState& state) { AppendTag(state, ArgumentTag::kNone); }

// Any tensor.
__attribute__((cold, noinline)) void EncodeUnusual(ThreadState& state, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    AppendTag(state, ArgumentTag::kUndefinedTensor);
    return;
  }
  const at::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  const c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  BufferHeader* header = storage != nullptr ? HeaderOf(storage) : nullptr;
  if (header != nullptr && header->told.load(std::memory_order_relaxed) == 0) {
    RecordFirstUse(state.tape, *header);
  }
  const auto slot = static_cast<uint16_t>(state.slots.size());
  state.slots.Push(header != nullptr ? header->buffer_id : 0);
  if (state.keep_tensors && !InsideTensor::HidesSizes(*impl)) {
    state.tensors.Push({&tensor, state.position});
  }
  uint8_t flags = OrdinaryFlagsOf(impl) | UnusualFlagsOf(impl);
  const std::string memory =
      UnknownMemory(*impl, header != nullptr, (flags & wire::kTensorOpaque) != 0);
  NotePlace(state, *impl, memory);
  if (!memory.empty()) flags |= wire::kTensorMemory;
  const auto rank = static_cast<int64_t>(KnownSizes(impl).size());
  const size_t name = std::min<size_t>(memory.size(), UINT8_MAX);
  std::byte* out = state.record.Room(TensorEncodingBytes(rank) + 1 + name);
  out = WriteTensor(impl, flags, slot, out);
  if (!memory.empty()) {
    out = Put(out, static_cast<uint8_t>(name));
    std::memcpy(out, memory.data(), name);
    out += name;
  }
  state.record.Advance(out);
}

// Writes a tensor whose shape lies inside the object: kInlineDims sizes and as many strides, of
// which `rank` are in use. All of them are copied: a loop has an end, which the processor would
// have to guess. There is room for it.
__attribute__((always_inline)) inline void WriteOrdinary(ThreadState& state,
                                                         const at::TensorImpl* impl, size_t rank,
                                                         uint64_t buffer_id) {
  const c10::impl::SizesAndStrides& shape = InsideTensor::Shape(*impl);
  const int64_t* sizes = shape.sizes_data();
  const int64_t* strides = shape.strides_data();
  const auto slot = static_cast<uint16_t>(state.slots.size());
  state.slots.Push(buffer_id);
  std::byte* out = state.record.end();
  const caffe2::TypeMeta type = impl->dtype();
  const uint64_t flags = OrdinaryFlagsOf(impl);
  Put(out, static_cast<uint64_t>(ArgumentTag::kTensor) |
               static_cast<uint64_t>(c10::typeMetaToScalarType(type)) << 8 | rank << 16 |
               flags << 24 | static_cast<uint64_t>(slot) << 32);
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bytes of the head in this order");
  out += kTensorHead;
  int64_t offset = InsideTensor::Offset(*impl);
  if (offset != 0) offset *= static_cast<int64_t>(type.itemsize());
  Put(out, offset);
  out += sizeof(offset);
  std::memcpy(out, sizes, 8 * kInlineDims);
  std::memcpy(out + 8 * rank, strides, 8 * kInlineDims);
  state.record.Advance(out + 16 * rank);
}

__attribute__((always_inline)) inline bool HasOrdinaryShape(ThreadState& state,
                                                            const at::TensorImpl* impl,
                                                            size_t rank) {
  return rank <= kInlineDims && InsideTensor::IsPlain(*impl) &&
         (impl->key_set() & kUnusualKeys).empty() && state.slots.HasRoom(1) &&
         state.record.HasRoom(TensorEncodingBytes(kInlineDims));
}

// A tensor of a device or of foreign memory, or one that the payload policy wants to see.
ACLTAPE_HOT __attribute__((noinline)) void EncodeSeen(ThreadState& state,
                                                      const at::Tensor& tensor) {
  const at::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  const c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  const size_t rank = InsideTensor::Shape(*impl).size();
  const c10::Device device = DeviceOfTensor(*impl);
  const bool on_device = device.type() == c10::DeviceType::PrivateUse1;
  if (__builtin_expect(storage == nullptr || (!on_device && !device.is_cpu()) ||
                           !HasOrdinaryShape(state, impl, rank),
                       0)) {
    return EncodeUnusual(state, tensor);
  }
  BufferHeader* header = HeaderOf(storage);
  if (__builtin_expect(header == nullptr, 0)) return EncodeUnusual(state, tensor);
  if (header->told.load(std::memory_order_relaxed) == 0) RecordFirstUse(state.tape, *header);
  if (state.keep_tensors) state.tensors.Push({&tensor, state.position});
  if (on_device) NoteDevice(state, device);
  WriteOrdinary(state, impl, rank, header->buffer_id);
}

// Nearly all tensors of the host are strided, have a block of ours and a shape that lies inside the
// object. No function is called for them, so that no register is saved.
ACLTAPE_HOT void Encode(ThreadState& state, const at::Tensor& tensor) {
  const at::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  const c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  // The undefined tensor has no storage.
  if (__builtin_expect(storage == nullptr, 0)) return EncodeUnusual(state, tensor);
  const c10::DataPtr& data = storage->data_ptr();
  const size_t rank = InsideTensor::Shape(*impl).size();
  if (__builtin_expect(
          data.get_deleter() != &ReleaseBlock || data.get() == nullptr ||
              HeaderBefore(data.get_context())->told.load(std::memory_order_relaxed) == 0 ||
              state.keep_tensors || !HasOrdinaryShape(state, impl, rank),
          0)) {
    return EncodeSeen(state, tensor);
  }
  WriteOrdinary(state, impl, rank, HeaderBefore(data.get_context())->buffer_id);
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
  std::byte* out = Put(state.record.Room(5 + 8 * count), ArgumentTag::kIntList);
  out = Put(out, static_cast<uint32_t>(count));
  for (const c10::SymInt& value : values) {
    if (__builtin_expect(value.is_symbolic(), 0)) {
      AppendText(state, ArgumentTag::kOther, "GenericList");
      return;
    }
    out = Put(out, value.as_int_unchecked());
  }
  state.record.Advance(out);
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
  NoteDevice(state, value);
  AppendText(state, ArgumentTag::kDevice, value.str());
}

void Encode(ThreadState& state, c10::string_view value) {
  AppendText(state, ArgumentTag::kText, std::string(value.data(), value.size()));
}

void Encode(ThreadState& state, const at::Generator&) {
  AppendText(state, ArgumentTag::kOther, "Generator");
}

std::byte* EncodeTensor(const at::Tensor& tensor, uint16_t slot, std::byte* out) {
  const at::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  return WriteTensor(impl, OrdinaryFlagsOf(impl) | UnusualFlagsOf(impl), slot, out);
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
  } else if (IsListOfTensorLists(value)) {
    AppendTensorsOfLists(state, value.toListRef());
  } else if (value.isDoubleList()) {
    Encode(state, at::ArrayRef<double>(value.toDoubleVector()));
  } else if (value.isBoolList()) {
    AppendList<uint8_t>(state, ArgumentTag::kBoolList, value.toBoolList());
  } else if (IsListOfNumbers(value)) {
    AppendNumbers(state, value.toListRef());
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
