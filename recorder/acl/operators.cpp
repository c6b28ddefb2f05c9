#include "recorder/acl/operators.h"

#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "acl/invoke/operator_table.h"
#include "generated/recorder/operator_parts.h"
#include "recorder/acl/argument_flags.h"
#include "recorder/acl/device_times.h"
#include "recorder/acl/handles.h"
#include "recorder/acl/memory.h"
#include "recorder/acl/messages.h"
#include "recorder/acl/objects.h"
#include "recorder/acl/random_operators.h"
#include "recorder/acl/real.h"
#include "recorder/acl/thread.h"
#include "recorder/acl/torch_threads.h"
#include "recorder/acl/values.h"
#include "recorder/agent/lock.h"
#include "recorder/agent/memory.h"
#include "recorder/agent/pointer_map.h"
#include "recorder/agent/source_line.h"

namespace acltape::acl_agent {

// The arguments of a first phase, kept until the launch. The launch may come in another thread: a
// framework with a task queue calls the first phase where the program is and launches from the
// queue's own thread. So the entry is found by its executor, never by the thread that was last
// seen. The call of the program that caused it is the one that was open at the first phase. The
// executor's address may be used again once it was launched or destroyed. So the entry is taken out
// of the map before the library is told of either, and no first phase in between can meet it.
struct Prepared {
  aclOpExecutor* executor;
  uint32_t op;
  uint64_t parent_id;  // the call that was open at the first phase, 0: none
  uint32_t place_id;   // the line of source that called it, 0: unknown
  bool repeatable;
  bool launched;      // once at least
  bool is_random;     // its results belong to a leaf whose values are random
  bool communicates;  // its results come from other ranks
  uint64_t ticks;
  Bytes signature;
  uint64_t* slots;
  uint32_t slot_count;
  uint32_t slot_capacity;
  TensorPlaces places;
};

namespace {

agent::PointerMap<Prepared*> g_prepared;

// True once it is known that the operator draws no random numbers, by its place in the table. Most
// never do, and to find it out takes a search by name.
std::atomic<bool> g_draws_none[kMaxFunctions];

bool Draws(uint32_t op, const acl::ArgValue* values) {
  if (g_draws_none[op].load(std::memory_order_relaxed)) return false;
  const acl::OperatorInfo& info = acl::OperatorAt(op);
  if (MayDrawNumbers(info)) return DrawsNumbers(info, values);
  g_draws_none[op].store(true, std::memory_order_relaxed);
  return false;
}

// True once it is known that the operator exchanges no data with other ranks.
std::atomic<bool> g_stays_here[kMaxFunctions];

bool Communicates(uint32_t op) {
  if (g_stays_here[op].load(std::memory_order_relaxed)) return false;
  if (meaning::Communicates(acl::OperatorAt(op).name)) return true;
  g_stays_here[op].store(true, std::memory_order_relaxed);
  return false;
}

// True once it is known that the operator writes all of its results, by its place in the table.
std::atomic<bool> g_writes_all[kMaxFunctions];

// True if the operator may leave a result alone.
bool MayLeaveAlone(uint32_t op) {
  if (g_writes_all[op].load(std::memory_order_relaxed)) return false;
  if (meaning::FindConditionalOutput(acl::OperatorAt(op).name) != nullptr) return true;
  g_writes_all[op].store(true, std::memory_order_relaxed);
  return false;
}

// True when the operator's results belong to a leaf whose values are random. From the leaf's first
// random operator on, the results of all its operators do.
bool BelongsToRandomLeaf(Thread& thread, uint32_t op, const acl::ArgValue* values) {
  agent::Tape* tape = thread.tape;
  if (tape->open_call == 0 || !WantsInputs(thread)) return false;
  if (Draws(op, values)) tape->random_call = tape->open_call;
  return tape->random_call == tape->open_call;
}

const char* SchemaOf(uint32_t op) {
  return kOperatorSchemas[op / kOperatorsPerPart][op % kOperatorsPerPart];
}

uint32_t OpIndex(Thread& thread, uint32_t op) {
  return thread.OpIndex(OperatorFunction(op, true), 1, acl::OperatorAt(op).name.data(),
                        SchemaOf(op));
}

// Prepared launches with their memory, for the next first phases of any thread: where one thread
// calls the first phases and another one launches, malloc would have to carry the memory back.
struct Spares {
  static constexpr uint32_t kMost = 1024;
  agent::Mutex mutex;
  Prepared* prepared[kMost];
  uint32_t count = 0;

  Prepared* Take() {
    agent::Lock lock(mutex);
    return count == 0 ? nullptr : prepared[--count];
  }
  bool Keep(Prepared* one) {
    agent::Lock lock(mutex);
    if (count == kMost) return false;
    prepared[count++] = one;
    return true;
  }
};
Spares g_spares;

// A Prepared with the thread's call in it; null without memory.
Prepared* NewPrepared(Thread& thread) {
  Prepared* prepared = thread.spare;
  thread.spare = nullptr;
  if (prepared == nullptr) prepared = g_spares.Take();
  if (prepared == nullptr) {
    prepared = static_cast<Prepared*>(
        agent::AllocateZeros(1, sizeof(Prepared), wire::LeftOut::kArguments));
  }
  if (prepared == nullptr) return nullptr;
  prepared->repeatable = prepared->launched = false;
  prepared->places.count = 0;
  return prepared;
}

void FreePrepared(Thread* thread, Prepared* prepared) {
  if (thread != nullptr && thread->spare == nullptr) {
    thread->spare = prepared;
    return;
  }
  if (g_spares.Keep(prepared)) return;
  free(prepared->signature.data);
  free(prepared->slots);
  free(prepared->places.data);
  free(prepared);
}

// Takes the encoded arguments over from the thread; the two swap their memory.
bool KeepEncoding(Thread& thread, Prepared& prepared) {
  if (prepared.slot_capacity < thread.slot_count + 64) {
    const uint32_t capacity = thread.slot_count + 64;
    void* larger =
        agent::Resize(prepared.slots, capacity * sizeof(uint64_t), wire::LeftOut::kArguments);
    if (larger == nullptr) return false;
    prepared.slots = static_cast<uint64_t*>(larger);
    prepared.slot_capacity = capacity;
  }
  memcpy(prepared.slots, thread.slots, thread.slot_count * sizeof(uint64_t));
  prepared.slot_count = thread.slot_count;
  const Bytes mine = prepared.signature;
  prepared.signature = thread.signature;
  thread.signature = mine;
  thread.BeginEncoding();
  // The places of tensors lie in bytes that are not all there.
  if (prepared.signature.lost) prepared.places.count = 0;
  return true;
}

void EncodeArguments(Thread& thread, uint32_t op, const acl::ArgValue* values,
                     TensorPlaces& places) {
  const acl::OperatorInfo& info = acl::OperatorAt(op);
  const bool conditional = MayLeaveAlone(op);
  thread.BeginEncoding();
  for (uint32_t i = 0; i < info.arg_count; ++i) {
    const acl::ArgInfo& arg = info.args[i];
    const bool written =
        arg.direction != acl::Direction::kIn && !(conditional && IsLeftAlone(info, arg, values));
    EncodeArgument(thread, arg.kind, values[i], static_cast<int32_t>(i),
                   arg.direction != acl::Direction::kOut, written, places);
  }
}

// The first phase failed: a call of its own.
void RecordFailedPrepare(Thread& thread, uint32_t op, const acl::ArgValue* values,
                         uint32_t place_id, uint64_t begin, uint64_t end, int32_t status) {
  TensorPlaces places;
  EncodeArguments(thread, op, values, places);
  free(places.data);
  thread.signature.Add(wire::ArgumentTag::kNone);  // workspace
  FinishedCall call;
  call.call_id = thread.tape->NextCallId();
  call.parent_id = thread.tape->open_call;
  call.begin_tick = begin;
  call.end_tick = end;
  call.prepare_ticks = end - begin;
  call.place_id = place_id;
  call.status = status;
  call.op_index = OpIndex(thread, op);
  WriteCall(thread, call);
  RecordMessage(thread, call.call_id, acl::OperatorAt(op).name.data());
}

Prepared* TakePrepared(aclOpExecutor* executor) {
  Prepared* prepared = nullptr;
  return g_prepared.Take(executor, &prepared) ? prepared : nullptr;
}

void PutPrepared(Prepared* prepared) {
  Prepared* before = nullptr;
  switch (g_prepared.Put(prepared->executor, prepared, &before)) {
    case agent::PutResult::kAdded:
      return;
    case agent::PutResult::kReplaced:
      return FreePrepared(nullptr, before);
    case agent::PutResult::kNoMemory:
      agent::LeaveOut(wire::LeftOut::kArguments);
      return FreePrepared(nullptr, prepared);
  }
}

// A repeatable executor can be launched again.
void AfterLaunch(Thread* thread, Prepared* prepared) {
  prepared->launched = true;
  if (prepared->repeatable) {
    PutPrepared(prepared);
  } else {
    FreePrepared(thread, prepared);
  }
}

// Inputs that nothing explains are kept before the call that reads them.
void KeepInputs(Thread& thread, const Prepared& prepared, uint64_t call_id, uint64_t stream,
                uint64_t model_id) {
  for (uint32_t i = 0; i < prepared.places.count; ++i) {
    const TensorPlace& place = prepared.places.data[i];
    if (!place.read || place.buffer_id == 0) continue;
    if (!WantsInputs(thread)) continue;
    if (model_id != 0) {
      NoteCaptured(model_id, place.buffer_id, place.base, place.first_byte, place.end_byte,
                   CapturedUse::kDeviceRead);
      continue;
    }
    KeepUnknown(thread, call_id, stream, place.buffer_id, place.base, place.first_byte,
                place.end_byte);
  }
}

// Bytes of an encoded tensor (EncodeTensor in objects.cpp).
uint32_t EncodedBytes(const std::byte* tensor) {
  uint32_t bytes = 14u + 16u * static_cast<uint8_t>(tensor[2]);
  if ((static_cast<uint8_t>(tensor[3]) & wire::kTensorFormat) == 0) return bytes;
  int32_t format = 0;
  memcpy(&format, tensor + bytes, sizeof(format));
  bytes += sizeof(format);
  const bool four_bits = format == meaning::kFormatOfFourBits;
  const bool blocks = format == ACL_FORMAT_FRACTAL_NZ || format == meaning::kFormatOfFourBitBlocks;
  if (!blocks && !four_bits) return bytes;
  return bytes + 1u + 16u * static_cast<uint8_t>(tensor[bytes]) + (four_bits ? 1u : 0u);
}

void KeepOutputs(Thread& thread, const Prepared& prepared, uint64_t call_id, uint64_t stream,
                 uint64_t model_id) {
  for (uint32_t i = 0; i < prepared.places.count; ++i) {
    const TensorPlace& place = prepared.places.data[i];
    if (!place.written || place.buffer_id == 0 || place.first_byte == place.end_byte) continue;
    if (model_id != 0) {
      NoteCaptured(model_id, place.buffer_id, place.base, place.first_byte, place.end_byte,
                   CapturedUse::kWrite);
      continue;
    }
    MarkKnown(place.buffer_id, place.first_byte, place.end_byte);
    // Nobody can compute these again but the device that drew them, or all ranks together.
    if (!WantsOutputs(thread) && !prepared.is_random && !prepared.communicates) continue;
    const std::byte* tensor = prepared.signature.data + place.slot_at - 4;
    KeepRandom(thread, call_id, stream, place.position, place.buffer_id, place.base,
               place.first_byte, place.end_byte, tensor, EncodedBytes(tensor));
  }
}

}  // namespace

aclnnStatus Prepare(uint32_t op, const acl::ArgValue* values, uint64_t* workspace_size,
                    aclOpExecutor** executor, const void* caller) {
  const acl::OperatorInfo& info = acl::OperatorAt(op);
  void* real = Real(OperatorFunction(op, false));
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  Thread* thread = Enter();
  if (thread == nullptr) return info.prepare(real, values, workspace_size, executor);
  NoticeWindow(*thread);
  agent::HookTimer timer(thread->tape->own, thread->tape->open);
  const uint32_t place_id = thread->muted && ActiveCaptures() == 0
                                ? 0
                                : agent::SourceLine(*thread->tape, agent::LockUse::kTake, caller);
  Inside::Set(*thread);
  const uint64_t begin = agent::Tick();
  const aclnnStatus status = info.prepare(real, values, workspace_size, executor);
  const uint64_t end = agent::Tick();
  Inside::Clear(*thread);
  timer.LeaveOut(end - begin);
  if (status != ACLNN_SUCCESS || executor == nullptr || *executor == nullptr) {
    if (!thread->muted) {
      RecordFailedPrepare(*thread, op, values, place_id, begin, end, status);
    }
    return status;
  }
  Prepared* prepared = NewPrepared(*thread);
  if (prepared == nullptr) return status;
  prepared->executor = *executor;
  prepared->op = op;
  prepared->parent_id = thread->tape->open_call;
  prepared->place_id = place_id;
  prepared->ticks = end - begin;
  prepared->is_random = BelongsToRandomLeaf(*thread, op, values);
  prepared->communicates = WantsInputs(*thread) && Communicates(op);
  EncodeArguments(*thread, op, values, prepared->places);
  // From its first phase on the tensor's handle stands for the blocks.
  if (info.name == "aclnnTransMatmulWeight") {
    TurnIntoBlocks(acl::Unpack<const aclTensor*>(values[0]));
  }
  if (!KeepEncoding(*thread, *prepared)) {
    FreePrepared(nullptr, prepared);
    return status;
  }
  PutPrepared(prepared);
  return status;
}

aclnnStatus Launch(uint32_t op, const acl::ArgValue* repeated, void* workspace,
                   uint64_t workspace_size, aclOpExecutor* executor, aclrtStream stream) {
  const acl::OperatorInfo& info = acl::OperatorAt(op);
  void* real = Real(OperatorFunction(op, true));
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  Thread* thread = Enter();
  if (thread == nullptr) {
    return info.launch(real, repeated, workspace, workspace_size, executor, stream);
  }
  agent::Tape* tape = thread->tape;
  NoticeWindow(*thread);
  agent::HookTimer timer(tape->own, tape->open);
  Prepared* prepared = TakePrepared(executor);
  const auto handle = reinterpret_cast<uint64_t>(stream);
  FinishedCall call;
  call.model_id = CaptureOf(*thread, handle);
  const uint64_t graph = call.model_id != 0 ? call.model_id : UpdatedModel(handle);
  if (thread->muted && graph == 0) {
    const Inside inside(*thread);
    const aclnnStatus status =
        info.launch(real, repeated, workspace, workspace_size, executor, stream);
    if (prepared != nullptr) AfterLaunch(thread, prepared);
    return status;
  }
  thread->muted = false;
  call.lasting = graph != 0;
  call.call_id = tape->NextCallId();
  const uint64_t outer_call = tape->open_call;
  call.parent_id = prepared != nullptr ? prepared->parent_id : outer_call;
  call.place_id = prepared != nullptr ? prepared->place_id : 0;
  call.launched = true;
  call.op_index = OpIndex(*thread, op);
  tape->open_call = call.call_id;
  const bool values = WantsAnything(*thread);
  if (values && prepared != nullptr) {
    KeepInputs(*thread, *prepared, call.call_id, handle, graph);
  }
  DeviceTask* task = WantsDeviceTimes(*thread) ? BeginDeviceTask(*thread, handle) : nullptr;
  Inside::Set(*thread);
  call.begin_tick = agent::Tick();
  call.status = info.launch(real, repeated, workspace, workspace_size, executor, stream);
  call.end_tick = agent::Tick();
  Inside::Clear(*thread);
  timer.LeaveOut(call.end_tick - call.begin_tick);
  const bool succeeded = call.status == ACLNN_SUCCESS;
  EndDeviceTask(*thread, task, call.call_id, call.begin_tick, succeeded);
  if (stream != nullptr) {
    call.stream_id = IdOf(*thread, wire::HandleKind::kStream, handle, succeeded);
  } else if (succeeded) {
    call.stream_id = DefaultStreamId(*thread);
  }
  tape->open_call = outer_call;
  thread->BeginEncoding();
  if (prepared == nullptr) {
    tape->WriteLedger(1, 1, "launch_without_first_phase", info.name.data(),
                      "an operator was launched whose first phase was not recorded",
                      "record from the program's start");
    WriteCall(*thread, call);
    if (!succeeded) RecordMessage(*thread, call.call_id, info.name.data());
    return call.status;
  }
  call.prepare_ticks = prepared->launched ? 0 : prepared->ticks;
  thread->signature.Append(prepared->signature.data, prepared->signature.size);
  thread->signature.lost |= prepared->signature.lost;
  thread->signature.too_long |= prepared->signature.too_long;
  memcpy(thread->slots, prepared->slots, prepared->slot_count * sizeof(uint64_t));
  thread->slot_count = prepared->slot_count;
  if (workspace_size == 0 ||
      !EncodeMemory(*thread, reinterpret_cast<uint64_t>(workspace), workspace_size)) {
    thread->signature.Add(wire::ArgumentTag::kNone);
  }
  WriteCall(*thread, call);
  if (!succeeded) RecordMessage(*thread, call.call_id, info.name.data());
  ReportTorchThreads(*thread, call.call_id);
  if (values && succeeded) {
    KeepOutputs(*thread, *prepared, call.call_id, handle, graph);
  }
  AfterLaunch(thread, prepared);
  return call.status;
}

void MakeRepeatable(aclOpExecutor* executor) {
  Prepared* prepared = TakePrepared(executor);
  if (prepared == nullptr) return;
  prepared->repeatable = true;
  PutPrepared(prepared);
}

void DropExecutor(aclOpExecutor* executor) {
  Thread* thread = Enter();
  if (Prepared* prepared = TakePrepared(executor)) FreePrepared(thread, prepared);
}

void MoveTensor(aclOpExecutor* executor, const void* tensor, int64_t element, void* address) {
  Prepared* prepared = TakePrepared(executor);
  if (prepared == nullptr) return;
  Thread* thread = Enter();
  for (uint32_t i = 0; i < prepared->places.count; ++i) {
    TensorPlace& place = prepared->places.data[i];
    if (place.object != tensor || place.element != element) continue;
    if (prepared->slot_count == prepared->slot_capacity) break;
    if (prepared->slot_count == Thread::kMaxSlots) break;
    MovePlace(thread, place, reinterpret_cast<uint64_t>(address), prepared->signature.data,
              prepared->slots, &prepared->slot_count);
  }
  PutPrepared(prepared);
}

void ForgetExecutorLocks() {
  g_prepared.ForgetLocks();
  g_spares.mutex.Forget();
}

}  // namespace acltape::acl_agent
