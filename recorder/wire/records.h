// Layout of the records that the agent writes and the collector reads.
//
// A ring holds a sequence of records. Each record starts with a RecordHeader, is a multiple of
// eight bytes long and lies contiguously in memory (the ring is mapped twice in a row, see ring.h).
// A record becomes visible as a whole; a process killed between two records leaves no torn one.
//
// Numbers are native: producer and consumer run on one machine. Ids and kinds are never reused for
// another meaning; new kinds are appended. A collector skips kinds that it does not know and counts
// them.
//
// Order. Within one ring records are in the order of the thread's actions: a leaf's buffer births
// come before its CallRecord, an OpRecord before the first record that names its index, DATA before
// the snapshot that needs it. Between rings nothing is ordered but by ticks: a buffer can be used
// in one ring before its birth is read from another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "meaning/recorded_values.h"

namespace acltape::wire {

enum class RecordKind : uint16_t {
  kPad = 0,            // nothing; skip `bytes`
  kOp = 1,             // OpRecord: names an op index of this ring
  kBufferBirth = 2,    // BufferBirthRecord
  kBufferDeath = 3,    // BufferDeathRecord
  kCall = 4,           // CallRecord: one finished leaf
  kFrameBegin = 5,     // FrameBeginRecord: an enclosing call starts (composite op, backward node)
  kFrameEnd = 6,       // FrameEndRecord
  kScopeBegin = 7,     // ScopeBeginRecord: a user or module range starts on this thread
  kScopeEnd = 8,       // ScopeEndRecord
  kData = 9,           // DataRecord: a piece of a payload
  kSnapshot = 10,      // SnapshotRecord
  kMeta = 11,          // TextRecord: "key\0value\0", goes to the table meta
  kLedger = 12,        // LedgerRecord
  kThreadName = 13,    // TextRecord: "name\0"
  kAclCall = 14,       // AclCallRecord: one finished call of the ACL interface
  kHandle = 15,        // HandleRecord: a stream, an event or a model begins or ends
  kPlace = 16,         // PlaceRecord: a line of the program's source
  kWindow = 17,        // WindowRecord: what follows in this ring belongs to another window
  kDeviceSpan = 18,    // DeviceSpanRecord: the time that the work of a call took on the device
  kFailureText = 19,   // FailureTextRecord: the library's text for a call that failed
  kCommunicator = 20,  // CommunicatorRecord: a communicator of HCCL is used for the first time
};

struct RecordHeader {
  RecordKind kind;
  uint16_t flags;
  uint32_t bytes;  // size of the whole record, header included; a multiple of 8
};
static_assert(sizeof(RecordHeader) == 8);

enum class Phase : uint8_t { kForward = 0, kBackward = 1, kOptimizer = 2 };

// Followed by three NUL-terminated strings: name ("aten::add"), overload ("Tensor"), schema text
// ("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor").
struct OpRecord {
  RecordHeader header;
  uint32_t op_index;  // unique within the ring, dense from 0
  uint32_t dialect;   // place in meaning::kDialects (meaning/dialects.h)
};

// Buffer ids are unique in the process for its whole life and never 0.
struct BufferBirthRecord {
  RecordHeader header;
  uint64_t buffer_id;
  uint64_t address;
  uint64_t bytes;
  uint64_t tick;
  uint64_t call_id;   // the innermost open call of the thread, 0 when none
  uint32_t device;    // 0 host CPU
  uint32_t flags;     // meaning::BufferFlags
  uint64_t block_id;  // the buffer whose memory it is a part of, 0: none that is known
};

struct BufferDeathRecord {
  RecordHeader header;
  uint64_t buffer_id;
  uint64_t tick;
  uint64_t call_id;  // the innermost open call of the thread, 0 when none
};

// One finished leaf. Followed by `signature_bytes` bytes of arguments (see ArgumentTag), then by
// `slot_count` buffer ids (uint64_t, not aligned, 0 for a tensor without storage), then by padding.
// The arguments name buffers by slot number in order of appearance, so the signature bytes of a
// repeated call repeat. `header.flags` is the leaf's meaning::LeafPlace.
struct CallRecord {
  RecordHeader header;
  uint64_t call_id;    // process-wide, grows in the order in which calls began, never 0
  uint64_t parent_id;  // 0: none
  uint64_t begin_tick;
  uint64_t end_tick;
  uint32_t op_index;
  uint32_t signature_bytes;
  uint16_t slot_count;
  Phase phase;
  uint8_t status;     // 0 fine, 1 the operator threw
  uint32_t place_id;  // the line of source that it comes from, 0: unknown
};
static_assert(sizeof(CallRecord) == 56);

// One finished call of the ACL interface: an operator's launch (or its first phase, when that
// failed) or an interface function. Followed by arguments and slots as a CallRecord.
struct AclCallRecord {
  RecordHeader header;
  uint64_t call_id;
  uint64_t parent_id;
  uint64_t begin_tick;  // for an operator, the start of its second phase
  uint64_t end_tick;
  uint64_t prepare_ticks;  // length of an operator's first phase; 0: none
  uint32_t op_index;
  uint32_t signature_bytes;
  uint32_t stream_id;  // the stream it names, 0: none
  uint32_t model_id;   // the capture that stored its task, 0: none
  int32_t status;      // as returned
  uint16_t slot_count;
  Phase phase;
  uint8_t launched;   // 1: an operator's second phase
  uint32_t place_id;  // the line of source that it comes from, 0: unknown
  uint32_t lasting;   // 1: later windows need it: it sets something up, or is of a captured graph
};
static_assert(sizeof(AclCallRecord) == 80);

// A line of the program's source (a "place"). Two NUL-terminated strings follow: file and function.
// Ids come from the counter of handles, so that they hold in every ring. Where stacks are kept
// whole, a place is a line together with the place that called it, and belongs to the ring that
// announced it. Else the collector may read a call before it reads the call's line.
struct PlaceRecord {
  RecordHeader header;
  uint32_t place_id;
  int32_t line;
  uint32_t outer_id;  // the place that called this one, 0: the outermost, or stacks are not whole
  uint32_t flags;     // PlaceFlags
};
enum PlaceFlags : uint32_t {
  kPlaceUsers = 1,  // a line of the user's own code, and not of the framework's
  kPlaceWhole = 2,  // stacks are kept whole
  // The texts are the file of a program or library and an address in it, in hexadecimal digits.
  kPlaceAddress = 4,
};

// The thread's first record in a window (Note [Windows] in arena.h).
struct WindowRecord {
  RecordHeader header;
  uint64_t tick;
  uint64_t next_call_id;
  uint32_t window;  // grows in the process with each window
  uint32_t reserved0;
};

// Streams, events and models have ids in place of handles, which are addresses that are used again.
// Ids of all three kinds come from one counter and are never used again.
enum class HandleKind : uint8_t { kStream = 0, kEvent = 1, kModel = 2 };
enum class HandleMoment : uint8_t { kCreated = 0, kCaptureEnded = 1, kDestroyed = 2 };
struct HandleRecord {
  RecordHeader header;
  uint64_t handle_id;
  uint64_t address;  // 0: a default stream
  uint64_t call_id;  // 0: it was there before, and was met at its first use
  uint32_t device;
  uint32_t flags;  // as the program gave them; of a model: the capture mode
  HandleKind kind;
  HandleMoment moment;
  uint8_t reserved0[6];
};

// A communicator of HCCL that a call names for the first time, as its library describes it. Its id
// comes from the counter of handles. Followed by its name, NUL-terminated; the ranks of one
// communicator have the same one.
struct CommunicatorRecord {
  RecordHeader header;
  uint64_t communicator_id;
  uint64_t address;
  uint32_t rank;   // this process's rank in the communicator
  uint32_t ranks;  // how many it has
};
static_assert(sizeof(CommunicatorRecord) == 32);

// The time that the work of an AclCallRecord took on the device. It comes later than that record,
// maybe from another ring.
struct DeviceSpanRecord {
  RecordHeader header;
  uint64_t call_id;
  int64_t begin_ns;      // time of CLOCK_MONOTONIC
  uint64_t duration_ns;  // by the device's clock
  uint32_t stream_id;
  uint32_t error_ns;  // the span lies at most so much earlier or later than it says
};
static_assert(sizeof(DeviceSpanRecord) == 40);

// The text with which the library explained why an AclCallRecord's call failed. It comes after that
// record, in the same ring. Followed by the text, NUL-terminated.
struct FailureTextRecord {
  RecordHeader header;
  uint64_t call_id;
};
static_assert(sizeof(FailureTextRecord) == 16);

// An enclosing call. It is written only when a leaf of another op runs inside it.
enum class FrameKind : uint32_t { kComposite = 0, kBackwardNode = 1 };
struct FrameBeginRecord {
  RecordHeader header;
  uint64_t call_id;
  uint64_t parent_id;
  uint64_t tick;
  uint32_t op_index;
  FrameKind kind;
  Phase phase;
  uint8_t reserved0[7];
  uint64_t forward_call;  // for a backward node, the leaf whose gradient it computes; 0: not known
};
struct FrameEndRecord {
  RecordHeader header;
  uint64_t call_id;
  uint64_t tick;
};

// Followed by the NUL-terminated name of the range.
enum class ScopeKind : uint32_t { kUser = 0, kModule = 1 };
struct ScopeBeginRecord {
  RecordHeader header;
  uint64_t tick;
  uint64_t next_call_id;  // ids from here on lie inside
  ScopeKind kind;
  uint32_t reserved0;
};
struct ScopeEndRecord {
  RecordHeader header;
  uint64_t tick;
  uint64_t next_call_id;  // ids from here on lie outside
};

// A piece of a payload, followed by `piece_bytes` bytes. The pieces of one digest come in order
// from offset 0 and from one ring without other DATA in between.
struct DataRecord {
  RecordHeader header;
  uint64_t digest_low;
  uint64_t digest_high;
  uint64_t total_bytes;
  uint64_t offset;
  uint64_t piece_bytes;
};

// The content of a tensor or of a whole buffer at one moment. The digest is XXH3-128 with seed 0 of
// the packed bytes: in order of ascending address where the view covers a dense range (`packing`
// 0), else in row-major order of the elements (`packing` 1). Followed by one tensor encoding
// (kTensor tag included, slot 0) of `layout_bytes` bytes. A whole buffer is a uint8 tensor of its
// size.
struct SnapshotRecord {
  RecordHeader header;
  uint64_t call_id;
  uint64_t buffer_id;
  uint64_t digest_low;
  uint64_t digest_high;
  uint64_t bytes;  // size of the packed content
  double min;
  double max;
  double mean;
  double l2;
  uint64_t nan_count;
  uint64_t inf_count;
  int32_t position;  // argument position, -1 for a whole buffer
  uint8_t moment;    // 0 before the call, 1 after it
  uint8_t flags;     // SnapshotFlags
  uint8_t packing;
  uint8_t reserved0;
  uint32_t layout_bytes;
  uint32_t reserved1;
};
enum SnapshotFlags : uint8_t {
  kSnapshotStatistics = 1,  // min .. inf_count are valid
  kSnapshotPayload = 2,     // the bytes of this digest are sent in this recording
  kSnapshotChanged = 4,     // the buffer changed between recorded calls and is an input again
};

// Followed by one or more NUL-terminated strings.
struct TextRecord {
  RecordHeader header;
};

// Followed by four NUL-terminated strings: kind, subject, cause, remedy. Severity: 0 info, 1
// notice, 2 data_loss, 3 error. Rows with the same kind and subject are added up.
struct LedgerRecord {
  RecordHeader header;
  uint64_t count;
  uint32_t severity;
  uint32_t reserved0;
};

// ---- Arguments --------------------------------------------------------------------------------
//
// The signature bytes of a call are its arguments in schema order, then its returns in order
// (returns that alias a written argument are left out). Each starts with one tag byte; numbers
// follow unaligned.
enum class ArgumentTag : uint8_t {
  kNone = 0,              // nothing follows: an absent optional
  kTensor = 1,            // TensorEncoding
  kTensorList = 2,        // uint32 n, then n x (kTensor or kNone encodings, tag included)
  kInt = 3,               // int64
  kReal = 4,              // double
  kBool = 5,              // uint8
  kText = 6,              // uint32 bytes, then the bytes without NUL
  kIntList = 7,           // uint32 n, n x int64
  kRealList = 8,          // uint32 n, n x double
  kBoolList = 9,          // uint32 n, n x uint8
  kDtype = 10,            // uint8 DType
  kDevice = 11,           // as kText: "cpu", "npu:0"
  kMemoryFormat = 12,     // int64 as the framework numbers it
  kLayout = 13,           // int64 as the framework numbers it
  kComplex = 14,          // two doubles
  kOther = 15,            // as kText: a kind that the recorder cannot keep; the text says which
  kUndefinedTensor = 16,  // a tensor argument without a tensor
  kScalar = 17,           // uint8 DType, 16 bytes that begin with the value
  kScalarList = 18        // uint32 n, n x (uint8 DType, 16 bytes)
};

// After the kTensor tag: uint8 dtype, uint8 rank, uint8 flags, uint16 slot, int64 byte offset in
// the buffer, rank x int64 sizes, rank x int64 strides in elements, int32 aclFormat if flagged,
// then, if flagged, uint8 bytes and the name of the tensor's memory ("cuda:0", "mkldnn").

using meaning::DType;
using meaning::TensorFlags;
using enum meaning::TensorFlags;
using enum meaning::BufferFlags;

constexpr uint32_t RoundUp8(size_t bytes) {
  return static_cast<uint32_t>((bytes + 7) & ~size_t{7});
}

}  // namespace acltape::wire
