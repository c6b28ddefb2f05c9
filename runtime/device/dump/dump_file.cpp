#include "runtime/device/dump/dump_file.h"

#include <cstring>

namespace acltape::device {
namespace {

// Numbers of types in the message.
struct DumpType {
  aclDataType type;
  uint64_t number;
};

constexpr DumpType kDumpTypes[] = {
    {ACL_FLOAT, 1},  {ACL_FLOAT16, 2}, {ACL_INT8, 3},    {ACL_UINT8, 4},      {ACL_INT16, 5},
    {ACL_UINT16, 6}, {ACL_INT32, 7},   {ACL_INT64, 8},   {ACL_UINT32, 9},     {ACL_UINT64, 10},
    {ACL_BOOL, 11},  {ACL_DOUBLE, 12}, {ACL_STRING, 13}, {ACL_COMPLEX64, 16}, {ACL_COMPLEX128, 17},
    {ACL_BF16, 27},  {ACL_INT4, 28},   {ACL_UINT1, 29},
};

constexpr uint64_t kUndefinedType = 0;
constexpr uint64_t kReservedFormat = 40;

uint64_t DumpTypeOf(aclDataType type) {
  for (const DumpType& row : kDumpTypes) {
    if (row.type == type) return row.number;
  }
  return kUndefinedType;
}

// Formats have the numbers of the interface.
uint64_t DumpFormatOf(aclFormat format) {
  return format == ACL_FORMAT_UNDEFINED ? kReservedFormat : static_cast<uint64_t>(format);
}

// A message of protocol buffers.
class DumpMessage {
 public:
  void Number(uint32_t field, uint64_t value) {
    Varint(field << 3);
    Varint(value);
  }
  void Bytes(uint32_t field, const std::string& value) {
    Varint(field << 3 | 2);
    Varint(value.size());
    text_ += value;
  }
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string ShapeMessage(const SoftTensor& tensor) {
  DumpMessage sizes;
  for (size_t i = 0; i < tensor.rank; ++i) sizes.Varint(static_cast<uint64_t>(tensor.sizes[i]));
  DumpMessage shape;
  shape.Bytes(1, sizes.text());
  return shape.text();
}

std::string TensorMessage(const SoftTensor& tensor, size_t bytes) {
  const std::string shape = ShapeMessage(tensor);
  const uint32_t size_field = tensor.is_output ? 6 : 5;
  DumpMessage message;
  message.Number(1, DumpTypeOf(tensor.type));
  message.Number(2, DumpFormatOf(tensor.format));
  message.Bytes(3, shape);
  message.Number(size_field, bytes);
  message.Bytes(size_field + 1, shape);
  return message.text();
}

void AppendDense(const SoftTensor& tensor, size_t dim, const char* first, std::string* to) {
  if (dim == tensor.rank) {
    to->append(first, tensor.item);
    return;
  }
  const auto step = tensor.strides[dim] * static_cast<int64_t>(tensor.item);
  const int64_t size = tensor.sizes[dim];
  if (dim + 1 == tensor.rank && tensor.strides[dim] == 1) {
    to->append(first, static_cast<size_t>(size) * tensor.item);
    return;
  }
  for (int64_t i = 0; i < size; ++i) AppendDense(tensor, dim + 1, first + i * step, to);
}

}  // namespace

std::string DenseBytes(const SoftTensor& tensor) {
  std::string bytes;
  if (tensor.first == nullptr) return bytes;
  size_t total = tensor.item;
  for (size_t i = 0; i < tensor.rank; ++i) total *= static_cast<size_t>(tensor.sizes[i]);
  if (total == 0) return bytes;
  bytes.reserve(total);
  AppendDense(tensor, 0, static_cast<const char*>(tensor.first), &bytes);
  return bytes;
}

std::string DumpFileOf(const char* op, const std::vector<SoftTensor>& tensors, uint64_t time_us) {
  DumpMessage message;
  message.Bytes(1, "2.0");
  message.Number(2, time_us);
  std::string data;
  for (const SoftTensor& tensor : tensors) {
    const std::string bytes = DenseBytes(tensor);
    message.Bytes(tensor.is_output ? 3 : 4, TensorMessage(tensor, bytes.size()));
    data += bytes;
  }
  message.Bytes(6, op);
  const uint64_t length = message.text().size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + message.text() + data;
}

}  // namespace acltape::device
