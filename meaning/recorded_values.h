// The numbers that a recording writes and a trace keeps: codes of element types, flags of tensors,
// and the parts of a call's bits. They are never given another meaning. Standard library alone,
// because the recorder's plug-in is compiled with it too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace acltape::meaning {

// The recorder keeps aclmdlRICondTaskParams as a list of numbers: the condition, the type and the
// size of the task, then the sub-graphs (recorder/acl/model_parts.cpp).
inline constexpr size_t kConditionOfTask = 0;
inline constexpr size_t kTypeOfTask = 1;
inline constexpr size_t kFirstSubGraph = 3;

// Element types. The codes are those of PyTorch's c10::ScalarType where both have them.
enum class DType : uint8_t {
  kUint8 = 0,
  kInt8 = 1,
  kInt16 = 2,
  kInt32 = 3,
  kInt64 = 4,
  kFloat16 = 5,
  kFloat32 = 6,
  kFloat64 = 7,
  kComplex32 = 8,
  kComplex64 = 9,
  kComplex128 = 10,
  kBool = 11,
  kQint8 = 12,
  kQuint8 = 13,
  kQint32 = 14,
  kBfloat16 = 15,
  kUint16 = 27,
  kUint32 = 28,
  kUint64 = 29,
  kUndefined = 255
};

struct ElementType {
  DType dtype;
  std::string_view name;  // name in PyTorch
  int64_t bytes;          // bytes of one element
};

inline constexpr ElementType kElementTypes[] = {
    {DType::kUint8, "uint8", 1},
    {DType::kInt8, "int8", 1},
    {DType::kInt16, "int16", 2},
    {DType::kInt32, "int32", 4},
    {DType::kInt64, "int64", 8},
    {DType::kFloat16, "float16", 2},
    {DType::kFloat32, "float32", 4},
    {DType::kFloat64, "float64", 8},
    {DType::kComplex32, "complex32", 4},
    {DType::kComplex64, "complex64", 8},
    {DType::kComplex128, "complex128", 16},
    {DType::kBool, "bool", 1},
    {DType::kQint8, "qint8", 1},
    {DType::kQuint8, "quint8", 1},
    {DType::kQint32, "qint32", 4},
    {DType::kBfloat16, "bfloat16", 2},
    {DType::kUint16, "uint16", 2},
    {DType::kUint32, "uint32", 4},
    {DType::kUint64, "uint64", 8},
    {DType::kUndefined, "undefined", 0},
};

constexpr std::string_view DTypeName(DType dtype) {
  for (const ElementType& type : kElementTypes) {
    if (type.dtype == dtype) return type.name;
  }
  return "undefined";
}

// kUndefined when unknown.
constexpr DType DTypeFromName(std::string_view name) {
  for (const ElementType& type : kElementTypes) {
    if (type.name == name) return type.dtype;
  }
  return DType::kUndefined;
}

constexpr int64_t DTypeBytes(DType dtype) {
  for (const ElementType& type : kElementTypes) {
    if (type.dtype == dtype) return type.bytes;
  }
  return 0;
}

// Flags of a tensor on the wire and of a layout in a trace (column layout.flags).
enum TensorFlags : uint8_t {
  kTensorParameter = 1,  // requires gradients and has no history: a parameter
  kTensorConjugate = 2,  // the conjugate bit is set
  kTensorNegative = 4,   // the negative bit is set
  kTensorOpaque = 8,     // no strided storage (sparse, vendor-blocked); values are not kept
  kTensorWrapped = 16,   // a Python number passed as a 0-d tensor: weak in type promotion
  kTensorFormat = 32,    // an ACL tensor with a format other than ND; on the wire alone
  kTensorMemory = 64     // lies in memory that the recorder does not know; on the wire alone
};

// On the wire, in the place of an ACL format: a tensor of integers of 4 bits, which lies in memory
// as the bytes that hold them. Its rank, sizes, strides and the integers in front of it in the
// first byte follow.
inline constexpr int32_t kFormatOfFourBits = -4;
// The same in FRACTAL_NZ: the bytes lie in blocks. Rank, sizes and strides of the view follow.
inline constexpr int32_t kFormatOfFourBitBlocks = -5;

// The column call_row.bits: the phase, whether the call is a leaf, and above them where it ran
// (LeafPlace). The views and their queries spell these numbers (storage/views.cpp).
inline constexpr int64_t kPhaseBits = 3;
inline constexpr int64_t kLeafBit = 4;
inline constexpr int kPlaceShift = 3;

// Where a leaf of PyTorch ran, by the tensors that it was given and gave: on the device when one of
// them lies there. kPlaceHost + n is ACL device n - 1, counted as in buffer.device.
enum LeafPlace : uint16_t {
  kPlaceNotKnown = 0,
  kPlaceHost = 1,
};
inline constexpr int64_t kMostPlace = (int64_t{1} << 16) - 1;

// The column buffer_row.flags; the device lies above bit 8.
enum BufferFlags : uint32_t {
  kBufferForeign = 1,  // memory not from the framework's allocator: adopted at first sight
  kBufferBlock = 2,    // the program took it through the ACL interface
  kBufferTensor = 4,   // the storage of tensors of the framework
  // On the wire alone: calls named bytes past the end of a buffer, and now it has so many.
  kBufferStretched = 8,
};
inline constexpr int kBufferDeviceShift = 8;

// The name of the phase in these bits.
constexpr std::string_view PhaseName(int64_t bits) {
  constexpr std::string_view kPhases[] = {"forward", "backward", "optimizer", "optimizer"};
  return kPhases[bits & kPhaseBits];
}

}  // namespace acltape::meaning
