// The gate of a trace: each row of the file becomes an object here, and only if it keeps all rules
// of its table. Code after the gate trusts what it gets: sizes and offsets are not negative, what
// belongs together has one length, ids are in range, and sums of bytes do not overflow. A row that
// breaks a rule ends in an Error of kind kTrace (storage/checked_row.h).
//
// Rules across tables are checked by storage/reader.h, which has the tables: that a layout exists,
// that a call has a buffer for each slot of its signature, that a tensor lies inside its buffer.
//
// The columns are those of the SELECT beside each function, in that order.
#pragma once

#include "storage/checked_row.h"
#include "storage/trace.h"

namespace acltape::storage {

inline constexpr char kOpColumns[] = "op_id, dialect, name, overload, schema";
Op TakeOp(const CheckedRow& row);

inline constexpr char kLayoutColumns[] =
    "layout_id, dtype, byte_offset, shape, strides, flags, format, memory";
// Sizes and strides are not negative, and there are as many strides as sizes. An opaque tensor has
// no strides. The bytes of all elements and the end of the last element are below kMostBytes.
Layout TakeLayout(const CheckedRow& row);

inline constexpr char kArgumentColumns[] =
    "signature_id, position, name, direction, kind, layout_id, slot, integer, real, text, list";
// `position` is that which the argument must have.
SignatureArgument TakeArgument(const CheckedRow& row, int position);

inline constexpr char kBufferColumns[] =
    "buffer_id, address, bytes, alloc_call, free_call, flags, alloc_ns, life_ns, block";
Buffer TakeBuffer(const CheckedRow& row, int64_t base_ns);

inline constexpr char kCallColumns[] =
    "c.call_id, c.signature_id, c.thread_id, c.parent_id, c.scope_id, c.bits, c.begin_ns, "
    "c.duration_ns, c.buffers, x.status, x.stream_id, x.model_id, x.prepare_ns, x.launch_ns";
// Sets all of the call but its operator. The memory of `call` is used again.
void TakeCall(const CheckedRow& row, int64_t base_ns, Call& call);

// Streams have devices, events do not: 0.
Handle TakeStream(const CheckedRow& row);  // stream_id, process_id, handle, device, flags, ...
Handle TakeEvent(const CheckedRow& row);   // event_id, process_id, handle, flags, ...
Handle TakeModel(const CheckedRow& row);   // model_id, process_id, handle, mode, ...

inline constexpr char kStepColumns[] = "step, first_call, last_call, found_by";
Step TakeStep(const CheckedRow& row);

inline constexpr char kSnapshotColumns[] =
    "call_id, position, moment, tensor_id, digest, bytes, packing, changed";
Snapshot TakeSnapshot(const CheckedRow& row);

LedgerEntry TakeLedgerEntry(const CheckedRow& row);

// The base of all times of a trace, as its table meta has it.
int64_t TakeBaseNs(const std::string& path, std::string_view text);

}  // namespace acltape::storage
