// The rows of a trace as plain values: the words that the reader gives out and that the analyzer,
// the replayer and the commands share. Column names in docs/schema.md are the same words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meaning/recorded_values.h"

namespace acltape::storage {

using meaning::DType;
using meaning::DTypeBytes;
using meaning::DTypeFromName;
using meaning::DTypeName;

// dtype, shape and strides (in elements) at a byte offset of a buffer. Interned per trace.
struct Layout {
  int64_t layout_id = 0;
  DType dtype = DType::kUndefined;
  int64_t byte_offset = 0;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  uint32_t flags = 0;  // meaning::TensorFlags
  std::string
      format;  // format of an ACL tensor that is not plain: "NCHW", "FRACTAL_NZ"; else empty
  // The tensor's memory where the recorder does not know it: "cuda:0", "mkldnn"; else empty.
  std::string memory;

  int64_t ElementCount() const;
  // First byte and one past the last byte that the view touches, relative to the buffer.
  int64_t FirstByte() const { return byte_offset; }
  int64_t EndByte() const;
  // True when the elements cover a range of addresses without gaps or overlaps, in any order of
  // dimensions. The packed content of such a tensor is in order of address, else row-major.
  bool IsDense() const;
};

// A tensor is a layout over a buffer. tensor_id = buffer_id << 24 | layout_id, as in the views.
struct TensorRef {
  int64_t buffer_id = 0;  // 0: undefined tensor or none
  int64_t layout_id = 0;
  int64_t tensor_id() const { return buffer_id << 24 | layout_id; }
  bool defined() const { return buffer_id != 0 || layout_id != 0; }
};

// A tensor in a signature, the arguments that many calls share. It names one slot of the list of
// buffers that each of these calls has (Call::buffers).
struct SlotRef {
  static constexpr int32_t kNoBuffer = -1;
  int32_t slot = kNoBuffer;  // index in Call::buffers; kNoBuffer: undefined tensor or none
  int64_t layout_id = 0;
  bool has_buffer() const { return slot != kNoBuffer; }
  bool defined() const { return has_buffer() || layout_id != 0; }
};

enum class Direction : uint8_t { kIn = 0, kOut = 1, kInOut = 2 };

enum class ValueKind : uint8_t {
  kNone,
  kTensor,
  kTensorList,
  kInt,
  kReal,
  kBool,
  kText,
  kIntList,
  kRealList,
  kBoolList,
  kDtype,         // integer holds the DType code
  kDevice,        // text
  kMemoryFormat,  // integer, as PyTorch numbers it (0 contiguous, 1 preserve, 2 channels_last, 3
                  // 3d)
  kLayout,        // integer
  kComplex,       // reals: real and imaginary part
  kOther,         // text says what it was
  kScalar,     // aclScalar: text is its dtype; integer the value or, of a real dtype, the bits of
               // the value as a double, which `real` holds too; complex: reals
  kScalarList  // text: the dtypes, separated by commas; integers as for kScalar (the file keeps
               // numbers: scalar_list.h)
};
inline constexpr size_t kValueKinds = 18;
std::string_view ValueKindName(ValueKind kind);  // "tensor", "int_list", ...

// All of an argument except its tensors.
struct ArgumentValue {
  int position = 0;  // schema arguments from 0, then returns
  std::string name;  // schema name; returns: "out", or "out0", "out1" ...
  Direction direction = Direction::kIn;
  ValueKind kind = ValueKind::kNone;
  int64_t integer = 0;  // kInt, kBool, kDtype, kMemoryFormat, kLayout, kScalar
  double real = 0;
  std::string text;
  std::vector<int64_t> integers;  // kIntList, kBoolList, kScalarList
  std::vector<double> reals;      // kRealList, kComplex

  bool HoldsTensors() const { return kind == ValueKind::kTensor || kind == ValueKind::kTensorList; }
};

// An argument of a call. It has one tensor for kTensor, which may be undefined, and any number for
// a list.
struct Argument : ArgumentValue {
  std::vector<TensorRef> tensors;
};

// An argument of a signature, with slots in place of buffers.
struct SignatureArgument : ArgumentValue {
  std::vector<SlotRef> tensors;
};

struct Op {
  int64_t op_id = 0;
  std::string dialect;   // "aten", "aclnn", ...
  std::string name;      // "aten::add"
  std::string overload;  // "Tensor"
  std::string schema;
  // "aten::add.Tensor"; without overload "aten::relu".
  std::string FullName() const { return overload.empty() ? name : name + "." + overload; }
};

enum class Phase : uint8_t { kForward = 0, kBackward = 1, kOptimizer = 2 };

struct Call {
  int64_t call_id = 0;
  int64_t parent_id = 0;  // 0: none
  int64_t op_id = 0;
  int64_t signature_id = 0;  // calls with the same op, scalars and layouts share it
  int64_t thread_id = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int32_t status = 0;
  Phase phase = Phase::kForward;
  bool leaf = false;
  std::vector<int64_t> buffers;  // buffer of each slot of the signature
  int64_t scope_id = 0;          // innermost user or module range, 0: none
  // Set for calls of the ACL interface:
  int64_t stream_id = 0;   // the stream that the call names, 0: none
  int64_t model_id = 0;    // the capture that stored its task, 0: none
  int64_t prepare_ns = 0;  // first phase of an operator; 0: none, a repeated launch has none
  int64_t launch_ns = 0;   // second phase
  // Where a leaf ran, as in Buffer::device: 0 the host, n + 1 ACL device n.
  static constexpr int kDeviceNotKnown = -1;
  int device = kDeviceNotKnown;
};

// A stream, an event or a model (a capture and the graph it made) of a recorded program. Ids are
// those that arguments of ACL calls hold in place of handles; they are never used again.
struct Handle {
  int64_t id = 0;
  int64_t process_id = 0;
  int64_t handle = 0;  // address; 0 for a default stream
  int64_t device = 0;  // device of a stream
  int64_t flags = 0;   // flags of a stream or an event, as the program gave them
  std::string mode;    // capture mode of a model: "global", "thread_local", "relaxed"
  int64_t create_call =
      0;  // the call that created it, or began the capture; 0: outside of the recording
  int64_t end_call = 0;      // for a model, the call that ended the capture
  int64_t destroy_call = 0;  // 0: never
};

// A communicator of HCCL, as one process knows it. The ranks of one have the same name.
struct Communicator {
  int64_t id = 0;
  int64_t process_id = 0;
  int64_t handle = 0;  // address
  std::string name;
  int64_t rank = 0;   // rank of the process in the communicator
  int64_t ranks = 0;  // how many it has
};

// The time that the work of a call took on the device.
struct DeviceSpan {
  int64_t call_id = 0;
  int64_t stream_id = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t error_ns = 0;  // it lies at most so much earlier or later
};

// Memory that the program took through the ACL interface, and the storages of tensors that its
// framework made of such blocks, or of the host's memory.
enum class BufferLayer : uint8_t { kNotKnown, kBlock, kTensor };

struct Buffer {
  int64_t buffer_id = 0;
  int64_t address = 0;
  int64_t bytes = 0;
  int64_t alloc_call = 0;  // 0: outside any call
  int64_t free_call = 0;   // 0: never, or outside any call
  bool foreign = false;    // memory that the framework's allocator did not give
  int device = 0;          // 0: host
  int64_t alloc_ns = 0;    // 0: unknown
  int64_t free_ns = 0;     // 0: never
  BufferLayer layer = BufferLayer::kNotKnown;
  int64_t block_id = 0;  // the buffer that its memory is a part of, 0: none that is known
};

struct Snapshot {
  int64_t call_id = 0;
  int position = -1;   // -1: the whole buffer
  bool after = false;  // moment
  TensorRef tensor;
  std::string digest;  // 32 hexadecimal digits
  int64_t bytes = 0;
  int packing = 0;           // 0 address order, 1 row-major
  bool changed = false;      // the buffer had changed between recorded calls
  bool has_payload = false;  // the bytes are in the trace
};

// Statistics of the finite elements of a content, read as the type of its tensor.
struct Statistics {
  double min = 0;
  double max = 0;
  double mean = 0;
  double l2 = 0;
  int64_t nan_count = 0;
  int64_t inf_count = 0;
  DType dtype = DType::kUndefined;
};

// A stretch of time in which the calls of a process were recorded. Times are absolute.
struct RecordedWindow {
  int64_t window_id = 0;  // from 1 on, in the order in which they opened
  int64_t process_id = 0;
  int64_t first_call = 0;
  int64_t last_call = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

struct Step {
  int64_t step = 0;
  int64_t first_call = 0;
  int64_t last_call = 0;
  std::string found_by;  // "range:NAME", "period", ...
};

enum class Severity : uint8_t { kInfo = 0, kNotice = 1, kDataLoss = 2, kError = 3 };
inline constexpr size_t kSeverities = 4;
std::string_view SeverityName(Severity severity);

struct LedgerEntry {
  std::string kind;  // a word with underscores, e.g. "recorder_stall"
  Severity severity = Severity::kInfo;
  int64_t count = 1;
  std::string subject;
  std::string cause;
  std::string remedy;
};

}  // namespace acltape::storage
