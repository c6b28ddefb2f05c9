#include "storage/row_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

#include "storage/json_text.h"
#include "storage/scalar_list.h"

namespace acltape::storage {
namespace {

// Sums and products of sizes that a file names do not fit in 64 bits.
__extension__ using Wide = __int128;

constexpr int64_t kMostSmall =
    (int64_t{1} << 31) - 1;  // limit of numbers that programs keep in 32 bits
constexpr int64_t kMostPosition = 4095;
constexpr int64_t kMostSlot = 65535;
constexpr int64_t kMostDevice = 32767;
constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMostTensorId = kAny;

template <typename T, size_t N>
std::optional<T> Named(std::string_view name, std::string_view (*name_of)(T)) {
  for (size_t i = 0; i < N; ++i) {
    if (name_of(static_cast<T>(i)) == name) return static_cast<T>(i);
  }
  return std::nullopt;
}

std::vector<int64_t> TakeIntegers(const CheckedRow& row, int column, std::string_view name) {
  std::vector<int64_t> values;
  if (!ParseIntegers(row.TextOrNull(column, name), values)) {
    row.RefuseValue(column, name, "where a list of whole numbers is expected");
  }
  return values;
}

std::vector<double> TakeReals(const CheckedRow& row, int column, std::string_view name) {
  std::vector<double> values;
  if (!ParseReals(row.TextOrNull(column, name), values)) {
    row.RefuseValue(column, name, "where a list of numbers is expected");
  }
  return values;
}

std::vector<int64_t> TakeSizes(const CheckedRow& row, int column, std::string_view name) {
  if (row.IsNull(column)) row.RefuseValue(column, name, "where a list of sizes is expected");
  std::vector<int64_t> sizes = TakeIntegers(row, column, name);
  if (sizes.size() > kMostDimensions) {
    row.RefuseValue(column, name,
                    fmt::format("which has {} dimensions where {} are the most", sizes.size(),
                                kMostDimensions));
  }
  for (const int64_t size : sizes) {
    if (size < 0) row.RefuseValue(column, name, "where no number may be negative");
    if (size > kMostBytes) row.RefuseValue(column, name, "which is larger than any memory");
  }
  return sizes;
}

// Checks that the tensor is not larger than any memory, neither packed nor where it lies.
void CheckSpan(const CheckedRow& row, const Layout& layout) {
  const Wide element = std::max<int64_t>(DTypeBytes(layout.dtype), 1);
  Wide sizes = 1;  // product of the dimensions that have any
  Wide last = 0;   // element, counted from the first
  bool empty = false;
  for (size_t d = 0; d < layout.shape.size(); ++d) {
    empty = empty || layout.shape[d] == 0;
    sizes *= std::max<int64_t>(layout.shape[d], 1);
    if (sizes > kMostBytes) row.RefuseValue(3, "shape", "which is larger than any memory");
    last += Wide{std::max<int64_t>(layout.shape[d], 1) - 1} * layout.strides[d];
    if (last > kMostBytes) break;
  }
  if (!empty && sizes * element > kMostBytes) {
    row.RefuseValue(3, "shape", "which is larger than any memory");
  }
  if (!empty && layout.byte_offset + (last + 1) * element > kMostBytes) {
    row.RefuseValue(4, "strides", "which reach beyond any memory");
  }
}

void TakeTensorList(const CheckedRow& row, SignatureArgument& argument) {
  const std::vector<int64_t> pairs = TakeIntegers(row, 10, "list");
  if (pairs.size() % 2 != 0) {
    row.RefuseValue(10, "list", "where pairs of a slot and a layout are expected");
  }
  for (size_t i = 0; i < pairs.size(); i += 2) {
    const int64_t slot = pairs[i], layout = pairs[i + 1];
    if (slot < -1 || slot > kMostSlot || layout < 0 || layout > kMostLayoutId ||
        (slot >= 0 && layout == 0)) {
      row.RefuseValue(10, "list", "where pairs of a slot and a layout are expected");
    }
    argument.tensors.push_back({static_cast<int32_t>(slot), layout});
  }
}

void TakeTensor(const CheckedRow& row, SignatureArgument& argument) {
  SlotRef tensor;
  tensor.layout_id = row.IntegerOrNull(5, "layout_id", 1, kMostLayoutId);
  if (!row.IsNull(6)) tensor.slot = static_cast<int32_t>(row.Integer(6, "slot", 0, kMostSlot));
  if (tensor.has_buffer() && tensor.layout_id == 0) {
    row.RefuseValue(5, "layout_id", "where the layout of the tensor is expected");
  }
  argument.tensors.push_back(tensor);
}

Handle TakeHandle(const CheckedRow& row, std::string_view id) {
  Handle handle;
  handle.id = row.Id(id);
  handle.process_id = row.IntegerOrNull(1, "process_id", 0, kMostId);
  handle.handle = row.IntegerOrNull(2, "handle", kLeast, kAny);
  return handle;
}

}  // namespace

Op TakeOp(const CheckedRow& row) {
  return {row.Id("op_id"), std::string(row.Text(1, "dialect")), std::string(row.Text(2, "name")),
          std::string(row.TextOrNull(3, "overload")), std::string(row.TextOrNull(4, "schema"))};
}

Layout TakeLayout(const CheckedRow& row) {
  Layout layout;
  layout.layout_id = row.Id("layout_id", kMostLayoutId);
  const std::string_view dtype = row.Text(1, "dtype");
  layout.dtype = DTypeFromName(dtype);
  if (layout.dtype == DType::kUndefined && dtype != DTypeName(DType::kUndefined)) {
    row.RefuseValue(1, "dtype", "which is no element type");
  }
  layout.byte_offset = row.Integer(2, "byte_offset", 0, kMostBytes);
  layout.shape = TakeSizes(row, 3, "shape");
  layout.strides = TakeSizes(row, 4, "strides");
  layout.flags = static_cast<uint32_t>(row.Integer(5, "flags", 0, 255));
  const std::string_view format = row.Text(6, "format");
  if (format != "strided" && format != "opaque") layout.format = format;
  layout.memory = row.TextOrNull(7, "memory");
  // An opaque tensor has no elements at places of a memory; zeros make it one element there.
  if ((layout.flags & meaning::kTensorOpaque) != 0 && layout.strides.empty()) {
    layout.strides.resize(layout.shape.size());
  }
  if (layout.strides.size() != layout.shape.size()) {
    row.RefuseValue(4, "strides",
                    fmt::format("which are {} where its shape has {} dimensions",
                                layout.strides.size(), layout.shape.size()));
  }
  CheckSpan(row, layout);
  return layout;
}

SignatureArgument TakeArgument(const CheckedRow& row, int position) {
  SignatureArgument argument;
  argument.position = static_cast<int>(row.Integer(1, "position", 0, kMostPosition));
  if (argument.position != position) {
    row.RefuseValue(1, "position", fmt::format("where {} follows", position));
  }
  argument.name = row.Text(2, "name");
  const std::string_view direction = row.Text(3, "direction");
  if (direction == "out") {
    argument.direction = Direction::kOut;
  } else if (direction == "inout") {
    argument.direction = Direction::kInOut;
  } else if (direction != "in") {
    row.RefuseValue(3, "direction", "where in, out or inout is expected");
  }
  const auto kind = Named<ValueKind, kValueKinds>(row.Text(4, "kind"), ValueKindName);
  if (!kind) row.RefuseValue(4, "kind", "which is no kind of argument");
  argument.kind = *kind;
  argument.integer = row.IntegerOrNull(7, "integer", kLeast, kAny);
  argument.real = row.RealOrNull(8, "real");
  argument.text = row.TextOrNull(9, "text");
  switch (argument.kind) {
    case ValueKind::kTensor:
      TakeTensor(row, argument);
      break;
    case ValueKind::kTensorList:
      TakeTensorList(row, argument);
      break;
    case ValueKind::kReal:
      if (row.IsNull(8)) argument.real = std::numeric_limits<double>::quiet_NaN();
      if (argument.text == "-0.0") argument.real = -0.0;
      argument.text.clear();
      break;
    case ValueKind::kScalar:
      argument.reals = TakeReals(row, 10, "list");
      // NaN and minus zero are kept in the integer alone.
      if (argument.reals.empty() && IsRealDtype(argument.text)) {
        argument.real = std::bit_cast<double>(argument.integer);
      }
      break;
    case ValueKind::kIntList:
    case ValueKind::kBoolList:
      argument.integers = TakeIntegers(row, 10, "list");
      break;
    case ValueKind::kScalarList:
      if (!ParseScalars(argument.text, row.TextOrNull(10, "list"), argument.integers)) {
        row.RefuseValue(10, "list", "where a list of numbers is expected");
      }
      break;
    case ValueKind::kRealList:
      argument.reals = TakeReals(row, 10, "list");
      break;
    case ValueKind::kComplex:
      argument.reals = TakeReals(row, 10, "list");
      if (argument.reals.size() != 2) {
        row.RefuseValue(10, "list", "where a real and an imaginary part are expected");
      }
      break;
    case ValueKind::kBool:
      row.IntegerOrNull(7, "integer", 0, 1);
      break;
    case ValueKind::kDtype:
    case ValueKind::kMemoryFormat:
    case ValueKind::kLayout:
      row.IntegerOrNull(7, "integer", 0, 255);
      break;
    default:
      break;
  }
  return argument;
}

Buffer TakeBuffer(const CheckedRow& row, int64_t base_ns) {
  Buffer buffer;
  buffer.buffer_id = row.Id("buffer_id", kMostBufferId);
  buffer.address = row.IntegerOrNull(1, "address", kLeast, kAny);
  buffer.bytes = row.Integer(2, "bytes", 0, kMostBytes);
  buffer.alloc_call = row.IntegerOrNull(3, "alloc_call", 0, kMostId);
  buffer.free_call = row.IntegerOrNull(4, "free_call", 0, kMostId);
  const int64_t flags = row.IntegerOrNull(5, "flags", 0, kMostDevice << 8 | 255);
  buffer.foreign = (flags & meaning::kBufferForeign) != 0;
  if ((flags & meaning::kBufferBlock) != 0) buffer.layer = BufferLayer::kBlock;
  if ((flags & meaning::kBufferTensor) != 0) buffer.layer = BufferLayer::kTensor;
  buffer.device = static_cast<int>(flags >> meaning::kBufferDeviceShift);
  if (!row.IsNull(6)) {
    buffer.alloc_ns = row.Integer(6, "alloc_ns", -kMostNs, kMostNs) + base_ns;
    if (!row.IsNull(7))
      buffer.free_ns = buffer.alloc_ns + row.Integer(7, "life_ns", -kMostNs, kMostNs);
  }
  buffer.block_id = row.IntegerOrNull(8, "block", 0, kMostBufferId);
  return buffer;
}

void TakeCall(const CheckedRow& row, int64_t base_ns, Call& call) {
  call.call_id = row.Id("call_id");
  call.signature_id = row.Integer(1, "signature_id", 1, kMostId);
  call.thread_id = row.Integer(2, "thread_id", 0, kMostSmall);
  // A call is counted when it begins, so that no chain of parents leads back.
  call.parent_id = row.IntegerOrNull(3, "parent_id", 0, call.call_id - 1);
  call.scope_id = row.IntegerOrNull(4, "scope_id", 0, kMostSmall);
  const int64_t bits =
      row.Integer(5, "bits", 0, ((meaning::kMostPlace + 1) << meaning::kPlaceShift) - 1);
  if ((bits & meaning::kPhaseBits) > static_cast<int64_t>(Phase::kOptimizer)) {
    row.RefuseValue(5, "bits", "which is no phase");
  }
  call.phase = static_cast<Phase>(bits & meaning::kPhaseBits);
  call.leaf = (bits & meaning::kLeafBit) != 0;
  const int64_t place = bits >> meaning::kPlaceShift;
  call.device = place == meaning::kPlaceNotKnown ? Call::kDeviceNotKnown
                                                 : static_cast<int>(place - meaning::kPlaceHost);
  call.begin_ns = row.Integer(6, "begin_ns", -kMostNs, kMostNs) + base_ns;
  call.end_ns = call.begin_ns + row.Integer(7, "duration_ns", 0, kMostNs);
  if (!ParseIntegers(row.TextOrNull(8, "buffers"), call.buffers)) {
    row.RefuseValue(8, "buffers", "where a list of whole numbers is expected");
  }
  for (const int64_t buffer : call.buffers) {
    if (buffer < 0 || buffer > kMostBufferId) {
      row.RefuseValue(8, "buffers", "where a list of buffers is expected");
    }
  }
  call.status = static_cast<int32_t>(row.IntegerOrNull(9, "status", -kMostSmall, kMostSmall));
  call.stream_id = row.IntegerOrNull(10, "stream_id", 0, kMostId);
  call.model_id = row.IntegerOrNull(11, "model_id", 0, kMostId);
  call.prepare_ns = row.IntegerOrNull(12, "prepare_ns", 0, kMostNs);
  call.launch_ns = row.IntegerOrNull(13, "launch_ns", 0, kMostNs);
}

Handle TakeStream(const CheckedRow& row) {
  Handle stream = TakeHandle(row, "stream_id");
  stream.device = row.IntegerOrNull(3, "device", 0, kMostDevice);
  stream.flags = row.IntegerOrNull(4, "flags", 0, kMostId);
  stream.create_call = row.IntegerOrNull(5, "create_call", 0, kMostId);
  stream.destroy_call = row.IntegerOrNull(6, "destroy_call", 0, kMostId);
  return stream;
}

Handle TakeEvent(const CheckedRow& row) {
  Handle event = TakeHandle(row, "event_id");
  event.flags = row.IntegerOrNull(3, "flags", 0, kMostId);
  event.create_call = row.IntegerOrNull(4, "create_call", 0, kMostId);
  event.destroy_call = row.IntegerOrNull(5, "destroy_call", 0, kMostId);
  return event;
}

Handle TakeModel(const CheckedRow& row) {
  Handle model = TakeHandle(row, "model_id");
  model.mode = row.TextOrNull(3, "mode");
  model.create_call = row.IntegerOrNull(4, "begin_call", 0, kMostId);
  model.end_call = row.IntegerOrNull(5, "end_call", 0, kMostId);
  model.destroy_call = row.IntegerOrNull(6, "destroy_call", 0, kMostId);
  return model;
}

Step TakeStep(const CheckedRow& row) {
  Step step;
  step.step = row.Id("step", kMostSmall, /*least=*/0);
  step.first_call = row.Integer(1, "first_call", 0, kMostId);
  step.last_call = row.Integer(2, "last_call", step.first_call, kMostId);
  step.found_by = row.TextOrNull(3, "found_by");
  return step;
}

Snapshot TakeSnapshot(const CheckedRow& row) {
  Snapshot snapshot;
  snapshot.call_id = row.Id("call_id");
  snapshot.position = static_cast<int>(row.Integer(1, "position", -1, kMostPosition));
  const std::string_view moment = row.Text(2, "moment");
  snapshot.after = moment == "after";
  if (!snapshot.after && moment != "before") {
    row.RefuseValue(2, "moment", "where before or after is expected");
  }
  const int64_t tensor = row.Integer(3, "tensor_id", 0, kMostTensorId);
  snapshot.tensor = {tensor >> 24, tensor & kMostLayoutId};
  snapshot.digest = row.Text(4, "digest");
  const bool digits = std::all_of(snapshot.digest.begin(), snapshot.digest.end(), [](char c) {
    return ('0' <= c && c <= '9') || ('a' <= c && c <= 'f');
  });
  const bool redacted = snapshot.digest.empty();
  if (!redacted && (snapshot.digest.size() != 32 || !digits)) {
    row.RefuseValue(4, "digest", "where 32 hexadecimal digits are expected");
  }
  snapshot.bytes = row.Integer(5, "bytes", 0, kMostBytes);
  snapshot.packing = static_cast<int>(row.IntegerOrNull(6, "packing", 0, 1));
  snapshot.changed = row.IntegerOrNull(7, "changed", 0, 1) != 0;
  return snapshot;
}

LedgerEntry TakeLedgerEntry(const CheckedRow& row) {
  const auto severity = Named<Severity, kSeverities>(row.Text(1, "severity"), SeverityName);
  if (!severity) row.RefuseValue(1, "severity", "which is no severity");
  return {std::string(row.Text(0, "kind")),
          *severity,
          row.IntegerOrNull(2, "count", kLeast, kAny),
          std::string(row.TextOrNull(3, "subject")),
          std::string(row.TextOrNull(4, "cause")),
          std::string(row.TextOrNull(5, "remedy"))};
}

int64_t TakeBaseNs(const std::string& path, std::string_view text) {
  int64_t base = 0;
  if (text.empty()) return base;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), base);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || base < 0 ||
      base > kMostNs) {
    throw Error(
        ErrorKind::kTrace,
        fmt::format("'{}' cannot be used: the row 'base_ns' of its table meta has value {}, "
                    "where a time in nanoseconds is expected; no acltape wrote that, so "
                    "record the program again",
                    path, ShownValue(text)));
  }
  return base;
}

}  // namespace acltape::storage
