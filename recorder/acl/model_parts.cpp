#include "recorder/acl/model_parts.h"

#include <string.h>

#include <atomic>

#include "acl/acl.h"
#include "recorder/acl/event_calls.h"
#include "recorder/acl/handles.h"
#include "recorder/acl/memory.h"
#include "recorder/acl/objects.h"
#include "recorder/acl/real.h"
#include "recorder/acl/thread.h"
#include "recorder/agent/lock.h"
#include "recorder/agent/memory.h"
#include "recorder/agent/pointer_map.h"

namespace acltape::acl_agent {

namespace {

using wire::ArgumentTag;
using wire::HandleKind;

constexpr uint64_t kCellBytes = 8;  // rule COND-02

agent::PointerMap<uint64_t> g_roots;  // roots of sub-graphs, by id
std::atomic<uint64_t> g_root_count{0};

struct Binding {
  uint64_t stream;
  uint64_t model_id;
};
agent::Mutex g_bindings_mutex;
Binding* g_bindings = nullptr;
size_t g_binding_capacity = 0;
std::atomic<size_t> g_binding_count{0};
// The newest model with a stream that there was no memory to remember, 0: none.
std::atomic<uint64_t> g_model_of_forgotten{0};

const void* KeyOf(uint64_t id) { return reinterpret_cast<const void*>(id << 4); }

uint64_t CellOf(Thread& thread, uint64_t condition) {
  using Function = aclError (*)(aclmdlRICondHandle, uint64_t**);
  static Function get_cell = nullptr;
  if (get_cell == nullptr) {
    get_cell = reinterpret_cast<Function>(RealByName("aclmdlRICondHandleGetCondPtr"));
  }
  uint64_t* cell = nullptr;
  if (get_cell == nullptr || condition == 0) return 0;
  const Inside inside(thread);
  const bool known =
      get_cell(reinterpret_cast<aclmdlRICondHandle>(condition), &cell) == ACL_SUCCESS;
  return known ? reinterpret_cast<uint64_t>(cell) : 0;
}

// Room for one more. The lock is held.
bool GrowBindings() {
  const size_t capacity = g_binding_capacity == 0 ? 16 : 2 * g_binding_capacity;
  void* larger = agent::Resize(g_bindings, capacity * sizeof(Binding), wire::LeftOut::kIdentities);
  if (larger == nullptr) return false;
  g_bindings = static_cast<Binding*>(larger);
  g_binding_capacity = capacity;
  return true;
}

// Streams whose tasks run only as part of a built model are made for it (rules STR-08, BLD-02).
bool MayBeBound(Thread& thread, uint64_t stream) {
  const auto get_flags = TheEventFunctions().flags;
  if (stream == 0) return false;
  uint32_t flags = 0;
  OwnCalls own(thread);
  return get_flags == nullptr ||
         !own.Succeeded(get_flags(reinterpret_cast<aclrtStream>(stream), &flags)) ||
         (flags & ACL_STREAM_PERSISTENT) != 0;
}

// Removes the bindings that `ends` names.
template <typename Ends>
void RemoveBindings(const Ends& ends) {
  if (g_binding_count.load() == 0) return;
  size_t removed = 0;
  {
    agent::Lock lock(g_bindings_mutex);
    const size_t count = g_binding_count.load();
    size_t kept = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!ends(g_bindings[i])) g_bindings[kept++] = g_bindings[i];
    }
    removed = count - kept;
    g_binding_count.store(kept);
  }
  CountCapture(-static_cast<int>(removed));
}

}  // namespace

void AddConditionCell(Thread& thread, uint64_t condition) {
  const uint64_t cell = CellOf(thread, condition);
  if (cell == 0) return;
  AddBlock(thread, cell, kCellBytes, static_cast<uint32_t>(CurrentDevice(thread)) + 1);
  Block block;
  if (FindBlock(cell, &block)) MarkKnown(block.buffer_id, 0, kCellBytes);  // it begins as zero
}

void EncodeConditionCell(Thread& thread, uint64_t condition, bool succeeded) {
  const uint64_t cell = succeeded ? CellOf(thread, condition) : 0;
  if (cell == 0 || !EncodeMemory(thread, cell, kCellBytes))
    thread.signature.Add(ArgumentTag::kNone);
}

void AddSubGraphs(Thread& thread, uint64_t params, uint64_t model_id) {
  aclmdlRICondTaskParams task;
  memcpy(&task, reinterpret_cast<const void*>(params), sizeof(task));
  for (uint32_t i = 0; i < task.size; ++i) {
    const auto handle = reinterpret_cast<uint64_t>(task.modelRIArray[i]);
    const uint64_t id = AddHandle(thread, HandleKind::kModel, handle, 0);
    const agent::PutResult result = g_roots.Put(KeyOf(id), RootGraph(model_id));
    if (result == agent::PutResult::kAdded) g_root_count.fetch_add(1);
    if (result == agent::PutResult::kNoMemory) agent::LeaveOut(wire::LeftOut::kIdentities);
  }
}

void EncodeConditionTask(Thread& thread, uint64_t params, bool succeeded) {
  aclmdlRICondTaskParams task;
  memcpy(&task, reinterpret_cast<const void*>(params), sizeof(task));
  const uint32_t graphs = succeeded ? task.size : 0;
  thread.signature.Add(ArgumentTag::kIntList);
  thread.signature.Add(3 + graphs);
  thread.signature.Add(reinterpret_cast<uint64_t>(task.handle));
  thread.signature.Add(static_cast<int64_t>(task.type));
  thread.signature.Add(static_cast<int64_t>(task.size));
  for (uint32_t i = 0; i < graphs; ++i) {
    thread.signature.Add(
        IdOf(thread, HandleKind::kModel, reinterpret_cast<uint64_t>(task.modelRIArray[i])));
  }
}

uint64_t RootGraph(uint64_t model_id) {
  uint64_t root = model_id;
  if (g_root_count.load(std::memory_order_relaxed) != 0) g_roots.Get(KeyOf(model_id), &root);
  return root;
}

void BindToModel(uint64_t stream, uint64_t model_id) {
  bool kept = false;
  {
    agent::Lock lock(g_bindings_mutex);
    const size_t count = g_binding_count.load();
    kept = count < g_binding_capacity || GrowBindings();
    if (kept) {
      g_bindings[count] = {stream, model_id};
      g_binding_count.store(count + 1);
    }
  }
  // Streams that are forgotten count once, and are never unbound.
  if (kept || g_model_of_forgotten.exchange(model_id) == 0) CountCapture(1);
}

void UnbindFromModel(uint64_t stream) {
  RemoveBindings([&](const Binding& binding) { return binding.stream == stream; });
}

void ForgetBindings(uint64_t model_id) {
  RemoveBindings([&](const Binding& binding) { return binding.model_id == model_id; });
}

uint64_t BoundModel(Thread& thread, uint64_t stream) {
  if (g_binding_count.load(std::memory_order_relaxed) != 0) {
    agent::Lock lock(g_bindings_mutex);
    for (size_t i = 0; i < g_binding_count.load(); ++i) {
      if (g_bindings[i].stream == stream) return g_bindings[i].model_id;
    }
  }
  const uint64_t model_id = g_model_of_forgotten.load(std::memory_order_relaxed);
  return model_id != 0 && MayBeBound(thread, stream) ? model_id : 0;
}

void ForgetModelPartLocks() {
  g_roots.ForgetLocks();
  g_bindings_mutex.Forget();
}

}  // namespace acltape::acl_agent
