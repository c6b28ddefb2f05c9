// The content of a tensor or of a range of memory, as a snapshot tells it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "recorder/wire/records.h"

namespace acltape::acl_agent {

struct Content {
  uint64_t call_id;
  uint64_t buffer_id;
  uint64_t bytes;  // size of the data; before packing the range from the first to the last element
  int32_t position;
  bool after;
  bool plain_bytes;  // a range of memory, not a tensor of the program's
  uint8_t packing;   // as in wire::SnapshotRecord
  uint32_t encoding_bytes;
  std::byte encoding[14 + 16 * 16 + 8];  // a tensor, slot 0
};

// Bytes of one element; 1 for a type whose elements have no size.
uint64_t ElementBytes(wire::DType dtype);

// uint8 [bytes] at an offset.
void EncodeBytes(uint64_t offset, uint64_t bytes, Content* content);
// uint8 [height, width], rows `pitch` apart.
void EncodePlane(uint64_t offset, uint64_t pitch, uint64_t width, uint64_t height,
                 Content* content);

// True when the encoded tensor's elements cover its range without gaps. Else `*packed_bytes` is
// their size when they are packed row by row.
bool CoversItsRange(const Content& content, uint64_t* packed_bytes);
// Packs the elements row-major. `range` begins at the first element.
void PackRows(const Content& content, const std::byte* range, std::byte* out);

}  // namespace acltape::acl_agent
