#include "recorder/acl/objects.h"

#include <stdlib.h>
#include <string.h>

#include "acl/invoke/blocked_layout.h"
#include "aclnn/acl_meta.h"
#include "recorder/acl/memory.h"
#include "recorder/acl/thread.h"
#include "recorder/agent/memory.h"
#include "recorder/agent/pointer_map.h"
#include "recorder/wire/records.h"

namespace acltape::acl_agent {

namespace {

using wire::ArgumentTag;
using wire::DType;

constexpr uint32_t kMaxRank = 64;

struct ElementType {
  DType dtype;
  uint8_t bytes;
};
// The index is an aclDataType.
constexpr ElementType kElementTypes[] = {
    {DType::kFloat32, 4},   {DType::kFloat16, 2},   {DType::kInt8, 1},         // 0, 1, 2
    {DType::kInt32, 4},     {DType::kUint8, 1},     {DType::kUndefined, 0},    // 3, 4, 5
    {DType::kInt16, 2},     {DType::kUint16, 2},    {DType::kUint32, 4},       // 6, 7, 8
    {DType::kInt64, 8},     {DType::kUint64, 8},    {DType::kFloat64, 8},      // 9, 10, 11
    {DType::kBool, 1},      {DType::kUndefined, 0}, {DType::kUndefined, 0},    // 12, 13, 14
    {DType::kUndefined, 0}, {DType::kComplex64, 8}, {DType::kComplex128, 16},  // 15, 16, 17
};
ElementType TypeOf(int32_t type) {
  if (type >= 0 && static_cast<size_t>(type) < sizeof(kElementTypes) / sizeof(ElementType)) {
    return kElementTypes[type];
  }
  if (type == ACL_BF16) return {DType::kBfloat16, 2};
  if (type == ACL_COMPLEX32) return {DType::kComplex32, 4};
  return {DType::kUndefined, 0};
}

// Note [Tensors in blocks]
// A tensor in FRACTAL_NZ is encoded as its storage: a dense tensor of blocks, which is what lies in
// memory. Its view, a matrix, follows the format. So all that reads bytes by a layout reads such a
// tensor too, and a replay can describe it to an operator again.
struct Tensor {
  uint64_t data;
  int64_t offset;  // elements
  int32_t type;
  int32_t format;
  uint32_t rank;
  uint32_t storage_rank;  // 0, or that of the blocks
  int64_t numbers[];      // rank sizes, then rank strides, then the dims of the blocks
};
struct Scalar {
  int32_t type;
  unsigned char value[16];
};
struct Numbers {  // numbers of an array; bool as 0 or 1, float as the bits of a double
  uint64_t count;
  uint64_t values[];
};
struct List {
  uint64_t count;
  const void* elements[];
};

agent::PointerMap<Tensor*> g_tensors;
agent::PointerMap<Scalar> g_scalars;
agent::PointerMap<Numbers*> g_arrays;
agent::PointerMap<List*> g_lists;

template <typename T>
void Drop(agent::PointerMap<T*>& map, const void* object) {
  T* info = nullptr;
  if (object != nullptr && map.Take(object, &info)) free(info);
}

// Without `info` nothing is known of the object; what was known before would be wrong.
template <typename T>
void Keep(agent::PointerMap<T*>& map, const void* object, T* info) {
  if (object == nullptr || info == nullptr) {
    free(info);
    return Drop(map, object);
  }
  T* before = nullptr;
  if (map.Put(object, info, &before) == agent::PutResult::kNoMemory) {
    agent::LeaveOut(wire::LeftOut::kArguments);
    before = info;
  }
  free(before);
}

template <typename T>
Numbers* CopyNumbers(const T* values, uint64_t count) {
  if (values == nullptr && count != 0) return nullptr;
  auto* info = static_cast<Numbers*>(
      agent::Allocate(sizeof(Numbers) + count * sizeof(uint64_t), wire::LeftOut::kArguments));
  if (info == nullptr) return nullptr;
  info->count = count;
  for (uint64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, float>) {
      const double wide = values[i];
      memcpy(&info->values[i], &wide, sizeof(wide));
    } else {
      info->values[i] = static_cast<uint64_t>(values[i]);
    }
  }
  return info;
}

List* CopyList(const void* const* elements, uint64_t count) {
  if (elements == nullptr && count != 0) return nullptr;
  auto* info = static_cast<List*>(
      agent::Allocate(sizeof(List) + count * sizeof(void*), wire::LeftOut::kArguments));
  if (info == nullptr) return nullptr;
  info->count = count;
  if (count != 0) memcpy(info->elements, elements, count * sizeof(void*));
  return info;
}

// Header of a tensor encoding up to the slot; the rest follows by the caller.
void AddTensorHead(Thread& thread, DType dtype, uint8_t rank, uint8_t flags, uint16_t slot,
                   int64_t byte_offset) {
  const uint8_t head[] = {static_cast<uint8_t>(ArgumentTag::kTensor), static_cast<uint8_t>(dtype),
                          rank, flags};
  thread.signature.Append(head, sizeof(head));
  thread.signature.Add(slot);
  thread.signature.Add(byte_offset);
}

// Resolves an address: block, or memory outside of any, whose buffer is 0 and whose base is 0.
Block BlockOf(uint64_t address) {
  Block block;
  if (!FindBlock(address, &block)) block = Block{};
  return block;
}

// Elements from the first to the last one.
uint64_t SpanOf(const Tensor& tensor) {
  const int64_t* dims = tensor.numbers + size_t{2} * tensor.rank;
  uint64_t blocks = 1;
  for (uint32_t d = 0; d < tensor.storage_rank; ++d) blocks *= static_cast<uint64_t>(dims[d]);
  if (tensor.storage_rank != 0) return blocks;
  int64_t last = 0;
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    if (tensor.numbers[d] <= 0) return 0;
    last += (tensor.numbers[d] - 1) * tensor.numbers[tensor.rank + d];
  }
  return static_cast<uint64_t>(last + 1);
}

// Sizes and row-major strides.
void AddDense(Thread& thread, const int64_t* dims, uint32_t rank) {
  thread.signature.Append(dims, rank * sizeof(int64_t));
  for (uint32_t d = 0; d < rank; ++d) {
    int64_t stride = 1;
    for (uint32_t inner = d + 1; inner < rank; ++inner) stride *= dims[inner];
    thread.signature.Add(stride);
  }
}

void EncodeTensor(Thread& thread, const void* object, const void* list, int64_t element,
                  int32_t position, bool read, bool written, TensorPlaces& places) {
  Tensor* tensor = nullptr;
  if (object == nullptr || !g_tensors.Get(object, &tensor)) {
    thread.signature.Add(ArgumentTag::kUndefinedTensor);
    return;
  }
  const ElementType type = TypeOf(tensor->type);
  const Block block = BlockOf(tensor->data);
  const int64_t view = tensor->offset * type.bytes;
  const int64_t offset = static_cast<int64_t>(tensor->data - block.begin) + view;
  TensorPlace* place = places.Add();
  const bool plain = tensor->format == ACL_FORMAT_ND || tensor->format == ACL_FORMAT_UNDEFINED;
  const uint16_t slot = thread.SlotOf(block.buffer_id);
  if (place != nullptr) {
    place->object = list != nullptr ? list : object;
    place->element = element;
    place->slot_at = thread.signature.size + 4;
    place->offset_at = thread.signature.size + 6;
    place->buffer_id = block.buffer_id;
    place->base = block.begin;
    place->view_bytes = static_cast<uint64_t>(view);
    place->position = position;
    place->read = read;
    place->written = written;
    place->first_byte = place->end_byte = static_cast<uint64_t>(offset);
    place->end_byte += SpanOf(*tensor) * type.bytes;
  }
  const uint8_t flags = static_cast<uint8_t>((type.bytes == 0 ? wire::kTensorOpaque : 0) |
                                             (plain ? 0 : wire::kTensorFormat));
  const bool blocks = tensor->storage_rank != 0;
  const uint32_t rank = blocks ? tensor->storage_rank : tensor->rank;
  AddTensorHead(thread, type.dtype, static_cast<uint8_t>(rank), flags, slot, offset);
  if (blocks) {
    AddDense(thread, tensor->numbers + size_t{2} * tensor->rank, rank);
  } else {
    thread.signature.Append(tensor->numbers, size_t{2} * rank * sizeof(int64_t));
  }
  if (plain) return;
  thread.signature.Add(tensor->format);
  // The view of a tensor of this format is encoded too: none if it is no matrix in blocks.
  if (tensor->format != ACL_FORMAT_FRACTAL_NZ) return;
  thread.signature.Add(static_cast<uint8_t>(blocks ? tensor->rank : 0));
  if (blocks) thread.signature.Append(tensor->numbers, size_t{2} * tensor->rank * sizeof(int64_t));
}

void EncodeScalar(Thread& thread, const void* object, bool with_tag) {
  Scalar scalar{};
  if (object == nullptr || !g_scalars.Get(object, &scalar)) {
    if (with_tag) {
      thread.signature.Add(ArgumentTag::kNone);
    } else {
      thread.signature.Add(DType::kUndefined);
      thread.signature.Append(scalar.value, sizeof(scalar.value));
    }
    return;
  }
  if (with_tag) thread.signature.Add(ArgumentTag::kScalar);
  thread.signature.Add(TypeOf(scalar.type).dtype);
  thread.signature.Append(scalar.value, sizeof(scalar.value));
}

void EncodeNumbers(Thread& thread, const void* object, ArgumentTag tag) {
  Numbers* numbers = nullptr;
  if (object == nullptr || !g_arrays.Get(object, &numbers)) {
    thread.signature.Add(ArgumentTag::kNone);
    return;
  }
  thread.signature.Add(tag);
  thread.signature.Add(static_cast<uint32_t>(numbers->count));
  for (uint64_t i = 0; i < numbers->count; ++i) {
    if (tag == ArgumentTag::kBoolList) {
      thread.signature.Add(static_cast<uint8_t>(numbers->values[i] != 0));
    } else {
      thread.signature.Add(numbers->values[i]);
    }
  }
}

}  // namespace

namespace {

// Sets the dims of the blocks of a tensor in FRACTAL_NZ.
void FindBlocks(Tensor& tensor, const int64_t* storage, uint32_t storage_rank) {
  tensor.storage_rank = 0;
  acl::BlockedLayout layout;
  if (tensor.format != ACL_FORMAT_FRACTAL_NZ ||
      !acl::BlockedLayoutOf(tensor.numbers, tensor.numbers + tensor.rank, tensor.rank, storage,
                            storage_rank, TypeOf(tensor.type).bytes, &layout)) {
    return;
  }
  tensor.storage_rank = layout.rank;
  memcpy(tensor.numbers + size_t{2} * tensor.rank, layout.dims, layout.rank * sizeof(int64_t));
}

}  // namespace

// ---- What object_calls.cpp tells of objects
// ------------------------------------------------------

void KeepTensor(const aclTensor* tensor, const int64_t* dims, uint64_t rank, aclDataType type,
                const int64_t* strides, int64_t offset, aclFormat format, const int64_t* storage,
                uint64_t storage_rank, void* data) {
  if (rank > kMaxRank || (dims == nullptr && rank != 0)) return;
  const size_t numbers = 2 * rank + acl::BlockedLayout::kMaxRank;
  auto* info = static_cast<Tensor*>(
      agent::Allocate(sizeof(Tensor) + numbers * sizeof(int64_t), wire::LeftOut::kArguments));
  if (info == nullptr) return Drop(g_tensors, tensor);
  info->data = reinterpret_cast<uint64_t>(data);
  info->offset = offset;
  info->type = type;
  info->format = format;
  info->rank = static_cast<uint32_t>(rank);
  int64_t dense = 1;
  for (uint64_t d = rank; d-- > 0;) {
    info->numbers[d] = dims[d];
    info->numbers[rank + d] = strides != nullptr ? strides[d] : dense;
    dense *= dims[d];
  }
  if (storage == nullptr) storage_rank = 0;
  if (storage_rank > kMaxRank) storage_rank = 0;
  FindBlocks(*info, storage, static_cast<uint32_t>(storage_rank));
  Keep(g_tensors, tensor, info);
}

void TurnIntoBlocks(const aclTensor* tensor) {
  Tensor* info = nullptr;
  if (!g_tensors.Get(tensor, &info)) return;
  int64_t stride = 1;
  for (uint32_t d = info->rank; d-- > 0;) {
    info->numbers[info->rank + d] = stride;
    stride *= info->numbers[d];
  }
  info->format = ACL_FORMAT_FRACTAL_NZ;
  FindBlocks(*info, nullptr, 0);
}

void KeepScalar(const aclScalar* object, const void* value, aclDataType type) {
  if (object == nullptr || value == nullptr) return;
  Scalar scalar{};
  scalar.type = type;
  memcpy(scalar.value, value, TypeOf(type).bytes);
  if (g_scalars.Put(object, scalar) == agent::PutResult::kNoMemory) {
    agent::LeaveOut(wire::LeftOut::kArguments);
  }
}

void MoveRaw(const aclTensor* tensor, void* address) {
  Tensor* info = nullptr;
  if (g_tensors.Get(tensor, &info)) info->data = reinterpret_cast<uint64_t>(address);
}

void KeepArray(const void* object, const int64_t* values, uint64_t count) {
  Keep(g_arrays, object, CopyNumbers(values, count));
}
void KeepArray(const void* object, const float* values, uint64_t count) {
  Keep(g_arrays, object, CopyNumbers(values, count));
}
void KeepArray(const void* object, const bool* values, uint64_t count) {
  Keep(g_arrays, object, CopyNumbers(values, count));
}
void KeepList(const void* object, const void* const* elements, uint64_t count) {
  Keep(g_lists, object, CopyList(elements, count));
}

void DropTensor(const void* object) { Drop(g_tensors, object); }
void DropScalar(const void* object) { g_scalars.Take(object, nullptr); }
void DropArray(const void* object) { Drop(g_arrays, object); }
void DropList(const void* object) { Drop(g_lists, object); }

// ---- Encoding ---------------------------------------------------------------------------------

TensorPlace* TensorPlaces::Add() {
  if (count == capacity) {
    const uint32_t larger = capacity == 0 ? 8 : 2 * capacity;
    void* memory = agent::Resize(static_cast<void*>(data), larger * sizeof(TensorPlace),
                                 wire::LeftOut::kContents);
    if (memory == nullptr) return nullptr;
    data = static_cast<TensorPlace*>(memory);
    capacity = larger;
  }
  data[count] = TensorPlace{};
  return &data[count++];
}

void EncodeArgument(Thread& thread, acl::ArgKind kind, const acl::ArgValue& value, int32_t position,
                    bool read, bool written, TensorPlaces& places) {
  using acl::ArgKind;
  Bytes& out = thread.signature;
  switch (kind) {
    case ArgKind::kTensor:
      EncodeTensor(thread, value.pointer, nullptr, -1, position, read, written, places);
      break;
    case ArgKind::kTensorList: {
      List* list = nullptr;
      if (value.pointer == nullptr || !g_lists.Get(value.pointer, &list)) {
        out.Add(ArgumentTag::kNone);
        break;
      }
      out.Add(ArgumentTag::kTensorList);
      out.Add(static_cast<uint32_t>(list->count));
      for (uint64_t i = 0; i < list->count; ++i) {
        EncodeTensor(thread, list->elements[i], value.pointer, static_cast<int64_t>(i), position,
                     read, written, places);
      }
      break;
    }
    case ArgKind::kScalar:
      EncodeScalar(thread, value.pointer, true);
      break;
    case ArgKind::kScalarList: {
      List* list = nullptr;
      if (value.pointer == nullptr || !g_lists.Get(value.pointer, &list)) {
        out.Add(ArgumentTag::kNone);
        break;
      }
      out.Add(ArgumentTag::kScalarList);
      out.Add(static_cast<uint32_t>(list->count));
      for (uint64_t i = 0; i < list->count; ++i) EncodeScalar(thread, list->elements[i], false);
      break;
    }
    case ArgKind::kIntArray:
      EncodeNumbers(thread, value.pointer, ArgumentTag::kIntList);
      break;
    case ArgKind::kFloatArray:
      EncodeNumbers(thread, value.pointer, ArgumentTag::kRealList);
      break;
    case ArgKind::kBoolArray:
      EncodeNumbers(thread, value.pointer, ArgumentTag::kBoolList);
      break;
    case ArgKind::kString: {
      if (value.pointer == nullptr) {
        out.Add(ArgumentTag::kNone);
        break;
      }
      const auto* text = static_cast<const char*>(value.pointer);
      const auto bytes = static_cast<uint32_t>(strlen(text));
      out.Add(ArgumentTag::kText);
      out.Add(bytes);
      out.Append(text, bytes);
      break;
    }
    case ArgKind::kBool:
      out.Add(ArgumentTag::kBool);
      out.Add(static_cast<uint8_t>(value.integer != 0));
      break;
    case ArgKind::kFloat:
    case ArgKind::kDouble:
      out.Add(ArgumentTag::kReal);
      out.Add(value.real);
      break;
    default:
      out.Add(ArgumentTag::kInt);
      out.Add(value.integer);
  }
}

void EncodeBufferBytes(Thread& thread, uint64_t buffer_id, uint64_t offset, uint64_t bytes) {
  AddTensorHead(thread, DType::kUint8, 1, 0, thread.SlotOf(buffer_id),
                static_cast<int64_t>(offset));
  const int64_t numbers[] = {static_cast<int64_t>(bytes), 1};
  thread.signature.Append(numbers, sizeof(numbers));
}

bool EncodeMemory(Thread& thread, uint64_t address, uint64_t bytes) {
  Block block;
  if (!FindBlock(address, &block)) return false;
  const uint64_t offset = address - block.begin;
  if (bytes > block.bytes - offset) bytes = block.bytes - offset;
  EncodeBufferBytes(thread, block.buffer_id, offset, bytes);
  return true;
}

void MovePlace(TensorPlace& place, uint64_t address, std::byte* signature, uint64_t* slots,
               uint32_t* slot_count) {
  const Block block = BlockOf(address);
  const uint64_t bytes = place.end_byte - place.first_byte;
  place.buffer_id = block.buffer_id;
  place.base = block.begin;
  place.first_byte = address - block.begin + place.view_bytes;
  place.end_byte = place.first_byte + bytes;
  uint32_t slot = 0;
  while (slot < *slot_count && slots[slot] != block.buffer_id) slot++;
  if (slot == Thread::kMaxSlots) return;
  if (slot == *slot_count) slots[(*slot_count)++] = block.buffer_id;
  const auto number = static_cast<uint16_t>(slot);
  memcpy(signature + place.slot_at, &number, sizeof(number));
  memcpy(signature + place.offset_at, &place.first_byte, sizeof(int64_t));
}

void ForgetObjectLocks() {
  g_tensors.ForgetLocks();
  g_scalars.ForgetLocks();
  g_arrays.ForgetLocks();
  g_lists.ForgetLocks();
}

}  // namespace acltape::acl_agent
