#include "recorder/acl/handles.h"

#include <atomic>

#include "acl/acl.h"
#include "recorder/acl/model_parts.h"
#include "recorder/acl/real.h"
#include "recorder/acl/thread.h"
#include "recorder/agent/lock.h"
#include "recorder/agent/memory.h"
#include "recorder/agent/pointer_map.h"

namespace acltape::acl_agent {

namespace {

constexpr int kKinds = 3;
constexpr uint32_t kMaxDevices = 64;

agent::PointerMap<uint64_t> g_ids[kKinds];
agent::Mutex g_mutex;
uint64_t g_default_streams[kMaxDevices];
std::atomic<int64_t> g_captures{0};
agent::PointerMap<uint64_t> g_groups;   // models of task groups
agent::PointerMap<uint64_t> g_updates;  // models that streams are changing
std::atomic<int64_t> g_update_count{0};

// Objects that a muted call created, by id: told when a recorded call first names them.
agent::PointerMap<wire::HandleRecord> g_untold;
std::atomic<uint64_t> g_untold_handles{0};

agent::PointerMap<uint64_t>& Ids(wire::HandleKind kind) { return g_ids[static_cast<int>(kind)]; }

// Without memory the object gets another id when it is met again, which is counted.
bool KeepIn(agent::PointerMap<uint64_t>& map, uint64_t key, uint64_t id) {
  const agent::PutResult result = map.Put(reinterpret_cast<void*>(key), id);
  if (result == agent::PutResult::kNoMemory) agent::LeaveOut(wire::LeftOut::kIdentities);
  return result == agent::PutResult::kAdded;
}

void Write(Thread& thread, const wire::HandleRecord& row) {
  agent::Tape* tape = thread.tape;
  uint32_t total = 0;
  auto* record = tape->Begin<wire::HandleRecord>(wire::RecordKind::kHandle, 0, &total);
  if (record == nullptr) return;
  const wire::RecordHeader header = record->header;
  *record = row;
  record->header = header;
  tape->End(total);
}

const void* UntoldKey(uint64_t id) { return reinterpret_cast<const void*>(id << 4); }

bool TakeUntoldHandle(uint64_t id, wire::HandleRecord* row) {
  if (__builtin_expect(g_untold_handles.load(std::memory_order_relaxed) == 0, 1)) return false;
  if (!g_untold.Take(UntoldKey(id), row)) return false;
  g_untold_handles.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

// The id, which a record is about to name.
uint64_t Named(Thread& thread, uint64_t id) {
  wire::HandleRecord row;
  if (!thread.muted && TakeUntoldHandle(id, &row)) Write(thread, row);
  return id;
}

uint64_t Add(Thread& thread, wire::HandleKind kind, uint64_t handle, uint32_t flags,
             uint64_t call_id) {
  const uint64_t id = thread.tape->NextHandleId();
  if (handle != 0) KeepIn(Ids(kind), handle, id);
  wire::HandleRecord row{};
  row.handle_id = id;
  row.address = handle;
  row.call_id = call_id;
  row.device = static_cast<uint32_t>(CurrentDevice(thread));
  row.flags = flags;
  row.kind = kind;
  row.moment = wire::HandleMoment::kCreated;
  if (!thread.muted) {
    Write(thread, row);
  } else if (g_untold.Put(UntoldKey(id), row) == agent::PutResult::kNoMemory) {
    agent::LeaveOut(wire::LeftOut::kIdentities);
  } else {
    g_untold_handles.fetch_add(1, std::memory_order_relaxed);
  }
  return id;
}

}  // namespace

uint64_t IdOf(Thread& thread, wire::HandleKind kind, uint64_t handle, bool add) {
  if (handle == 0) return 0;
  uint64_t id = 0;
  if (Ids(kind).Get(reinterpret_cast<void*>(handle), &id)) return Named(thread, id);
  return add ? Add(thread, kind, handle, 0, 0) : 0;
}

uint64_t TakeHandle(wire::HandleKind kind, uint64_t handle) {
  uint64_t id = 0;
  return Ids(kind).Take(reinterpret_cast<void*>(handle), &id) ? id : 0;
}

void PutHandle(wire::HandleKind kind, uint64_t handle, uint64_t id) {
  KeepIn(Ids(kind), handle, id);
}

uint64_t DefaultStreamId(Thread& thread) {
  const auto device = static_cast<uint32_t>(CurrentDevice(thread)) % kMaxDevices;
  agent::Lock lock(g_mutex);
  if (g_default_streams[device] == 0) {
    g_default_streams[device] = Add(thread, wire::HandleKind::kStream, 0, 0, 0);
  }
  return Named(thread, g_default_streams[device]);
}

uint64_t AddHandle(Thread& thread, wire::HandleKind kind, uint64_t handle, uint32_t flags) {
  return Add(thread, kind, handle, flags, thread.muted ? 0 : thread.tape->open_call);
}

uint64_t AddDefaultStream(Thread& thread, uint64_t handle) {
  const uint64_t id = DefaultStreamId(thread);
  if (handle != 0) KeepIn(Ids(wire::HandleKind::kStream), handle, id);
  return id;
}

void EndCapture(Thread& thread, uint64_t model_id) {
  wire::HandleRecord row{};
  row.handle_id = model_id;
  row.call_id = thread.tape->open_call;
  row.kind = wire::HandleKind::kModel;
  row.moment = wire::HandleMoment::kCaptureEnded;
  Write(thread, row);
}

void EndHandle(Thread& thread, wire::HandleKind kind, uint64_t id) {
  wire::HandleRecord row{};
  if (TakeUntoldHandle(id, &row)) return;
  row = {};
  row.handle_id = id;
  row.call_id = thread.tape->open_call;
  row.kind = kind;
  row.moment = wire::HandleMoment::kDestroyed;
  Write(thread, row);
}

int64_t ActiveCaptures() { return g_captures.load(std::memory_order_relaxed); }

void CountCapture(int change) {
  // A capture that was discarded with its device ends nowhere: never below zero.
  int64_t now = g_captures.load();
  while (!g_captures.compare_exchange_weak(now, now + change < 0 ? 0 : now + change)) {
  }
}

uint64_t ModelHandleOf(Thread& thread, uint64_t stream) {
  using Function = aclError (*)(aclrtStream, aclmdlRICaptureStatus*, aclmdlRI*);
  static Function get_info = nullptr;
  if (get_info == nullptr) {
    get_info = reinterpret_cast<Function>(RealByName("aclmdlRICaptureGetInfo"));
  }
  if (get_info == nullptr || stream == 0) return 0;
  auto status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
  aclmdlRI model = nullptr;
  const Inside inside(thread);
  const bool known =
      get_info(reinterpret_cast<aclrtStream>(stream), &status, &model) == ACL_SUCCESS;
  if (!known || status == ACL_MODEL_RI_CAPTURE_STATUS_NONE) return 0;
  return reinterpret_cast<uint64_t>(model);
}

uint64_t CaptureOf(Thread& thread, uint64_t stream) {
  if (__builtin_expect(ActiveCaptures() == 0, 1)) return 0;
  if (const uint64_t bound = BoundModel(thread, stream); bound != 0) return bound;
  return IdOf(thread, wire::HandleKind::kModel, ModelHandleOf(thread, stream));
}

void AddGroup(uint64_t group, uint64_t model_id) { KeepIn(g_groups, group, model_id); }

void BeginUpdate(uint64_t stream, uint64_t group) {
  uint64_t model_id = 0;
  if (!g_groups.Get(reinterpret_cast<void*>(group), &model_id)) return;
  if (KeepIn(g_updates, stream, model_id)) g_update_count.fetch_add(1);
}

void EndUpdate(uint64_t stream) {
  if (g_updates.Take(reinterpret_cast<void*>(stream), nullptr)) g_update_count.fetch_sub(1);
}

uint64_t UpdatedModel(uint64_t stream) {
  if (__builtin_expect(g_update_count.load(std::memory_order_relaxed) == 0, 1)) return 0;
  uint64_t model_id = 0;
  return g_updates.Get(reinterpret_cast<void*>(stream), &model_id) ? model_id : 0;
}

void ForgetHandleLocks() {
  g_groups.ForgetLocks();
  g_untold.ForgetLocks();
  g_updates.ForgetLocks();
  for (auto& ids : g_ids) ids.ForgetLocks();
  g_mutex.Forget();
  ForgetModelPartLocks();
  // The child has devices, and captures, of its own.
  for (uint64_t& id : g_default_streams) id = 0;
  g_captures.store(0);
}

}  // namespace acltape::acl_agent
