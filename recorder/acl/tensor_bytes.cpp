#include "recorder/acl/tensor_bytes.h"

#include <cstring>

namespace acltape::acl_agent {

uint64_t ElementBytes(wire::DType dtype) {
  const int64_t bytes = meaning::DTypeBytes(dtype);
  return bytes == 0 ? 1 : static_cast<uint64_t>(bytes);
}

namespace {

constexpr uint32_t kMaxRank = 16;

struct Shape {
  uint32_t rank = 0;
  uint64_t element_bytes = 0;
  int64_t sizes[kMaxRank];
  int64_t strides[kMaxRank];
};

bool Decode(const Content& content, Shape* shape) {
  shape->rank = static_cast<uint32_t>(content.encoding[2]);
  if (shape->rank > kMaxRank) return false;
  shape->element_bytes = ElementBytes(static_cast<wire::DType>(content.encoding[1]));
  const size_t bytes = shape->rank * sizeof(int64_t);
  memcpy(shape->sizes, content.encoding + 14, bytes);
  memcpy(shape->strides, content.encoding + 14 + bytes, bytes);
  return true;
}

void EncodeHead(uint8_t rank, uint64_t offset, Content* content) {
  content->plain_bytes = true;
  const uint8_t head[] = {static_cast<uint8_t>(wire::ArgumentTag::kTensor),
                          static_cast<uint8_t>(wire::DType::kUint8),
                          rank,
                          0,
                          0,
                          0};
  memcpy(content->encoding, head, sizeof(head));
  memcpy(content->encoding + sizeof(head), &offset, sizeof(offset));
}

}  // namespace

void EncodeBytes(uint64_t offset, uint64_t bytes, Content* content) {
  EncodeHead(1, offset, content);
  const int64_t numbers[] = {static_cast<int64_t>(bytes), 1};
  memcpy(content->encoding + 14, numbers, sizeof(numbers));
  content->encoding_bytes = 14 + sizeof(numbers);
}

void EncodePlane(uint64_t offset, uint64_t pitch, uint64_t width, uint64_t height,
                 Content* content) {
  EncodeHead(2, offset, content);
  const int64_t numbers[] = {static_cast<int64_t>(height), static_cast<int64_t>(width),
                             static_cast<int64_t>(pitch), 1};
  memcpy(content->encoding + 14, numbers, sizeof(numbers));
  content->encoding_bytes = 14 + sizeof(numbers);
}

bool CoversItsRange(const Content& content, uint64_t* packed_bytes) {
  Shape shape;
  if (!Decode(content, &shape)) return true;
  uint64_t elements = 1;
  for (uint32_t d = 0; d < shape.rank; ++d) elements *= static_cast<uint64_t>(shape.sizes[d]);
  *packed_bytes = elements * shape.element_bytes;
  // Dimensions in order of their strides must follow each other without gap or overlap.
  uint64_t expected = 1;
  bool used[kMaxRank] = {};
  for (uint32_t round = 0; round < shape.rank; ++round) {
    uint32_t next = kMaxRank;
    for (uint32_t d = 0; d < shape.rank; ++d) {
      if (used[d]) continue;
      if (shape.sizes[d] == 1) {
        used[d] = true;
        next = d;
        break;
      }
      if (static_cast<uint64_t>(shape.strides[d]) == expected) next = d;
    }
    if (next == kMaxRank) return false;
    used[next] = true;
    expected *= static_cast<uint64_t>(shape.sizes[next]);
  }
  return true;
}

void PackRows(const Content& content, const std::byte* range, std::byte* out) {
  Shape shape;
  if (!Decode(content, &shape)) return;
  int64_t index[kMaxRank] = {};
  uint64_t elements = 1;
  for (uint32_t d = 0; d < shape.rank; ++d) elements *= static_cast<uint64_t>(shape.sizes[d]);
  int64_t element = 0;
  for (uint64_t i = 0; i < elements; ++i) {
    memcpy(out, range + element * static_cast<int64_t>(shape.element_bytes), shape.element_bytes);
    out += shape.element_bytes;
    for (uint32_t d = shape.rank; d-- > 0;) {
      element += shape.strides[d];
      if (++index[d] < shape.sizes[d]) break;
      element -= shape.strides[d] * shape.sizes[d];
      index[d] = 0;
    }
  }
}

}  // namespace acltape::acl_agent
