#include "recorder/acl/objects.h"

#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <bit>
#include <type_traits>

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
constexpr size_t kTensorHead = 14;  // bytes of an encoded tensor before its numbers

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
//
// Note [Tensors of integers of 4 bits]
// A tensor of ACL_INT4 is encoded as the bytes that hold its integers, two in each, and its view
// follows as for a tensor in blocks. One in blocks is encoded as blocks of bytes.
//
// Note [Objects of every operator]
// A framework makes the objects of each operator anew, and one of its threads may make what another
// one frees. Memory that is asked of malloc and given back by another thread costs more than all
// else that is kept of an object. So what is known of a small tensor lies in the map itself.
struct Tensor {
  static constexpr uint32_t kInsideRank = 5;
  uint64_t data;
  int64_t offset;  // elements
  int32_t type;
  int32_t format;
  uint32_t rank;
  uint32_t storage_rank;  // 0, or that of the blocks
  int64_t* outside;       // the numbers, when they do not fit inside
  int64_t inside[size_t{2} * kInsideRank];

  // `rank` sizes, then `rank` strides, then the dims of the blocks.
  int64_t* numbers() { return outside != nullptr ? outside : inside; }
  const int64_t* numbers() const { return outside != nullptr ? outside : inside; }
};
struct Scalar {
  int32_t type;
  unsigned char value[16];
};
// The numbers of an array (a bool as 0 or 1, a float as the bits of a double) or the addresses of a
// list's elements.
struct Words {
  static constexpr uint64_t kInside = 6;
  uint64_t count;
  uint64_t* outside;  // the words, when they do not fit inside
  uint64_t inside[kInside];

  uint64_t* values() { return outside != nullptr ? outside : inside; }
};

// The objects of one kind, with what is known of each.
//
// The entry of an object that was destroyed rests until its address is given out again, and is
// taken out only when there are many: the thread that destroys would take the entry's cache line
// from the one that makes the next object there.
template <typename T>
class Objects {
 public:
  bool Get(const void* object, T* info) { return object != nullptr && map_.Get(object, info); }
  template <typename Action>
  void Change(const void* object, const Action& action) {
    map_.Change(object, action);
  }
  void Keep(const void* object, const T& info) {
    void* unused = nullptr;
    const agent::PutResult result = map_.Write(object, [&](T& entry, bool replaces) {
      if (replaces) unused = OutsideOf(entry);
      entry = info;
    });
    if (result == agent::PutResult::kAdded) count_.fetch_add(1, std::memory_order_relaxed);
    if (result == agent::PutResult::kNoMemory) {
      agent::LeaveOut(wire::LeftOut::kArguments);
      unused = OutsideOf(info);
    }
    if (__builtin_expect(unused != nullptr, 0)) free(unused);
  }
  // Nothing is known of the object; what was known before would be wrong.
  void Forget(const void* object) {
    T info{};
    if (!map_.Take(object, &info)) return;
    count_.fetch_sub(1, std::memory_order_relaxed);
    free(OutsideOf(info));
  }
  void Destroyed(const void* object) {
    if (object != nullptr && count_.load(std::memory_order_relaxed) > kMostResting) Forget(object);
  }
  void ForgetLocks() { map_.ForgetLocks(); }

 private:
  static constexpr uint32_t kMostResting = 4096;

  static void* OutsideOf(const T& info) {
    if constexpr (std::is_same_v<T, Scalar>) {
      return nullptr;
    } else {
      return info.outside;
    }
  }

  agent::PointerMap<T> map_;
  alignas(64) std::atomic<uint32_t> count_{0};
};

Objects<Tensor> g_tensors;
Objects<Scalar> g_scalars;
Objects<Words> g_arrays;
Objects<Words> g_lists;

template <typename T>
uint64_t WordOf(T value) {
  if constexpr (std::is_same_v<T, float>) {
    const double wide = value;
    return std::bit_cast<uint64_t>(wide);
  } else if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<uint64_t>(value);
  } else {
    return static_cast<uint64_t>(value);
  }
}

template <typename T>
void KeepWords(Objects<Words>& objects, const void* object, const T* values, uint64_t count) {
  if (object == nullptr) return;
  if (values == nullptr && count != 0) return objects.Forget(object);
  Words info;
  info.count = count;
  info.outside = nullptr;
  if (count > Words::kInside) {
    info.outside = static_cast<uint64_t*>(
        agent::Allocate(count * sizeof(uint64_t), wire::LeftOut::kArguments));
    if (info.outside == nullptr) return objects.Forget(object);
  }
  uint64_t* words = info.values();
  for (uint64_t i = 0; i < count; ++i) words[i] = WordOf(values[i]);
  objects.Keep(object, info);
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

// Resolves the address of a tensor that needs `bytes` bytes from `view` bytes after it on: a block,
// or memory outside of any, whose buffer is 0 and whose base is 0. A tensor that leaves its block
// is in none: the device fails the task.
Block BlockOf(Thread* thread, uint64_t address, int64_t view, uint64_t bytes) {
  Block block;
  if (!FindBlock(address, &block)) return Block{};
  const uint64_t first = address - block.begin + static_cast<uint64_t>(view);
  if (bytes == 0 || (first <= block.bytes && bytes <= block.bytes - first)) [[likely]]
    return block;
  if (thread != nullptr && first < block.bytes) StretchBlock(*thread, first + bytes, &block);
  return first <= block.bytes && bytes <= block.bytes - first ? block : Block{};
}

// Elements from the first to the last one.
uint64_t SpanOf(const Tensor& tensor) {
  const int64_t* numbers = tensor.numbers();
  const int64_t* dims = numbers + size_t{2} * tensor.rank;
  uint64_t blocks = 1;
  for (uint32_t d = 0; d < tensor.storage_rank; ++d) blocks *= static_cast<uint64_t>(dims[d]);
  if (tensor.storage_rank != 0) return blocks;
  int64_t last = 0;
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    if (numbers[d] <= 0) return 0;
    last += (numbers[d] - 1) * numbers[tensor.rank + d];
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

bool IsFourBits(const Tensor& tensor, bool plain) {
  return tensor.type == ACL_INT4 && (plain || tensor.storage_rank != 0);
}

// Bytes from the one with the first integer to the one with the last.
uint64_t FourBitBytes(const Tensor& tensor) {
  const uint64_t integers = SpanOf(tensor);
  return integers == 0 ? 0 : (integers + static_cast<uint64_t>(tensor.offset % 2) + 1) / 2;
}

// Adds the dims of the blocks, whose columns are bytes, and the view.
void AddFourBitBlocks(Thread& thread, const Tensor& tensor) {
  int64_t dims[acl::BlockedLayout::kMaxRank];
  const uint32_t rank = tensor.storage_rank;
  memcpy(dims, tensor.numbers() + size_t{2} * tensor.rank, rank * sizeof(int64_t));
  dims[rank - 1] /= 2;
  AddDense(thread, dims, rank);
  thread.signature.Add(meaning::kFormatOfFourBitBlocks);
  thread.signature.Add(static_cast<uint8_t>(tensor.rank));
  thread.signature.Append(tensor.numbers(), size_t{2} * tensor.rank * sizeof(int64_t));
}

// Adds the numbers of the bytes, and the view (Note [Tensors of integers of 4 bits]).
[[gnu::cold]] void AddFourBits(Thread& thread, const Tensor& tensor) {
  if (tensor.storage_rank != 0) return AddFourBitBlocks(thread, tensor);
  const auto bytes = static_cast<int64_t>(FourBitBytes(tensor));
  AddDense(thread, &bytes, 1);
  thread.signature.Add(meaning::kFormatOfFourBits);
  thread.signature.Add(static_cast<uint8_t>(tensor.rank));
  thread.signature.Append(tensor.numbers(), size_t{2} * tensor.rank * sizeof(int64_t));
  thread.signature.Add(static_cast<uint8_t>(tensor.offset % 2));
}

// Adds the numbers and the format of a tensor that is in blocks or in a format of its own.
void AddFormatted(Thread& thread, const Tensor& tensor) {
  const bool blocks = tensor.storage_rank != 0;
  const int64_t* numbers = tensor.numbers();
  const size_t view_bytes = size_t{2} * tensor.rank * sizeof(int64_t);
  if (blocks) {
    AddDense(thread, numbers + size_t{2} * tensor.rank, tensor.storage_rank);
  } else {
    thread.signature.Append(numbers, view_bytes);
  }
  thread.signature.Add(tensor.format);
  // The view of a tensor of this format is encoded too: none if it is no matrix in blocks.
  if (tensor.format != ACL_FORMAT_FRACTAL_NZ) return;
  thread.signature.Add(static_cast<uint8_t>(blocks ? tensor.rank : 0));
  if (blocks) thread.signature.Append(numbers, view_bytes);
}

void EncodeTensor(Thread& thread, const void* object, const void* list, int64_t element,
                  int32_t position, bool read, bool written, TensorPlaces& places) {
  Tensor tensor;
  if (!g_tensors.Get(object, &tensor)) {
    thread.signature.Add(ArgumentTag::kUndefinedTensor);
    return;
  }
  const bool nd = tensor.format == ACL_FORMAT_ND || tensor.format == ACL_FORMAT_UNDEFINED;
  const bool four_bits = IsFourBits(tensor, nd);
  const bool plain = nd && !four_bits;
  const ElementType type = four_bits ? ElementType{DType::kUint8, 1} : TypeOf(tensor.type);
  const int64_t view = four_bits ? tensor.offset / 2 : tensor.offset * type.bytes;
  const uint64_t bytes = four_bits ? FourBitBytes(tensor) : SpanOf(tensor) * type.bytes;
  const Block block = BlockOf(&thread, tensor.data, view, bytes);
  const int64_t offset = static_cast<int64_t>(tensor.data - block.begin) + view;
  const uint16_t slot = thread.SlotOf(block.buffer_id);
  if (TensorPlace* place = places.Add(); place != nullptr) {
    const auto first = static_cast<uint64_t>(offset);
    *place = {.object = list != nullptr ? list : object,
              .element = element,
              .slot_at = thread.signature.size + 4,
              .offset_at = thread.signature.size + 6,
              .buffer_id = block.buffer_id,
              .first_byte = first,
              .end_byte = first + bytes,
              .base = block.begin,
              .view_bytes = static_cast<uint64_t>(view),
              .position = position,
              .read = read,
              .written = written};
  }
  const uint8_t flags = static_cast<uint8_t>((type.bytes == 0 ? wire::kTensorOpaque : 0) |
                                             (plain ? 0 : wire::kTensorFormat));
  const uint32_t rank = tensor.storage_rank != 0 ? tensor.storage_rank
                        : four_bits              ? 1
                                                 : tensor.rank;
  std::byte* out = thread.signature.Room(kTensorHead + sizeof(tensor.inside));
  if (out == nullptr) return;
  const uint8_t head[] = {static_cast<uint8_t>(ArgumentTag::kTensor),
                          static_cast<uint8_t>(type.dtype), static_cast<uint8_t>(rank), flags};
  memcpy(out, head, sizeof(head));
  memcpy(out + 4, &slot, sizeof(slot));
  memcpy(out + 6, &offset, sizeof(offset));
  const bool inside = plain && tensor.outside == nullptr;
  // All that lies inside is copied, whatever the rank: a copy of a fixed length is short.
  if (inside) memcpy(out + kTensorHead, tensor.inside, sizeof(tensor.inside));
  thread.signature.size += kTensorHead + (inside ? size_t{16} * rank : 0);
  if (inside) return;
  if (plain) {
    thread.signature.Append(tensor.numbers(), size_t{16} * rank);
  } else if (four_bits) {
    AddFourBits(thread, tensor);
  } else {
    AddFormatted(thread, tensor);
  }
}

void EncodeScalar(Thread& thread, const void* object, bool with_tag) {
  Scalar scalar{};
  const bool known = g_scalars.Get(object, &scalar);
  if (!known && with_tag) {
    thread.signature.Add(ArgumentTag::kNone);
    return;
  }
  if (with_tag) thread.signature.Add(ArgumentTag::kScalar);
  thread.signature.Add(known ? TypeOf(scalar.type).dtype : DType::kUndefined);
  thread.signature.Add(scalar.value);
}

void EncodeNumbers(Thread& thread, const void* object, ArgumentTag tag) {
  Words numbers;
  if (!g_arrays.Get(object, &numbers)) {
    thread.signature.Add(ArgumentTag::kNone);
    return;
  }
  thread.signature.Add(tag);
  thread.signature.Add(static_cast<uint32_t>(numbers.count));
  const uint64_t* values = numbers.values();
  if (tag != ArgumentTag::kBoolList) {
    thread.signature.Append(values, numbers.count * sizeof(uint64_t));
    return;
  }
  for (uint64_t i = 0; i < numbers.count; ++i) {
    thread.signature.Add(static_cast<uint8_t>(values[i] != 0));
  }
}

}  // namespace

namespace {

// Columns of a block of a tensor in FRACTAL_NZ.
int64_t BlockColumnsOf(int32_t type) {
  return type == ACL_INT4 ? acl::kBlockColumnsOfFourBits : acl::BlockColumnsOf(TypeOf(type).bytes);
}

// Sets the dims of the blocks of a tensor in FRACTAL_NZ. There is room for them after the strides.
void FindBlocks(Tensor& tensor, const int64_t* storage, uint32_t storage_rank) {
  tensor.storage_rank = 0;
  acl::BlockedLayout layout;
  int64_t* numbers = tensor.numbers();
  if (!acl::BlockedLayoutOf(numbers, numbers + tensor.rank, tensor.rank, storage, storage_rank,
                            BlockColumnsOf(tensor.type), &layout)) {
    return;
  }
  tensor.storage_rank = layout.rank;
  memcpy(numbers + size_t{2} * tensor.rank, layout.dims, layout.rank * sizeof(int64_t));
}

// Room outside for a tensor's numbers; null without memory.
int64_t* AllocateNumbers(uint64_t rank) {
  const size_t numbers = 2 * rank + acl::BlockedLayout::kMaxRank;
  return static_cast<int64_t*>(
      agent::Allocate(numbers * sizeof(int64_t), wire::LeftOut::kArguments));
}

}  // namespace

// ---- What object_calls.cpp tells of objects
// ------------------------------------------------------

void KeepTensor(const aclTensor* tensor, const int64_t* dims, uint64_t rank, aclDataType type,
                const int64_t* strides, int64_t offset, aclFormat format, const int64_t* storage,
                uint64_t storage_rank, void* data) {
  if (rank > kMaxRank || (dims == nullptr && rank != 0)) return;
  if (tensor == nullptr) return;
  Tensor info;
  info.outside = nullptr;
  if (rank > Tensor::kInsideRank || format == ACL_FORMAT_FRACTAL_NZ) {
    info.outside = AllocateNumbers(rank);
    if (info.outside == nullptr) return g_tensors.Forget(tensor);
  }
  info.data = reinterpret_cast<uint64_t>(data);
  info.offset = offset;
  info.type = type;
  info.format = format;
  info.rank = static_cast<uint32_t>(rank);
  info.storage_rank = 0;
  int64_t* numbers = info.numbers();
  int64_t dense = 1;
  for (uint64_t d = rank; d-- > 0;) {
    numbers[d] = dims[d];
    numbers[rank + d] = strides != nullptr ? strides[d] : dense;
    dense *= dims[d];
  }
  if (format == ACL_FORMAT_FRACTAL_NZ) {
    if (storage == nullptr || storage_rank > kMaxRank) storage_rank = 0;
    FindBlocks(info, storage, static_cast<uint32_t>(storage_rank));
  }
  g_tensors.Keep(tensor, info);
}

void TurnIntoBlocks(const aclTensor* tensor) {
  g_tensors.Change(tensor, [](Tensor& info) {
    if (info.outside == nullptr) {
      int64_t* numbers = AllocateNumbers(info.rank);
      if (numbers == nullptr) return;
      memcpy(numbers, info.inside, sizeof(info.inside));
      info.outside = numbers;
    }
    int64_t stride = 1;
    for (uint32_t d = info.rank; d-- > 0;) {
      info.outside[info.rank + d] = stride;
      stride *= info.outside[d];
    }
    info.format = ACL_FORMAT_FRACTAL_NZ;
    FindBlocks(info, nullptr, 0);
  });
}

void MoveRaw(const aclTensor* tensor, void* address) {
  g_tensors.Change(tensor, [&](Tensor& info) { info.data = reinterpret_cast<uint64_t>(address); });
}

void KeepScalar(const aclScalar* object, const void* value, aclDataType type) {
  if (object == nullptr || value == nullptr) return;
  Scalar scalar{};
  scalar.type = type;
  memcpy(scalar.value, value, TypeOf(type).bytes);
  g_scalars.Keep(object, scalar);
}

void KeepArray(const void* object, const int64_t* values, uint64_t count) {
  KeepWords(g_arrays, object, values, count);
}
void KeepArray(const void* object, const float* values, uint64_t count) {
  KeepWords(g_arrays, object, values, count);
}
void KeepArray(const void* object, const bool* values, uint64_t count) {
  KeepWords(g_arrays, object, values, count);
}
void KeepList(const void* object, const void* const* elements, uint64_t count) {
  KeepWords(g_lists, object, elements, count);
}

void DropTensor(const void* object) { g_tensors.Destroyed(object); }
void DropScalar(const void* object) { g_scalars.Destroyed(object); }
void DropArray(const void* object) { g_arrays.Destroyed(object); }
void DropList(const void* object) { g_lists.Destroyed(object); }

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
      Words list;
      if (!g_lists.Get(value.pointer, &list)) {
        out.Add(ArgumentTag::kNone);
        break;
      }
      out.Add(ArgumentTag::kTensorList);
      out.Add(static_cast<uint32_t>(list.count));
      for (uint64_t i = 0; i < list.count; ++i) {
        EncodeTensor(thread, reinterpret_cast<const void*>(list.values()[i]), value.pointer,
                     static_cast<int64_t>(i), position, read, written, places);
      }
      break;
    }
    case ArgKind::kScalar:
      EncodeScalar(thread, value.pointer, true);
      break;
    case ArgKind::kScalarList: {
      Words list;
      if (!g_lists.Get(value.pointer, &list)) {
        out.Add(ArgumentTag::kNone);
        break;
      }
      out.Add(ArgumentTag::kScalarList);
      out.Add(static_cast<uint32_t>(list.count));
      for (uint64_t i = 0; i < list.count; ++i)
        EncodeScalar(thread, reinterpret_cast<const void*>(list.values()[i]), false);
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

void MovePlace(Thread* thread, TensorPlace& place, uint64_t address, std::byte* signature,
               uint64_t* slots, uint32_t* slot_count) {
  const uint64_t bytes = place.end_byte - place.first_byte;
  const Block block = BlockOf(thread, address, static_cast<int64_t>(place.view_bytes), bytes);
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
