#include "recorder/torch/arguments.h"

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

// Room for `bytes` more signature bytes.
std::byte* Grow(ThreadState& state, size_t bytes) {
  const size_t used = state.signature.size();
  state.signature.resize(used + bytes);
  return state.signature.data() + used;
}

template <typename T>
void Append(ThreadState& state, ArgumentTag tag, T value) {
  std::byte* out = Put(Grow(state, 1 + sizeof(T)), tag);
  Put(out, value);
}

void AppendTag(ThreadState& state, ArgumentTag tag) { Put(Grow(state, 1), tag); }

void AppendText(ThreadState& state, ArgumentTag tag, const std::string& text) {
  std::byte* out = Put(Grow(state, 5 + text.size()), tag);
  out = Put(out, static_cast<uint32_t>(text.size()));
  std::memcpy(out, text.data(), text.size());
}

template <typename Stored, typename Range>
void AppendList(ThreadState& state, ArgumentTag tag, const Range& values) {
  const auto count = static_cast<uint32_t>(values.size());
  std::byte* out = Put(Grow(state, 5 + sizeof(Stored) * count), tag);
  out = Put(out, count);
  for (const auto& value : values) out = Put(out, static_cast<Stored>(value));
}

uint8_t FlagsOf(const at::Tensor& tensor) {
  uint8_t flags = 0;
  const at::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (impl->layout() != at::kStrided || !impl->has_storage()) flags |= wire::kTensorOpaque;
  if (impl->is_conj()) flags |= wire::kTensorConjugate;
  if (impl->is_neg()) flags |= wire::kTensorNegative;
  if (impl->is_wrapped_number()) flags |= wire::kTensorWrapped;
  if (impl->requires_grad() && tensor.is_leaf()) flags |= wire::kTensorParameter;
  return flags;
}

void AppendTensor(ThreadState& state, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    AppendTag(state, ArgumentTag::kUndefinedTensor);
    return;
  }
  const auto slot = static_cast<uint16_t>(state.slots.size());
  const BufferHeader* header =
      tensor.has_storage() ? HeaderOf(tensor.storage().unsafeGetStorageImpl()) : nullptr;
  state.slots.push_back(header != nullptr ? header->buffer_id : 0);
  EncodeTensor(tensor, slot, Grow(state, TensorEncodingBytes(tensor.dim())));
}

void AppendTensors(ThreadState& state, const c10::List<c10::IValue>& list) {
  std::byte* out = Put(Grow(state, 5), ArgumentTag::kTensorList);
  Put(out, static_cast<uint32_t>(list.size()));
  for (const c10::IValue& element : list) {
    if (element.isTensor()) {
      AppendTensor(state, element.toTensor());
    } else {
      AppendTag(state, ArgumentTag::kNone);
    }
  }
}

void AppendNumber(ThreadState& state, int64_t number, NumberMeaning meaning) {
  switch (meaning) {
    case NumberMeaning::kDtype:
      Append(state, ArgumentTag::kDtype, static_cast<uint8_t>(number));
      break;
    case NumberMeaning::kLayout:
      Append(state, ArgumentTag::kLayout, number);
      break;
    case NumberMeaning::kMemoryFormat:
      Append(state, ArgumentTag::kMemoryFormat, number);
      break;
    case NumberMeaning::kPlain:
      Append(state, ArgumentTag::kInt, number);
      break;
  }
}

bool IsListOfTensors(const c10::IValue& value) {
  if (!value.isList()) return false;
  const auto list = value.toList();
  for (const c10::IValue& element : list) {
    if (!element.isTensor() && !element.isNone()) return false;
  }
  return true;
}

}  // namespace

std::byte* EncodeTensor(const at::Tensor& tensor, uint16_t slot, std::byte* out) {
  const uint8_t flags = FlagsOf(tensor);
  const auto rank = static_cast<uint8_t>(tensor.dim());
  const auto item = static_cast<int64_t>(tensor.itemsize());
  const bool opaque = (flags & wire::kTensorOpaque) != 0;
  out = Put(out, ArgumentTag::kTensor);
  out = Put(out, static_cast<uint8_t>(tensor.scalar_type()));
  out = Put(out, rank);
  out = Put(out, flags);
  out = Put(out, slot);
  out = Put(out, opaque ? int64_t{0} : tensor.storage_offset() * item);
  std::memcpy(out, tensor.sizes().data(), 8 * size_t{rank});
  out += 8 * size_t{rank};
  if (opaque) {
    std::memset(out, 0, 8 * size_t{rank});
  } else {
    std::memcpy(out, tensor.strides().data(), 8 * size_t{rank});
  }
  return out + 8 * size_t{rank};
}

void EncodeValue(ThreadState& state, const c10::IValue& value, NumberMeaning meaning) {
  if (value.isTensor()) {
    AppendTensor(state, value.toTensor());
  } else if (value.isNone()) {
    AppendTag(state, ArgumentTag::kNone);
  } else if (value.isInt()) {
    AppendNumber(state, value.toInt(), meaning);
  } else if (value.isDouble()) {
    Append(state, ArgumentTag::kReal, value.toDouble());
  } else if (value.isBool()) {
    Append(state, ArgumentTag::kBool, static_cast<uint8_t>(value.toBool()));
  } else if (value.isIntList()) {
    AppendList<int64_t>(state, ArgumentTag::kIntList, value.toIntVector());
  } else if (value.isTensorList() || IsListOfTensors(value)) {
    AppendTensors(state, value.toList());
  } else if (value.isDoubleList()) {
    AppendList<double>(state, ArgumentTag::kRealList, value.toDoubleVector());
  } else if (value.isBoolList()) {
    AppendList<uint8_t>(state, ArgumentTag::kBoolList, value.toBoolList());
  } else if (value.isString()) {
    AppendText(state, ArgumentTag::kText, value.toStringRef());
  } else if (value.isDevice()) {
    AppendText(state, ArgumentTag::kDevice, value.toDevice().str());
  } else if (value.isComplexDouble()) {
    const auto number = value.toComplexDouble();
    std::byte* out = Put(Grow(state, 17), ArgumentTag::kComplex);
    Put(Put(out, number.real()), number.imag());
  } else {
    AppendText(state, ArgumentTag::kOther, value.tagKind());
  }
}

}  // namespace acltape::torch_plugin
