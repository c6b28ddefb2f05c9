#include "runtime/device/dump/dump_file.h"

#include <cstring>
#include <span>

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
  void Append(const DumpMessage& fields) { text_ += fields.text_; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string ShapeMessage(std::span<const int64_t> shape) {
  DumpMessage sizes;
  for (const int64_t size : shape) sizes.Varint(static_cast<uint64_t>(size));
  DumpMessage message;
  message.Bytes(1, sizes.text());
  return message.text();
}

// Holds what a message says of a tensor.
struct TensorFacts {
  aclDataType type;
  aclFormat format;
  std::span<const int64_t> shape;
  std::span<const int64_t> original_shape;
  size_t bytes;
  bool is_output;
};

std::string TensorMessage(const TensorFacts& tensor) {
  const uint32_t size_field = tensor.is_output ? 6 : 5;
  DumpMessage message;
  message.Number(1, DumpTypeOf(tensor.type));
  message.Number(2, DumpFormatOf(tensor.format));
  message.Bytes(3, ShapeMessage(tensor.shape));
  message.Number(size_field, tensor.bytes);
  message.Bytes(size_field + 1, ShapeMessage(tensor.original_shape));
  return message.text();
}

DumpMessage BeginMessage(uint64_t time_us) {
  DumpMessage message;
  message.Bytes(1, "2.0");
  message.Number(2, time_us);
  return message;
}

std::string FileOf(const DumpMessage& message, const std::string& data) {
  const uint64_t length = message.text().size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + message.text() + data;
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
  DumpMessage message = BeginMessage(time_us);
  std::string data;
  for (const SoftTensor& tensor : tensors) {
    const std::string bytes = DenseBytes(tensor);
    const std::span shape(tensor.sizes, tensor.rank);
    message.Bytes(tensor.is_output ? 3 : 4, TensorMessage({tensor.type, tensor.format, shape, shape,
                                                           bytes.size(), tensor.is_output}));
    data += bytes;
  }
  message.Bytes(6, op);
  return FileOf(message, data);
}

std::string SavedFileOf(const char* name, const std::string& tag,
                        const std::vector<SavedTensor>& tensors, uint64_t time_us) {
  using Role = SavedTensor::Role;
  DumpMessage message = BeginMessage(time_us);
  DumpMessage workspaces;
  std::string data;
  // Readers take the data of all inputs first, then that of outputs, then that of workspaces.
  for (const Role role : {Role::kInput, Role::kOutput, Role::kWorkspace}) {
    for (const SavedTensor& tensor : tensors) {
      if (tensor.role != role) continue;
      data.append(static_cast<const char*>(tensor.first), tensor.bytes);
      const bool is_output = role == Role::kOutput;
      if (role == Role::kWorkspace) {
        DumpMessage workspace;
        workspace.Number(3, tensor.bytes);
        workspaces.Bytes(8, workspace.text());
      } else {
        message.Bytes(is_output ? 3 : 4,
                      TensorMessage({tensor.type, tensor.format, tensor.shape,
                                     tensor.original_shape, tensor.bytes, is_output}));
      }
    }
  }
  message.Bytes(6, name);
  if (!tag.empty()) {
    DumpMessage attribute;
    attribute.Bytes(1, "userTag");
    attribute.Bytes(2, tag);
    message.Bytes(7, attribute.text());
  }
  message.Append(workspaces);
  return FileOf(message, data);
}

}  // namespace acltape::device
