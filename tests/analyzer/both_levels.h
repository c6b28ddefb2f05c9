// Writes traces of both levels: leaves with tensors on a device, and the calls that they launched.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/analyzer/trace_builder.h"

namespace acltape::test {

class BothLevels : public TraceBuilder {
 public:
  using TraceBuilder::TraceBuilder;

  // A tensor of PyTorch at an address of the device.
  Tensor OnDevice(const std::vector<int64_t>& shape, int64_t address) {
    return NewTensor(shape, storage::DType::kFloat32, address, /*device=*/1);
  }
  // The tensor as calls of the device name it: a place in a block of the device's allocator.
  Tensor InBlock(const Tensor& block, const std::vector<int64_t>& shape, int64_t offset) {
    Tensor tensor = block;
    tensor.layout.shape = shape;
    tensor.layout.strides = RowMajor(shape);
    tensor.layout.byte_offset = offset;
    return tensor;
  }
  static constexpr int64_t kProgram = 1;  // the thread that runs leaves
  static constexpr int64_t kQueue = 2;    // the thread of the adapter

  // A call that the leaf `parent` launched.
  BothLevels& Launch(int64_t parent, const std::string& name, const std::vector<Value>& values,
                     const std::string& dialect = "aclnn", int64_t thread = kQueue) {
    storage::Op op;
    op.dialect = dialect;
    op.name = name;
    op.schema = name;
    storage::Call call;
    call.leaf = dialect == "aclnn";
    call.parent_id = parent;
    call.stream_id = 1;
    call.thread_id = thread;
    Add(op, call, values);
    return *this;
  }
  // A leaf of another process.
  void CallElsewhere(const std::string& name, const std::vector<Value>& values) {
    constexpr int64_t kThread = 9;
    writer().AddProcess(2, 200, "other", std::nullopt);
    writer().AddThread(kThread, 2, 200, "main");
    storage::Op op;
    op.dialect = "aten";
    op.name = name;
    op.schema = name;
    storage::Call call;
    call.leaf = true;
    call.thread_id = kThread;
    Add(op, call, values);
  }
  // The content that the last call left in one of its tensors.
  void Result(int position, const Tensor& tensor, const std::vector<float>& values) {
    Snapshot(position, true, {tensor.buffer, writer().InternLayout(tensor.layout)}, values, true,
             tensor.layout.IsDense() ? 0 : 1);
  }
  // The bytes that the last call, a copy, read on the host.
  void FromHost(const Tensor& host, const std::vector<float>& values) {
    storage::Snapshot read;
    read.call_id = last_call();
    read.position = 2;
    read.tensor = {0, writer().InternLayout(host.layout)};
    read.bytes = static_cast<int64_t>(values.size() * sizeof(float));
    read.digest = storage::DigestOf(values.data(), read.bytes);
    writer().AddPayload(read.digest, values.data(), read.bytes);
    writer().AddSnapshot(read, std::nullopt);
  }
};

}  // namespace acltape::test
