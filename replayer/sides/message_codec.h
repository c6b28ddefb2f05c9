// Writes and reads the parts of a message of the call protocol (call_protocol.h): numbers, texts,
// lists, places and tensors. A reader checks every length. Invalid input is an Error of kind
// kDevice.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "replayer/engine/script.h"
#include "storage/error.h"
#include "storage/trace.h"

namespace acltape::replayer::sides {

class MessageEncoder {
 public:
  template <typename T>
  void Number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    body_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Text(std::string_view text) {
    Number<uint64_t>(text.size());
    body_.append(text);
  }
  void Raw(const uint8_t* bytes, size_t count) {
    Text({reinterpret_cast<const char*>(bytes), count});
  }
  template <typename T>
  void Numbers(const std::vector<T>& values) {
    Number<uint64_t>(values.size());
    for (const T value : values) Number(value);
  }
  void Place(const Spot& spot) {
    Number<int32_t>(spot.block);
    Number<int64_t>(spot.offset);
  }
  void Tensor(const storage::Layout& layout) {
    Number(static_cast<uint8_t>(layout.dtype));
    Number(layout.byte_offset);
    Numbers(layout.shape);
    Numbers(layout.strides);
    Number(layout.flags);
    Text(layout.format);
  }
  std::string Take() { return std::move(body_); }

 private:
  std::string body_;
};

class MessageDecoder {
 public:
  explicit MessageDecoder(std::string_view body) : rest_(body) {}

  template <typename T>
  T Number() {
    T value;
    std::memcpy(&value, Bytes(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view Raw() { return Bytes(Number<uint64_t>()); }
  std::string Text() { return std::string(Raw()); }
  // Reads the length of a list whose elements take at least `least_bytes` each.
  size_t Count(size_t least_bytes) {
    const auto count = Number<uint64_t>();
    if (count > rest_.size() / least_bytes) Fail("has a list that goes beyond its end");
    return count;
  }
  template <typename T>
  std::vector<T> Numbers() {
    std::vector<T> values(Count(sizeof(T)));
    for (T& value : values) value = Number<T>();
    return values;
  }
  Spot Place() {
    Spot spot;
    spot.block = Number<int32_t>();
    spot.offset = Number<int64_t>();
    return spot;
  }
  storage::Layout Tensor() {
    storage::Layout layout;
    layout.dtype = static_cast<storage::DType>(Number<uint8_t>());
    if (storage::DTypeBytes(layout.dtype) == 0) Fail("has a tensor without an element type");
    layout.byte_offset = Number<int64_t>();
    layout.shape = Numbers<int64_t>();
    layout.strides = Numbers<int64_t>();
    if (layout.shape.size() != layout.strides.size()) Fail("has a tensor without all its strides");
    layout.flags = Number<uint32_t>();
    layout.format = Text();
    return layout;
  }
  void End() const {
    if (!rest_.empty()) Fail("goes on after its end");
  }
  [[noreturn]] static void Fail(const std::string& what) {
    throw Error(ErrorKind::kDevice, "a message between the sides " + what + ".");
  }

 private:
  std::string_view Bytes(uint64_t count) {
    if (count > rest_.size()) Fail("is shorter than it says");
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }
  std::string_view rest_;
};

}  // namespace acltape::replayer::sides
