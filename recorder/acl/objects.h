// The operators' argument objects (tensors, scalars, arrays, lists), which are opaque in the
// interface: what they were created with, kept by address until they are destroyed, or until their
// address is given out again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "acl/invoke/arg_value.h"
#include "recorder/acl/real.h"

namespace acltape::acl_agent {

struct Thread;

// The position of a tensor in the bytes of the call being encoded. It is kept so that a moved
// address can be written over the old one.
struct TensorPlace {
  const void* object = nullptr;  // tensor or list
  int64_t element = -1;          // position in a list
  size_t slot_at = 0;            // position of the uint16 slot in the signature bytes
  size_t offset_at = 0;          // position of the int64 byte offset
  uint64_t buffer_id = 0;
  uint64_t first_byte = 0;  // in the buffer; also of a tensor outside of any block
  uint64_t end_byte = 0;
  uint64_t base = 0;        // address of the buffer
  uint64_t view_bytes = 0;  // from the data address to the view's first byte
  int32_t position = 0;     // position of the argument
  bool read = false;
  bool written = false;
};

struct TensorPlaces {
  TensorPlace* data = nullptr;
  uint32_t count = 0;
  uint32_t capacity = 0;
  TensorPlace* Add();  // a new one, without values; null without memory
};

// Encodes one argument of an operator into the thread's bytes, and adds its tensors to `places`.
void EncodeArgument(Thread& thread, acl::ArgKind kind, const acl::ArgValue& value, int32_t position,
                    bool read, bool written, TensorPlaces& places);
// Encodes bytes of a buffer as a uint8 tensor.
void EncodeBufferBytes(Thread& thread, uint64_t buffer_id, uint64_t offset, uint64_t bytes);
// Like EncodeBufferBytes, by address. Bytes beyond the end of the block are left out. Gives false,
// and encodes nothing, when the address is in no block.
bool EncodeMemory(Thread& thread, uint64_t address, uint64_t bytes);
// Writes a tensor's new place after its data address became `address`. `thread` may be null.
void MovePlace(Thread* thread, TensorPlace& place, uint64_t address, std::byte* signature,
               uint64_t* slots, uint32_t* slot_count);

// Called by the wrappers of the functions that make and free objects. A null object is ignored.
void KeepTensor(const aclTensor* tensor, const int64_t* dims, uint64_t rank, aclDataType type,
                const int64_t* strides, int64_t offset, aclFormat format, const int64_t* storage,
                uint64_t storage_rank, void* data);
// An operator has moved the tensor's elements into blocks (FRACTAL_NZ) of the default size.
void TurnIntoBlocks(const aclTensor* tensor);
void KeepScalar(const aclScalar* object, const void* value, aclDataType type);
void KeepArray(const void* object, const int64_t* values, uint64_t count);
void KeepArray(const void* object, const float* values, uint64_t count);
void KeepArray(const void* object, const bool* values, uint64_t count);
void KeepList(const void* object, const void* const* elements, uint64_t count);
void MoveRaw(const aclTensor* tensor, void* address);
void DropTensor(const void* object);
void DropScalar(const void* object);
void DropArray(const void* object);
void DropList(const void* object);

void ForgetObjectLocks();

// The wrapped functions that manage objects.
extern const WrappedFunction kObjectFunctions[];

}  // namespace acltape::acl_agent
