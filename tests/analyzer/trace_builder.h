// Writes small traces by hand, leaf by leaf, for the tests of what reads them.
//
//   TraceBuilder trace(path);
//   Tensor x = trace.NewTensor({2, 3});
//   trace.Call("aten::relu", {In("self", x)}, {Out("out", y)}).Before(x, bytes).After("out",
//   bytes); trace.Finish();
#pragma once

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "storage/payload.h"
#include "storage/writer.h"

namespace acltape::test {

// A file that is removed with the object.
class TemporaryTrace {
 public:
  explicit TemporaryTrace(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("acltape-" + name + "-" + std::to_string(getpid()) + ".db")) {
    Remove();
  }
  ~TemporaryTrace() { Remove(); }
  std::string path() const { return path_.string(); }

 private:
  void Remove() const {
    std::error_code ignored;
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::filesystem::remove(path_.string() + suffix, ignored);
    }
  }
  std::filesystem::path path_;
};

struct Tensor {
  int64_t buffer = 0;
  storage::Layout layout;
};

inline std::vector<int64_t> RowMajor(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<int64_t>(shape[d], 1);
  }
  return strides;
}

struct Value {
  std::string name;
  storage::Direction direction = storage::Direction::kIn;
  storage::ValueKind kind = storage::ValueKind::kNone;
  std::vector<std::optional<Tensor>> tensors;
  int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<int64_t> integers;
  std::vector<double> reals;
};

inline Value In(const std::string& name, const Tensor& tensor) {
  return {name, storage::Direction::kIn, storage::ValueKind::kTensor, {tensor}};
}
inline Value Written(const std::string& name, const Tensor& tensor) {
  return {name, storage::Direction::kInOut, storage::ValueKind::kTensor, {tensor}};
}
inline Value Out(const std::string& name, const Tensor& tensor) {
  return {name, storage::Direction::kOut, storage::ValueKind::kTensor, {tensor}};
}
inline Value List(const std::string& name, const std::vector<Tensor>& tensors) {
  Value value{name, storage::Direction::kIn, storage::ValueKind::kTensorList};
  for (const Tensor& tensor : tensors) value.tensors.emplace_back(tensor);
  return value;
}
inline Value Int(const std::string& name, int64_t integer) {
  Value value{name, storage::Direction::kIn, storage::ValueKind::kInt};
  value.integer = integer;
  return value;
}
inline Value Bool(const std::string& name, bool flag) {
  Value value = Int(name, flag);
  value.kind = storage::ValueKind::kBool;
  return value;
}
inline Value Real(const std::string& name, double real,
                  storage::Direction direction = storage::Direction::kIn) {
  Value value{name, direction, storage::ValueKind::kReal};
  value.real = real;
  return value;
}
inline Value Ints(const std::string& name, const std::vector<int64_t>& integers) {
  Value value{name, storage::Direction::kIn, storage::ValueKind::kIntList};
  value.integers = integers;
  return value;
}
inline Value Text(const std::string& name, const std::string& text) {
  Value value{name, storage::Direction::kIn, storage::ValueKind::kText};
  value.text = text;
  return value;
}
inline Value None(const std::string& name) { return {name}; }

class TraceBuilder {
 public:
  explicit TraceBuilder(const std::string& path) : writer_(path, Options()) {}

  // With the address 0 it gets one that no other tensor has.
  Tensor NewTensor(const std::vector<int64_t>& shape,
                   storage::DType dtype = storage::DType::kFloat32, int64_t address = 0,
                   int device = 0) {
    Tensor tensor;
    tensor.layout.dtype = dtype;
    tensor.layout.shape = shape;
    tensor.layout.strides = RowMajor(shape);
    tensor.buffer = ++last_buffer_;
    storage::Buffer row;
    row.buffer_id = tensor.buffer;
    row.address = address != 0 ? address : 0x1000 * tensor.buffer;
    row.bytes = tensor.layout.ElementCount() * storage::DTypeBytes(dtype);
    row.device = device;
    writer_.AddBuffer(row);
    bytes_[tensor.buffer] = row.bytes;
    return tensor;
  }

  // A tensor over the same buffer with another layout; `offset` in elements.
  static Tensor View(const Tensor& tensor, const std::vector<int64_t>& shape,
                     const std::vector<int64_t>& strides, int64_t offset = 0) {
    Tensor view = tensor;
    view.layout.shape = shape;
    view.layout.strides = strides;
    view.layout.byte_offset += offset * storage::DTypeBytes(tensor.layout.dtype);
    return view;
  }

  // Adds a leaf; `name` with overload ("aten::add.Tensor"), or a whole schema.
  TraceBuilder& Call(const std::string& name, std::vector<Value> arguments,
                     const std::vector<Value>& results = {}) {
    return Call(storage::Phase::kForward, name, std::move(arguments), results);
  }
  TraceBuilder& Call(storage::Phase phase, const std::string& name, std::vector<Value> arguments,
                     const std::vector<Value>& results = {}) {
    arguments.insert(arguments.end(), results.begin(), results.end());
    storage::Op op;
    op.dialect = "aten";
    const std::string plain = name.substr(0, name.find('('));
    const size_t dot = plain.find('.');
    op.name = plain.substr(0, dot);
    if (dot != std::string::npos) op.overload = plain.substr(dot + 1);
    op.schema = name;
    storage::Call call;
    call.leaf = true;
    call.phase = phase;
    call.device = device_;
    return Add(op, call, arguments);
  }

  // Calls from now on ran there, as in storage::Call::device. Before the first one it is not known.
  TraceBuilder& On(int device) {
    device_ = device;
    return *this;
  }

  // The whole content of the tensor's buffer before the last call.
  template <typename T>
  TraceBuilder& Before(const Tensor& tensor, const std::vector<T>& content, bool payload = true) {
    storage::Layout whole;
    whole.dtype = tensor.layout.dtype;
    whole.shape = {bytes_.at(tensor.buffer) / storage::DTypeBytes(whole.dtype)};
    whole.strides = {1};
    return Snapshot(-1, false, {tensor.buffer, writer_.InternLayout(whole)}, content, payload, 0);
  }

  // The packed content of a result of the last call, by name.
  template <typename T>
  TraceBuilder& After(const std::string& name, const std::vector<T>& content, bool payload = true) {
    const auto& [position, value] = arguments_.at(name);
    const Tensor& tensor = *value.tensors[0];
    return Snapshot(position, true, {tensor.buffer, writer_.InternLayout(tensor.layout)}, content,
                    payload, tensor.layout.IsDense() ? 0 : 1);
  }

  // The line of the program that the next calls come from.
  void Line(const std::string& file, int64_t line) {
    stack_ = line;
    writer_.AddStack(stack_, {{file, line, "forward"}});
  }
  void NoLine() { stack_ = 0; }

  int64_t last_call() const { return last_call_; }
  storage::Writer& writer() { return writer_; }
  void Finish(const std::string& state = "complete") { writer_.Finish(state); }

 protected:
  // Adds a call; sets its id, operator, signature, buffers, and times and thread where not set.
  TraceBuilder& Add(const storage::Op& op, storage::Call call,
                    const std::vector<Value>& arguments) {
    call.call_id = ++last_call_;
    call.op_id = writer_.InternOp(op);
    if (call.thread_id == 0) call.thread_id = 1;
    call.begin_ns = 1000 * last_call_;
    if (call.end_ns == 0) call.end_ns = call.begin_ns + 600;
    std::vector<storage::SignatureArgument> rows;
    arguments_.clear();
    for (const Value& value : arguments) {
      storage::SignatureArgument row;
      row.position = static_cast<int>(rows.size());
      row.name = value.name;
      row.direction = value.direction;
      row.kind = value.kind;
      row.integer = value.integer;
      row.real = value.real;
      row.text = value.text;
      row.integers = value.integers;
      row.reals = value.reals;
      for (const std::optional<Tensor>& tensor : value.tensors) {
        storage::SlotRef ref;
        if (tensor) {
          ref.slot = static_cast<int32_t>(call.buffers.size());
          call.buffers.push_back(tensor->buffer);
          ref.layout_id = writer_.InternLayout(tensor->layout);
        }
        row.tensors.push_back(ref);
      }
      arguments_[value.name] = {row.position, value};
      rows.push_back(std::move(row));
    }
    call.signature_id = Signature(call.op_id, rows);
    writer_.AddCall(call, 0, stack_);
    return *this;
  }

  static storage::Writer::Options Options() {
    storage::Writer::Options options;
    options.overwrite = true;
    return options;
  }

  template <typename T>
  TraceBuilder& Snapshot(int position, bool after, storage::TensorRef tensor,
                         const std::vector<T>& content, bool payload, int packing) {
    storage::Snapshot row;
    row.call_id = last_call_;
    row.position = position;
    row.after = after;
    row.tensor = tensor;
    row.bytes = static_cast<int64_t>(content.size() * sizeof(T));
    row.digest = storage::DigestOf(content.data(), row.bytes);
    row.packing = packing;
    row.has_payload = payload;
    if (payload && !writer_.HasPayload(row.digest)) {
      writer_.AddPayload(row.digest, content.data(), row.bytes);
    }
    writer_.AddSnapshot(row, std::nullopt);
    return *this;
  }

 private:
  int device_ = storage::Call::kDeviceNotKnown;

  // Equal calls share a signature, as the collector makes it.
  int64_t Signature(int64_t op_id, const std::vector<storage::SignatureArgument>& rows) {
    std::string key = std::to_string(op_id);
    for (const storage::SignatureArgument& row : rows) {
      key += "|" + row.name + std::to_string(row.integer) + "," + std::to_string(row.real) + "," +
             row.text;
      for (const int64_t integer : row.integers) key += " " + std::to_string(integer);
      for (const double real : row.reals) key += " " + std::to_string(real);
      for (const storage::SlotRef& tensor : row.tensors) {
        key += "t" + std::to_string(tensor.slot) + "/" + std::to_string(tensor.layout_id);
      }
    }
    auto [entry, created] = signatures_.try_emplace(key, 0);
    if (created) entry->second = writer_.AddSignature(op_id, rows);
    return entry->second;
  }

  std::map<std::string, int64_t> signatures_;

 protected:
  storage::Writer writer_;
  int64_t last_buffer_ = 0;
  int64_t last_call_ = 0;
  int64_t stack_ = 0;  // 0: no line
  std::map<int64_t, int64_t> bytes_;
  std::map<std::string, std::pair<int, Value>> arguments_;
};

}  // namespace acltape::test
