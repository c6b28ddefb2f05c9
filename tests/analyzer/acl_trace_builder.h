// Writes traces of ACL programs by hand, call by call, as docs/schema.md describes calls of the ACL
// level ("Calls of the ACL level").
//
//   AclTraceBuilder trace(path);
//   const int64_t stream = trace.NewStream();
//   const Tensor a = trace.Device({4}), b = trace.Device({4});
//   trace.Upload(a, Floats{1, 2, 3, 4}, stream);
//   trace.Op("aclnnRelu", stream, {In("self", a), Out("out", b)}).After("out", Floats{1, 2, 3, 4});
//   trace.Download(b, Floats{1, 2, 3, 4}, stream);
//   trace.Synchronize(stream);
#pragma once

#include <bit>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/analyzer/trace_builder.h"

namespace acltape::test {

// aclScalar of a real type; the bits of the value as a double are its integer.
inline Value Scalar(const std::string& name, double real, const std::string& dtype = "float32") {
  Value value{name, storage::Direction::kIn, storage::ValueKind::kScalar};
  value.real = real;
  value.integer = std::bit_cast<int64_t>(real);
  value.text = dtype;
  return value;
}
inline Value ScalarInt(const std::string& name, int64_t integer,
                       const std::string& dtype = "int64") {
  Value value{name, storage::Direction::kIn, storage::ValueKind::kScalar};
  value.integer = integer;
  value.text = dtype;
  return value;
}
inline Value Reals(const std::string& name, const std::vector<double>& reals) {
  Value value{name, storage::Direction::kIn, storage::ValueKind::kRealList};
  value.reals = reals;
  return value;
}
inline Value Bools(const std::string& name, const std::vector<int64_t>& flags) {
  Value value{name, storage::Direction::kIn, storage::ValueKind::kBoolList};
  value.integers = flags;
  return value;
}
inline Value OutList(const std::string& name, const std::vector<Tensor>& tensors) {
  Value value = List(name, tensors);
  value.direction = storage::Direction::kOut;
  return value;
}

class AclTraceBuilder : public TraceBuilder {
 public:
  explicit AclTraceBuilder(const std::string& path) : TraceBuilder(path) {
    writer_.AddProcess(1, 100, "program");
    writer_.AddThread(1, 1, 100, "main");
  }

  // Memory, by aclrtMalloc and aclrtMallocHost. `address` 0: one of its own.
  Tensor Device(const std::vector<int64_t>& shape, storage::DType dtype = storage::DType::kFloat32,
                int64_t address = 0) {
    return Allocate("aclrtMalloc", "devPtr", shape, dtype, 1, address);
  }
  Tensor Pinned(const std::vector<int64_t>& shape,
                storage::DType dtype = storage::DType::kFloat32) {
    return Allocate("aclrtMallocHost", "hostPtr", shape, dtype, 0, 0);
  }
  void Free(const Tensor& tensor) { Interface("aclrtFree", {In("devPtr", Bytes(tensor))}); }

  int64_t NewStream() {
    storage::Handle row;
    row.id = ++last_stream_;
    row.process_id = 1;
    row.handle = 0x5000 + row.id;
    row.create_call = last_call_ + 1;
    writer_.AddStream(row);
    Interface("aclrtCreateStream", {Int("stream", row.id)}, row.id);
    return row.id;
  }
  // `flags` 0x20: an external event of the old kind, else an Ex event.
  int64_t NewEvent(int64_t flags = 0x1) {
    storage::Handle row;
    row.id = ++last_event_;
    row.process_id = 1;
    row.flags = flags;
    row.create_call = last_call_ + 1;
    writer_.AddEvent(row);
    Interface(flags == 0x20 ? "aclrtCreateEventWithFlag" : "aclrtCreateEventExWithFlag",
              {Int("event", row.id), Int("flag", flags)});
    return row.id;
  }

  // An event that the program created before the recording began.
  int64_t OlderEvent(int64_t flags) {
    storage::Handle row;
    row.id = ++last_event_;
    row.process_id = 1;
    row.flags = flags;
    writer_.AddEvent(row);
    return row.id;
  }

  // A call of the interface. Work on a capturing stream belongs to its model.
  AclTraceBuilder& Interface(const std::string& name, const std::vector<Value>& arguments,
                             int64_t stream = 0, int status = 0) {
    storage::Op op;
    op.dialect = name.rfind("aclmdlRI", 0) == 0 ? "aclmdlRI" : "aclrt";
    op.name = name;
    return AddAcl(op, arguments, stream, status);
  }
  AclTraceBuilder& Op(const std::string& name, int64_t stream, std::vector<Value> arguments,
                      int status = 0) {
    return Launch(name, stream, std::move(arguments), None("workspace"), status);
  }
  AclTraceBuilder& OpWithWorkspace(const std::string& name, int64_t stream,
                                   std::vector<Value> arguments, const Tensor& workspace) {
    return Launch(name, stream, std::move(arguments), In("workspace", Bytes(workspace)), 0);
  }
  AclTraceBuilder& Launch(const std::string& name, int64_t stream, std::vector<Value> arguments,
                          Value workspace, int status) {
    storage::Op op;
    op.dialect = "aclnn";
    op.name = name;
    arguments.push_back(std::move(workspace));
    // Another one for each launch, or none, so that equal launches share a signature.
    if (executors_) arguments.push_back(Int("executor", 0x7000 + last_call_));
    leaf_ = true;
    AddAcl(op, arguments, stream, status);
    leaf_ = false;
    return *this;
  }

  // Host memory that is no buffer to the device; stream 0: the host waits.
  template <typename T>
  AclTraceBuilder& Upload(const Tensor& to, const std::vector<T>& content, int64_t stream = 0,
                          bool payload = true) {
    Copy(Out("dst", Bytes(to)), Int("src", 0x900000), Size(content), 1, stream);
    Kept(2, false, content, payload);
    return *this;
  }
  template <typename T>
  AclTraceBuilder& Download(const Tensor& from, const std::vector<T>& content, int64_t stream = 0,
                            bool payload = true) {
    Copy(Int("dst", 0x900000), In("src", Bytes(from)), Size(content), 2, stream);
    Kept(0, true, content, payload);
    return *this;
  }
  // Between pinned host memory and the device. Of a captured copy the trace keeps no content.
  template <typename T>
  AclTraceBuilder& UploadPinned(const Tensor& to, const Tensor& pinned,
                                const std::vector<T>& content, int64_t stream) {
    const Tensor source = Bytes(pinned);
    Copy(Out("dst", Bytes(to)), In("src", source), Size(content), 1, stream);
    if (capturing_.count(stream) == 0) {
      Snapshot(2, false, {source.buffer, writer_.InternLayout(source.layout)}, content, true, 0);
    }
    return *this;
  }
  template <typename T>
  AclTraceBuilder& DownloadPinned(const Tensor& pinned, const Tensor& from,
                                  const std::vector<T>& content, int64_t stream) {
    Copy(Out("dst", Bytes(pinned)), In("src", Bytes(from)), Size(content), 2, stream);
    Kept(0, true, content, true);
    return *this;
  }
  AclTraceBuilder& Copy(const Value& to, const Value& from, int64_t bytes, int kind,
                        int64_t stream) {
    std::vector<Value> arguments = {to, Int("destMax", bytes), from, Int("count", bytes),
                                    Int("kind", kind)};
    if (stream != 0) arguments.push_back(Int("stream", stream));
    return Interface(stream == 0 ? "aclrtMemcpy" : "aclrtMemcpyAsync", arguments, stream);
  }

  AclTraceBuilder& Synchronize(int64_t stream) {
    return Interface("aclrtSynchronizeStream", {Int("stream", stream)}, stream);
  }
  void Record(int64_t event, int64_t stream) {
    Interface("aclrtRecordEvent", {Int("event", event), Int("stream", stream)}, stream);
    const auto capture = capturing_.find(stream);
    if (capture != capturing_.end()) event_model_[event] = capture->second;
  }
  void Wait(int64_t stream, int64_t event) {
    const auto model = event_model_.find(event);
    if (model != event_model_.end()) capturing_[stream] = model->second;  // rule CAP-41
    Interface("aclrtStreamWaitEvent", {Int("stream", stream), Int("event", event)}, stream);
  }
  void Reset(int64_t event, int64_t stream) {
    Interface("aclrtResetEvent", {Int("event", event), Int("stream", stream)}, stream);
  }

  void BeginCapture(int64_t stream) {
    capturing_[stream] = ++last_model_;
    capture_begin_[last_model_] = last_call_ + 1;
    Interface("aclmdlRICaptureBegin", {Int("stream", stream), Int("mode", 1)}, stream);
  }
  int64_t EndCapture(int64_t stream, int status = 0) {
    const int64_t model = capturing_.at(stream);
    Interface("aclmdlRICaptureEnd",
              {Int("stream", stream), Int("modelRI", status == 0 ? model : 0)}, stream, status);
    std::erase_if(capturing_, [&](const auto& entry) { return entry.second == model; });
    std::erase_if(event_model_, [&](const auto& entry) { return entry.second == model; });
    storage::Handle row;
    row.id = model;
    row.process_id = 1;
    row.mode = "thread_local";
    row.create_call = capture_begin_.at(model);
    row.end_call = last_call_;
    writer_.AddModel(row);
    return model;
  }
  AclTraceBuilder& Execute(int64_t model, int64_t stream) {
    return Interface("aclmdlRIExecuteAsync", {Int("modelRI", model), Int("stream", stream)},
                     stream);
  }

  // The whole buffer after the last call.
  template <typename T>
  AclTraceBuilder& AfterWhole(const Tensor& tensor, const std::vector<T>& content) {
    const Tensor whole = Bytes(tensor);
    Snapshot(-1, true, {whole.buffer, writer_.InternLayout(whole.layout)}, content, true, 0);
    return *this;
  }

  // The bytes of the tensor's range before the last call.
  template <typename T>
  void BeforeRange(const Tensor& tensor, const std::vector<T>& content) {
    const Tensor range = Bytes(tensor);
    Snapshot(-1, false, {range.buffer, writer_.InternLayout(range.layout)}, content, true, 0);
  }

  // One tensor of a list that the last call wrote.
  template <typename T>
  void AfterElement(const std::string& name, size_t element, const std::vector<T>& content) {
    const auto& [position, value] = arguments_.at(name);
    const Tensor& tensor = *value.tensors.at(element);
    Snapshot(position, true, {tensor.buffer, writer_.InternLayout(tensor.layout)}, content, true,
             tensor.layout.IsDense() ? 0 : 1);
  }

  // The host side of the last call's copy, as kept.
  template <typename T>
  void KeptBefore(int position, const std::vector<T>& content) {
    Kept(position, false, content, true);
  }
  template <typename T>
  void KeptAfter(int position, const std::vector<T>& content) {
    Kept(position, true, content, true);
  }

  // A tensor of PyTorch at a place of a block, `offset` in bytes, and the place as calls of the
  // interface name it.
  struct InBlock {
    Tensor tensor;
    Tensor place;
  };
  InBlock NewInBlock(const Tensor& block, const std::vector<int64_t>& shape, int64_t offset) {
    InBlock made;
    made.tensor.layout.dtype = made.place.layout.dtype = block.layout.dtype;
    made.tensor.layout.shape = made.place.layout.shape = shape;
    made.tensor.layout.strides = made.place.layout.strides = RowMajor(shape);
    made.place.layout.byte_offset = offset;
    made.place.buffer = block.buffer;
    made.tensor.buffer = ++last_buffer_;
    storage::Buffer row;
    row.buffer_id = made.tensor.buffer;
    row.address = 0x10000 * block.buffer + offset;
    row.bytes = made.tensor.layout.EndByte();
    row.device = 1;
    row.alloc_call = last_call_ + 1;
    row.layer = storage::BufferLayer::kTensor;
    row.block_id = block.buffer;
    writer_.AddBuffer(row);
    bytes_[made.tensor.buffer] = row.bytes;
    return made;
  }
  // Calls of the interface from now on are made inside this leaf of PyTorch; 0: inside none.
  void Leaf(int64_t leaf) { parent_ = leaf; }

  void LeaveOutExecutors() { executors_ = false; }

  // Calls from now on are of this thread.
  void Thread(int64_t thread) {
    thread_ = thread;
    writer_.AddThread(thread, 1, 99 + thread, "thread");
  }
  // Calls from now on are of a thread that was added to the writer.
  void ThreadOf(int64_t thread) { thread_ = thread; }
  // The next call ends only after the calls until EndLongWait.
  void BeginLongWait() { long_wait_ = true; }
  void EndLongWait() { last_call_ += 1000; }
  // The call that was added last.
  int64_t last_call() const { return last_call_; }

  // All bytes of the tensor, as interface calls name memory.
  Tensor Bytes(const Tensor& tensor) const {
    Tensor bytes;
    bytes.buffer = tensor.buffer;
    bytes.layout.dtype = storage::DType::kUint8;
    const int64_t first = tensor.layout.FirstByte();
    bytes.layout.byte_offset = first;
    bytes.layout.shape = {tensor.layout.EndByte() - first};
    bytes.layout.strides = {1};
    return bytes;
  }

  template <typename T>
  static int64_t Size(const std::vector<T>& content) {
    return static_cast<int64_t>(content.size() * sizeof(T));
  }

 private:
  Tensor Allocate(const char* function, const char* argument, const std::vector<int64_t>& shape,
                  storage::DType dtype, int device, int64_t address) {
    Tensor tensor;
    tensor.layout.dtype = dtype;
    tensor.layout.shape = shape;
    tensor.layout.strides = RowMajor(shape);
    tensor.buffer = ++last_buffer_;
    storage::Buffer row;
    row.buffer_id = tensor.buffer;
    row.address = address != 0 ? address : 0x10000 * tensor.buffer;
    row.bytes = tensor.layout.EndByte();
    row.device = device;
    row.alloc_call = last_call_ + 1;
    writer_.AddBuffer(row);
    bytes_[tensor.buffer] = row.bytes;
    Interface(function, {Out(argument, Bytes(tensor)), Int("size", row.bytes), Int("policy", 0)});
    return tensor;
  }

  AclTraceBuilder& AddAcl(const storage::Op& op, const std::vector<Value>& arguments,
                          int64_t stream, int status) {
    storage::Call call;
    call.leaf = leaf_;
    call.stream_id = stream;
    call.status = status;
    call.thread_id = thread_;
    if (parent_ != 0) call.parent_id = parent_;
    if (long_wait_) call.end_ns = 1000 * (last_call_ + 500);
    long_wait_ = false;
    const auto capture = capturing_.find(stream);
    if (capture != capturing_.end()) call.model_id = capture->second;
    Add(op, call, arguments);
    return *this;
  }

  template <typename T>
  void Kept(int position, bool after, const std::vector<T>& content, bool payload) {
    storage::Layout layout;
    layout.dtype = storage::DType::kUint8;
    layout.shape = {Size(content)};
    layout.strides = {1};
    Snapshot(position, after, {0, writer_.InternLayout(layout)}, content, payload, 0);
  }

  bool executors_ = true;
  bool leaf_ = false;
  bool long_wait_ = false;
  int64_t thread_ = 1;
  int64_t parent_ = 0;
  int64_t last_stream_ = 0;
  int64_t last_event_ = 0;
  int64_t last_model_ = 0;
  std::map<int64_t, int64_t> capturing_;      // stream to model
  std::map<int64_t, int64_t> capture_begin_;  // by model
  std::map<int64_t, int64_t> event_model_;    // event to the capture that it belongs to
};

}  // namespace acltape::test
