// The two layers of a device's memory: blocks that a program or its framework takes from the
// device, and the tensors that the framework puts into them. Bytes of both must not be added.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <vector>

#include "storage/reader.h"

namespace acltape::page {

enum class Layer : uint8_t { kTensor, kBlock };
// "tensor" or "block", as the column buffer.layer has it.
std::string_view LayerName(Layer layer);
// The layer with a name; kTensor for any other text.
Layer LayerNamed(std::string_view name);

struct LivingBuffer {
  int64_t id = 0;
  int64_t device = 0;  // 0: the host, n + 1: device n
  int64_t address = 0;
  int64_t bytes = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;  // 0: it outlived the recording
  int64_t alloc_call = 0;
  int64_t free_call = 0;
  int64_t block = 0;  // id of the block in which a tensor lies; 0: none is known
  Layer layer = Layer::kTensor;
  int32_t role = 0;  // a number of the caller
};

// A device, or the host, and one layer of it. Devices stand before the host.
struct Place {
  int64_t device = 0;
  Layer layer = Layer::kTensor;
  std::strong_ordering operator<=>(const Place& other) const {
    if ((device == 0) != (other.device == 0)) {
      return device == 0 ? std::strong_ordering::greater : std::strong_ordering::less;
    }
    if (device != other.device) return device <=> other.device;
    return layer <=> other.layer;
  }
  bool operator==(const Place&) const = default;
};

// Sets layer and block of buffers of a trace that does not store them. What a function of the
// device's interface allocated is a block; a tensor lies in the block that holds its address while
// it lives.
void InferLayers(const storage::Reader& trace, std::vector<LivingBuffer>& buffers);

}  // namespace acltape::page
