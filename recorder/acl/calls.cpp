// Interface calls: what is recorded of their arguments, and what they do to memory, streams, events
// and models.
#include <stdio.h>
#include <string.h>

#include "acl/acl.h"
#include "recorder/acl/communicators.h"
#include "recorder/acl/device_times.h"
#include "recorder/acl/handles.h"
#include "recorder/acl/interface.h"
#include "recorder/acl/memory.h"
#include "recorder/acl/memory_work.h"
#include "recorder/acl/message_groups.h"
#include "recorder/acl/messages.h"
#include "recorder/acl/model_parts.h"
#include "recorder/acl/objects.h"
#include "recorder/acl/pending.h"
#include "recorder/acl/real.h"
#include "recorder/acl/thread.h"
#include "recorder/acl/values.h"
#include "recorder/agent/graph_moment.h"
#include "recorder/agent/source_line.h"

namespace acltape::acl_agent {

namespace {

using wire::ArgumentTag;
using wire::HandleKind;

constexpr uint64_t kTextBytes = 4096;

void EncodeInt(Thread& thread, uint64_t value) {
  thread.signature.Add(ArgumentTag::kInt);
  thread.signature.Add(value);
}

template <typename T>
uint64_t Pointee(uint64_t pointer) {
  T value{};
  memcpy(&value, reinterpret_cast<const void*>(pointer), sizeof(T));
  return static_cast<uint64_t>(static_cast<int64_t>(value));
}

// The flags that a creating call was given, where it has some.
uint32_t FlagsOf(const CallInfo& info, const uint64_t* values) {
  return info.effect == Effect::kCreate ? static_cast<uint32_t>(values[info.positions[0]]) : 0;
}

uint64_t Created(Thread& thread, const CallInfo& info, Role role, const uint64_t* values,
                 uint64_t pointer) {
  const auto handle = Pointee<uint64_t>(pointer);
  if (handle == 0) return 0;
  switch (role) {
    case Role::kOutStream:
      return AddHandle(thread, HandleKind::kStream, handle, FlagsOf(info, values));
    case Role::kOutDefaultStream:
      return AddDefaultStream(thread, handle);
    case Role::kOutEvent:
      return AddHandle(thread, HandleKind::kEvent, handle, FlagsOf(info, values));
    default:
      return IdOf(thread, HandleKind::kModel, handle);
  }
}

// The streams and events that a muted call has created.
void KeepCreated(Thread& thread, const CallInfo& info, const uint64_t* values) {
  for (int i = 0; i < info.argument_count; ++i) {
    const Role role = info.rules[i].role;
    const bool created = role == Role::kOutStream || role == Role::kOutDefaultStream ||
                         role == Role::kOutEvent || role == Role::kOutModel;
    if (created && values[i] != 0) Created(thread, info, role, values, values[i]);
  }
}

void EncodeArgument(Thread& thread, const CallInfo& info, int position, const uint64_t* values,
                    const OpenCall& open, bool succeeded) {
  const ArgumentRule& rule = info.rules[position];
  const uint64_t value = values[position];
  switch (rule.role) {
    case Role::kInt:
      EncodeInt(thread, value);
      break;
    case Role::kAddress:
    case Role::kRange:
    case Role::kWords:
    case Role::kFixed:
    case Role::kPlane:
    case Role::kElements:
    case Role::kCounted:
    case Role::kMatrixRow:
    case Role::kMatrixColumn:
      if (open.freed_block != 0 && value == open.freed_begin) {
        // The block is gone; its buffer is meant.
        EncodeBufferBytes(thread, open.freed_block, 0, open.freed_bytes);
        break;
      }
      if (!EncodeMemory(thread, value, RangeBytes(rule, values))) EncodeInt(thread, value);
      break;
    case Role::kStream:
    case Role::kStreamOrNone:
      EncodeInt(thread, open.stream_id);
      break;
    case Role::kOtherStream:
      EncodeInt(thread, IdOf(thread, HandleKind::kStream, value, succeeded));
      break;
    case Role::kEvent:
    case Role::kModel: {
      const bool ended = open.ended_id != 0 && position == info.positions[0];
      const HandleKind kind = rule.role == Role::kEvent ? HandleKind::kEvent : HandleKind::kModel;
      EncodeInt(thread, ended ? open.ended_id : IdOf(thread, kind, value, succeeded));
      break;
    }
    case Role::kCommunicator:
      EncodeInt(thread, CommunicatorId(thread, value));
      break;
    case Role::kOutStream:
    case Role::kOutDefaultStream:
    case Role::kOutEvent:
    case Role::kOutModel:
      if (!succeeded || value == 0) {
        thread.signature.Add(ArgumentTag::kNone);
      } else {
        EncodeInt(thread, Created(thread, info, rule.role, values, value));
      }
      break;
    case Role::kOut32:
    case Role::kOut64:
      if (!succeeded || value == 0) {
        thread.signature.Add(ArgumentTag::kNone);
      } else {
        EncodeInt(thread,
                  rule.role == Role::kOut32 ? Pointee<int32_t>(value) : Pointee<uint64_t>(value));
      }
      break;
    case Role::kOutFloat:
      if (!succeeded || value == 0) {
        thread.signature.Add(ArgumentTag::kNone);
      } else {
        float real;
        memcpy(&real, reinterpret_cast<const void*>(value), sizeof(real));
        thread.signature.Add(ArgumentTag::kReal);
        thread.signature.Add(static_cast<double>(real));
      }
      break;
    case Role::kExchanged:
      EncodeInt(thread, open.exchanged);
      break;
    case Role::kText: {
      if (value == 0) {
        thread.signature.Add(ArgumentTag::kNone);
        break;
      }
      const auto* text = reinterpret_cast<const char*>(value);
      const auto bytes = static_cast<uint32_t>(strnlen(text, kTextBytes));
      thread.signature.Add(ArgumentTag::kText);
      thread.signature.Add(bytes);
      thread.signature.Append(text, bytes);
      break;
    }
    case Role::kHandles: {
      const auto count = value == 0 ? 0 : static_cast<uint32_t>(values[rule.sizes[0]]);
      thread.signature.Add(ArgumentTag::kIntList);
      thread.signature.Add(succeeded ? count : 0);
      if (succeeded) {
        thread.signature.Append(reinterpret_cast<const void*>(value), count * sizeof(uint64_t));
      }
      break;
    }
    case Role::kItems:
      EncodeItems(thread, rule, value, values);
      break;
    case Role::kCounts:
    case Role::kMatrix: {
      const uint32_t ranks = value == 0 ? 0 : RanksOf(values[rule.sizes[0]]);
      const uint32_t count = rule.role == Role::kMatrix ? ranks * ranks : ranks;
      thread.signature.Add(ArgumentTag::kIntList);
      thread.signature.Add(count);
      thread.signature.Append(reinterpret_cast<const void*>(value), count * sizeof(uint64_t));
      break;
    }
    case Role::kConditionTask:
      EncodeConditionTask(thread, value, succeeded);
      break;
    case Role::kRandomTask:
      EncodeRandomTask(thread, value);
      break;
    case Role::kStruct: {
      char text[24];
      const int bytes =
          snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
      thread.signature.Add(ArgumentTag::kOther);
      thread.signature.Add(static_cast<uint32_t>(bytes));
      thread.signature.Append(text, static_cast<size_t>(bytes));
      break;
    }
  }
}

// Encodes what the recorder adds after the arguments of the call (acl/data/meaning.json, further).
void EncodeFurther(Thread& thread, const CallInfo& info, const uint64_t* values, bool succeeded) {
  if (info.effect == Effect::kRandom) EncodeRandomMemory(thread, values[info.positions[0]]);
  if (info.effect == Effect::kCondition) {
    const uint64_t condition = succeeded ? Pointee<uint64_t>(values[info.positions[0]]) : 0;
    EncodeConditionCell(thread, condition, succeeded);
  }
  for (int i = 0; i < info.argument_count; ++i) {
    if (info.rules[i].role != Role::kItems) continue;
    EncodeItemMemory(thread, info.rules[i], values[i], values);
  }
}

// Bytes from an address of device memory to the end of its block, by what the device says.
uint64_t BytesAt(uint64_t address) {
  decltype(&aclrtMemGetAddressRange) range = nullptr;
  Resolve(range, "aclrtMemGetAddressRange");
  void* begin = nullptr;
  size_t bytes = 0;
  auto* pointer = reinterpret_cast<void*>(address);
  if (range == nullptr || range(pointer, &begin, &bytes) != ACL_SUCCESS) return 0;
  return reinterpret_cast<uint64_t>(begin) + bytes - address;
}

// A copy's two ends.
struct CopyEnds {
  Block destination;
  Block source;
  bool to_device = false;    // host memory is read
  bool from_device = false;  // host memory is written
};

bool IsDevice(const Block& block) { return block.buffer_id != 0 && block.device != 0; }

CopyEnds EndsOf(const CallInfo& info, const uint64_t* values) {
  CopyEnds ends;
  if (!FindBlock(values[info.positions[0]], &ends.destination)) ends.destination = Block{};
  if (!FindBlock(values[info.positions[1]], &ends.source)) ends.source = Block{};
  ends.to_device = !IsDevice(ends.source);
  ends.from_device = !IsDevice(ends.destination);
  return ends;
}

// Keeps the bytes that a copy has read and that no recorded call wrote. Called after the copy,
// because only a call that succeeds shows that so many bytes are there to be read.
void KeepSource(Thread& thread, const CallInfo& info, const uint64_t* values, const OpenCall& open,
                const CopyEnds& ends, uint64_t stream) {
  const int source = info.positions[1];
  const uint64_t bytes = RangeBytes(info.rules[source], values);
  if (!ends.to_device) {
    const uint64_t first = values[source] - ends.source.begin;
    KeepUnknown(thread, open.call_id, stream, ends.source.buffer_id, ends.source.begin, first,
                first + bytes);
  } else if (ends.from_device) {
    return;  // from host to host
  } else if (info.effect == Effect::kCopy2d) {
    const int8_t* sizes = info.rules[source].sizes;
    KeepHostPlane(thread, open.call_id, source, false, values[source], values[sizes[0]],
                  values[sizes[1]], values[sizes[2]]);
  } else {
    KeepHost(thread, open.call_id, source, false, values[source], bytes);
  }
}

// Keeps the bytes that a copy has written to host memory.
void KeepDestination(Thread& thread, const CallInfo& info, const uint64_t* values,
                     const OpenCall& open, const CopyEnds& ends, uint64_t stream) {
  const int destination = info.positions[0];
  const uint64_t bytes = RangeBytes(info.rules[destination], values);
  const bool later = info.stream >= 0 && ends.destination.buffer_id != 0;
  if (later && info.effect == Effect::kCopy) {
    // Pinned memory is written when the stream gets there; the bytes are those of the source.
    const uint64_t from = values[info.positions[1]] - ends.source.begin;
    KeepWritten(thread, open.call_id, stream, destination, ends.source.buffer_id, ends.source.begin,
                from, from + bytes, nullptr, 0);
  } else if (!later && info.effect == Effect::kCopy2d) {
    const int8_t* sizes = info.rules[destination].sizes;
    KeepHostPlane(thread, open.call_id, destination, true, values[destination], values[sizes[0]],
                  values[sizes[1]], values[sizes[2]]);
  } else if (!later) {
    KeepHost(thread, open.call_id, destination, true, values[destination], bytes);
  }
}

void NoteCapturedCopy(const CallInfo& info, const uint64_t* values, const CopyEnds& ends,
                      uint64_t model_id) {
  const auto note = [&](int position, const Block& block, CapturedUse use) {
    const uint64_t first = values[position] - block.begin;
    NoteCaptured(model_id, block.buffer_id, block.begin, first,
                 first + RangeBytes(info.rules[position], values), use);
  };
  if (ends.source.buffer_id != 0) {
    note(info.positions[1], ends.source,
         ends.to_device ? CapturedUse::kHostRead : CapturedUse::kDeviceRead);
  }
  if (ends.destination.buffer_id != 0)
    note(info.positions[0], ends.destination, CapturedUse::kWrite);
}

void AfterCopy(Thread& thread, const CallInfo& info, const uint64_t* values, const OpenCall& open,
               uint64_t stream, uint64_t model_id) {
  const CopyEnds ends = EndsOf(info, values);
  const uint64_t bytes = RangeBytes(info.rules[info.positions[0]], values);
  if (bytes == 0) return;
  if (model_id != 0) {
    NoteCapturedCopy(info, values, ends, model_id);
    return;
  }
  if (WantsInputs(thread)) KeepSource(thread, info, values, open, ends, stream);
  const uint64_t first = values[info.positions[0]] - ends.destination.begin;
  if (ends.destination.buffer_id != 0) MarkKnown(ends.destination.buffer_id, first, first + bytes);
  if (WantsOutputs(thread) && ends.from_device && !ends.to_device) {
    KeepDestination(thread, info, values, open, ends, stream);
  }
}

// When a call returns whose work is on no stream, the program may free the memory, or write to it,
// without waiting for any stream: the recorder's copies have to be done then.
void AwaitCopies(Thread& thread, const CallInfo& info, uint64_t call_id) {
  const bool makes_copies = info.effect == Effect::kCopy || info.effect == Effect::kCopy2d ||
                            info.effect == Effect::kExecute;
  if (makes_copies && info.stream < 0) WaitForCopiesOf(thread, call_id);
}

void AfterSuccess(Thread& thread, const CallInfo& info, const uint64_t* values,
                  const OpenCall& open, uint64_t stream, uint64_t model_id) {
  const auto argument = [&](int i) { return values[info.positions[i]]; };
  switch (info.effect) {
    case Effect::kDeviceBirth:
      AddBlock(thread, Pointee<uint64_t>(argument(0)), argument(1),
               static_cast<uint32_t>(CurrentDevice(thread)) + 1);
      break;
    case Effect::kImport: {
      const auto address = Pointee<uint64_t>(argument(0));
      const uint64_t bytes = BytesAt(address);
      if (bytes == 0) break;
      AddBlock(thread, address, bytes, static_cast<uint32_t>(CurrentDevice(thread)) + 1);
      MarkShared(address);
      break;
    }
    case Effect::kShare:
      MarkShared(argument(0));
      break;
    case Effect::kHostBirth:
      AddBlock(thread, Pointee<uint64_t>(argument(0)), argument(1), 0);
      break;
    case Effect::kHostRegister:
      AddBlock(thread, argument(0), argument(1), 0);
      break;
    case Effect::kCaptureBegin:
      CountCapture(1);
      agent::TakeGraphMoment(agent::GraphMoment::kCaptureBegins, *thread.tape);
      if (const uint64_t handle = ModelHandleOf(thread, stream); handle != 0) {
        AddHandle(thread, HandleKind::kModel, handle, static_cast<uint32_t>(argument(1)));
      }
      break;
    case Effect::kSubCaptureBegin:
      CountCapture(1);
      break;
    case Effect::kCondition:
      AddConditionCell(thread, Pointee<uint64_t>(argument(0)));
      break;
    case Effect::kSubGraphs:
      AddSubGraphs(thread, argument(0), model_id);
      break;
    case Effect::kBind:
      BindToModel(argument(1), IdOf(thread, HandleKind::kModel, argument(0)));
      break;
    case Effect::kUnbind:
      UnbindFromModel(argument(0));
      break;
    case Effect::kMemoryWork:
    case Effect::kRandom:
    case Effect::kCollective:
    case Effect::kMessage:
      if (WantsAnything(thread) && !thread.muted) {
        KeepWork(thread, info, values, open, stream, model_id);
      }
      break;
    case Effect::kGroupEnd:
      AddGroup(Pointee<uint64_t>(argument(1)), CaptureOf(thread, stream));
      break;
    case Effect::kUpdateBegin:
      BeginUpdate(stream, argument(1));
      break;
    case Effect::kUpdateEnd:
      EndUpdate(stream);
      break;
    case Effect::kCopy:
    case Effect::kCopy2d:
      if (WantsAnything(thread) && !thread.muted)
        AfterCopy(thread, info, values, open, stream, model_id);
      break;
    case Effect::kFill: {
      Block block;
      if (!WantsAnything(thread) || thread.muted || !FindBlock(argument(0), &block)) break;
      const uint64_t first = argument(0) - block.begin;
      const uint64_t end = first + RangeBytes(info.rules[info.positions[0]], values);
      if (model_id != 0) {
        NoteCaptured(model_id, block.buffer_id, block.begin, first, end, CapturedUse::kWrite);
      } else {
        MarkKnown(block.buffer_id, first, end);
      }
      break;
    }
    case Effect::kExecute:
      if (WantsAnything(thread) && !thread.muted) {
        KeepAfterExecution(thread, open.call_id, IdOf(thread, HandleKind::kModel, argument(0)),
                           stream);
      }
      break;
    default:
      break;
  }
  AwaitCopies(thread, info, open.call_id);
}

// True when a call ends a handle; `*kind` is then the kind of the handle.
bool EndsHandle(Effect effect, HandleKind* kind) {
  switch (effect) {
    case Effect::kStreamEnd:
      *kind = HandleKind::kStream;
      return true;
    case Effect::kEventEnd:
      *kind = HandleKind::kEvent;
      return true;
    case Effect::kModelEnd:
      *kind = HandleKind::kModel;
      return true;
    default:
      return false;
  }
}

// An end that fails discards the capture as well (rule CAP-20) if the caller was allowed to end it.
void AfterCaptureEnd(Thread& thread, const OpenCall& open, uint64_t stream, bool succeeded) {
  if (open.model_handle == 0 || (!succeeded && ModelHandleOf(thread, stream) != 0)) return;
  CountCapture(-1);
  const uint64_t id = IdOf(thread, HandleKind::kModel, open.model_handle);
  EndCapture(thread, id);
  if (succeeded) return;
  ForgetModel(id);
  EndHandle(thread, HandleKind::kModel, TakeHandle(HandleKind::kModel, open.model_handle));
}

// True for calls with which a graph begins or ends, and which are no part of it.
bool BoundsAGraph(Effect effect) {
  return effect == Effect::kCaptureBegin || effect == Effect::kSubCaptureBegin ||
         effect == Effect::kCaptureEnd || effect == Effect::kUnbind;
}

// A copy of pageable host memory on a stream that is bound to a model is made at once.
bool CopiesAtOnce(Thread& thread, const CallInfo& info, const uint64_t* values, uint64_t stream) {
  if (info.effect != Effect::kCopy || BoundModel(thread, stream) == 0) return false;
  const CopyEnds ends = EndsOf(info, values);
  return ends.source.buffer_id == 0 || ends.destination.buffer_id == 0;
}

uint64_t StreamId(Thread& thread, const CallInfo& info, const uint64_t* values, bool succeeded) {
  if (info.stream < 0) return 0;
  const uint64_t handle = values[info.stream];
  if (handle != 0) return IdOf(thread, HandleKind::kStream, handle, succeeded);
  const bool none = info.rules[info.stream].role == Role::kStreamOrNone;
  return none || !succeeded ? 0 : DefaultStreamId(thread);
}

}  // namespace

bool BeginCall(uint32_t number, const uint64_t* values, const void* caller, OpenCall* open) {
  Thread* thread = Enter();
  if (thread == nullptr) return false;
  const CallInfo& info = kCalls[number];
  agent::Tape* tape = thread->tape;
  memset(open, 0, sizeof(*open));
  open->thread = thread;
  NoticeWindow(*thread);
  if (tape->open) agent::BeginHook(tape->own, open->hook);
  open->gathered = info.effect == Effect::kMessage && IsGathering();
  open->muted = thread->muted = thread->muted && !info.lasting;
  open->outer_call = tape->open_call;
  // The call may turn out to belong to a capture, which is recorded.
  if (!open->muted || ActiveCaptures() != 0) {
    // Where the host waits, the framework's functions tell which part of it reads a value.
    open->place_id = info.takes_lock ? agent::SourceLine(*tape, agent::LockUse::kTake, caller,
                                                         agent::FrameUse::kToTheUsers)
                                     : agent::SourceLine(*tape, agent::LockUse::kIfHeld, caller);
    open->call_id = tape->NextCallId();
    tape->open_call = open->call_id;
  }
  const uint64_t stream = info.stream < 0 ? 0 : values[info.stream];
  switch (info.effect) {
    case Effect::kDeath: {
      Block block;
      if (!TakeBlock(values[info.positions[0]], &block)) break;
      open->freed_block = block.buffer_id;
      open->freed_bytes = block.bytes;
      open->freed_begin = block.begin;
      open->freed_device = block.device;
      break;
    }
    case Effect::kExecute:
      if (!open->muted) agent::TakeGraphMoment(agent::GraphMoment::kBeforeExecution, *tape);
      if (WantsInputs(*thread) && !open->muted) {
        KeepBeforeExecution(*thread, open->call_id,
                            IdOf(*thread, HandleKind::kModel, values[info.positions[0]]), stream);
        AwaitCopies(*thread, info, open->call_id);
      }
      break;
    case Effect::kMemoryWork:
    case Effect::kRandom:
    case Effect::kCollective:
    case Effect::kMessage:
      if (open->gathered) break;
      if (WantsInputs(*thread) && !open->muted && CaptureOf(*thread, stream) == 0) {
        KeepInputsOfWork(*thread, info, values, *open, stream);
      }
      break;
    case Effect::kCaptureEnd:
      open->model_handle = ModelHandleOf(*thread, stream);
      break;
    case Effect::kDeviceEnd:
      if (WantsAnything(*thread)) RecordFinishedCopies(*thread, true);
      if (WantsDeviceTimes(*thread)) EndDeviceTimes(*thread);
      break;
    case Effect::kExchange:
      if (values[info.positions[0]] != 0) {
        open->exchanged = static_cast<uint32_t>(Pointee<int32_t>(values[info.positions[0]]));
      }
      break;
    default:
      break;
  }
  HandleKind kind;
  if (EndsHandle(info.effect, &kind)) {
    if (kind == HandleKind::kStream && WantsAnything(*thread)) RecordFinishedCopies(*thread, true);
    open->ended_id = TakeHandle(kind, values[info.positions[0]]);
    if (kind == HandleKind::kStream) open->stream_id = open->ended_id;
  }
  if (WantsDeviceTimes(*thread) && !open->muted && !open->gathered && info.stream_works) {
    open->device_task = BeginDeviceTask(*thread, stream);
  }
  if (info.effect != Effect::kCallsBack) Inside::Set(*thread);
  open->begin_tick = agent::Tick();
  return true;
}

void EndCall(uint32_t number, const uint64_t* values, OpenCall* open, int32_t status) {
  const uint64_t end = agent::Tick();
  auto& thread = *static_cast<Thread*>(open->thread);
  const CallInfo& info = kCalls[number];
  agent::Tape* tape = thread.tape;
  const agent::HookEnd hook_end(tape->own, open->hook, end - open->begin_tick);
  if (info.effect != Effect::kCallsBack) Inside::Clear(thread);
  const bool succeeded = status == ACL_SUCCESS;
  if (open->gathered && succeeded) {
    Gather(info, values);
    tape->open_call = open->outer_call;
    return;
  }
  EndDeviceTask(thread, static_cast<DeviceTask*>(open->device_task), open->call_id,
                open->begin_tick, succeeded);
  const uint64_t stream = info.stream < 0 ? 0 : values[info.stream];
  const bool bounds = BoundsAGraph(info.effect);
  thread.muted = open->muted;  // a call inside this one may have changed it
  uint64_t model_id = 0;
  if (succeeded && info.stream >= 0 && !bounds) model_id = CaptureOf(thread, stream);
  if (model_id != 0 && CopiesAtOnce(thread, info, values, stream)) model_id = 0;
  if (model_id != 0) thread.muted = false;
  if (open->stream_id == 0) open->stream_id = StreamId(thread, info, values, succeeded);
  if (info.effect == Effect::kDeviceChange || info.effect == Effect::kDeviceEnd) thread.device = -1;

  FinishedCall call;
  call.call_id = open->call_id;
  call.parent_id = open->outer_call;
  call.begin_tick = open->begin_tick;
  call.end_tick = end;
  call.stream_id = open->stream_id;
  call.place_id = open->place_id;
  call.status = status;
  call.model_id = model_id;
  call.lasting = model_id != 0 || info.lasting;

  // Births come before the record that names them.
  if (succeeded) AfterSuccess(thread, info, values, *open, stream, call.model_id);
  if (open->freed_block != 0) {
    const Block block{open->freed_begin, open->freed_bytes, open->freed_block, open->freed_device};
    if (succeeded) {
      RecordDeath(thread, block);
    } else {
      PutBlock(block);
    }
  }
  HandleKind kind;
  if (open->ended_id != 0 && EndsHandle(info.effect, &kind)) {
    if (succeeded) {
      if (kind == HandleKind::kModel) {
        ForgetModel(open->ended_id);
        ForgetBindings(open->ended_id);
      }
      if (kind == HandleKind::kStream && WantsDeviceTimes(thread)) {
        EndStreamTimes(thread, open->ended_id);
      }
      EndHandle(thread, kind, open->ended_id);
    } else {
      PutHandle(kind, values[info.positions[0]], open->ended_id);
    }
  }
  if (thread.muted) {
    if (succeeded) KeepCreated(thread, info, values);
    tape->open_call = open->outer_call;
    return;
  }
  thread.BeginEncoding();
  for (int position = 0; position < info.argument_count; ++position) {
    EncodeArgument(thread, info, position, values, *open, succeeded);
  }
  EncodeFurther(thread, info, values, succeeded);
  call.op_index = thread.OpIndex(number, info.dialect, info.name, info.schema);
  if (info.effect == Effect::kCaptureEnd) {
    AfterCaptureEnd(thread, *open, stream, succeeded);
    agent::TakeGraphMoment(agent::GraphMoment::kCaptureEnded, *thread.tape);
  }
  WriteCall(thread, call);
  if (!succeeded) RecordMessage(thread, call.call_id, info.name);
  tape->open_call = open->outer_call;
  if (WantsOutputs(thread)) RecordFinishedCopies(thread, false);
  if (info.effect == Effect::kWait && WantsDeviceTimes(thread)) RecordDeviceTimes(thread);
}

void RecordMissingFunction(uint32_t number) {
  if (Thread* thread = Enter()) {
    thread->tape->WriteLedger(1, 1, "function_missing", kCalls[number].name,
                              "the program called a function that no library of it has",
                              "install a newer toolkit, or look for the function before calling");
  }
}

}  // namespace acltape::acl_agent
