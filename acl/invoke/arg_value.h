// One argument of an operator call in the form that is the same for every operator: what generic
// invocation packs, and what the exported stubs of the soft device unpack.
//
// Which member is valid follows from the argument's ArgKind (see the table at ArgKind). Objects
// that pointers refer to belong to the caller.
#pragma once

#include <cstdint>
#include <type_traits>

#include "aclnn/acl_meta.h"

namespace acltape::acl {

// The meaning of an argument, and the member of ArgValue that carries it.
enum class ArgKind : uint8_t {
  kTensor,      // pointer: aclTensor*
  kTensorList,  // pointer: aclTensorList*
  kScalar,      // pointer: aclScalar*
  kScalarList,  // pointer: aclScalarList*
  kIntArray,    // pointer: aclIntArray*
  kFloatArray,  // pointer: aclFloatArray*
  kBoolArray,   // pointer: aclBoolArray*
  kString,      // pointer: zero-terminated characters
  kBool,        // integer: 0 or 1
  kInt8,        // integer
  kInt32,       // integer
  kInt64,       // integer
  kUint32,      // integer
  kUint64,      // integer, bits of the unsigned value
  kDtype,       // integer: aclDataType
  kFloat,       // real
  kDouble,      // real
};

enum class Direction : uint8_t { kIn, kOut, kInOut };

union ArgValue {
  const void* pointer;
  int64_t integer;
  double real;
};

// Packs a C argument of any type that occurs in the operator table.
template <typename T>
constexpr ArgValue Pack(T value) {
  ArgValue packed{};
  if constexpr (std::is_pointer_v<T>) {
    packed.pointer = value;
  } else if constexpr (std::is_floating_point_v<T>) {
    packed.real = value;
  } else {
    packed.integer = static_cast<int64_t>(value);
  }
  return packed;
}

// The reverse of Pack. Writing through an object that the operator only reads is not undone by the
// lost const: T says whether the operator's parameter is const.
template <typename T>
T Unpack(const ArgValue& value) {
  if constexpr (std::is_pointer_v<T>) {
    return static_cast<T>(const_cast<void*>(value.pointer));
  } else if constexpr (std::is_same_v<T, bool>) {
    return value.integer != 0;
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value.real);
  } else {
    return static_cast<T>(value.integer);
  }
}

}  // namespace acltape::acl
