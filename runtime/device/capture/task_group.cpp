#include "runtime/device/capture/task_group.h"

#include "runtime/device/capture/capture.h"
#include "runtime/device/error.h"

namespace acltape::device {
namespace {

aclError RunCell(void* argument) {
  BoundKernel* kernel = static_cast<KernelCell*>(argument)->Acquire();
  aclError code = kernel->task.Run();
  kernel->Release();
  return code;
}

void DropCell(void* argument) { static_cast<KernelCell*>(argument)->Release(); }

struct UpdatePayload {
  KernelCell* cell;
  BoundKernel* kernel;
  Device* device;
  bool refused;  // UPD-08
};

aclError RunUpdate(void* argument) {
  auto* update = static_cast<UpdatePayload*>(argument);
  if (update->refused) {
    SetMessage("too many task updates were pending on the device when it was launched");
    return ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
  }
  update->kernel->Retain();
  update->cell->Put(update->kernel);
  return ACL_SUCCESS;
}

void DropUpdate(void* argument) {
  auto* update = static_cast<UpdatePayload*>(argument);
  update->device->pending_updates.fetch_sub(1);
  update->kernel->Release();
  update->cell->Release();
}

}  // namespace

BoundKernel* KernelCell::Acquire() {
  std::lock_guard lock(mutex_);
  kernel_->Retain();
  return kernel_;
}

void KernelCell::Put(BoundKernel* kernel) {
  {
    std::lock_guard lock(mutex_);
    std::swap(kernel_, kernel);
  }
  kernel->Release();
}

TaskGroup::~TaskGroup() {
  if (handle_ != nullptr) WipeHandle(handle_);
  for (KernelCell* cell : cells_) cell->Release();
}

Task TaskGroup::Adopt(const Task& kernel) {
  auto* cell = new KernelCell(new BoundKernel(kernel));
  cells_.push_back(cell);
  cell->Retain();
  Task task;
  task.run = RunCell;
  task.drop = DropCell;
  task.argument = cell;
  task.name = kernel.name;
  task.kind = TaskKind::kKernel;
  task.thread_id = kernel.thread_id;
  task.prepared_by = kernel.prepared_by;
  return task;
}

// A stream that is destroyed takes its open update with it.
TaskUpdate::~TaskUpdate() {
  std::lock_guard lock(CaptureLock());
  if (group_->updater == this) group_->updater = nullptr;
}

Task CurrentKernel(const Model::Node& node) {
  if (node.group == nullptr) return node.task;
  BoundKernel* kernel = static_cast<KernelCell*>(node.task.argument)->Acquire();
  Task task = kernel->task;
  kernel->Release();
  return task;
}

aclError TaskUpdate::Next(const Stream& stream, Task& task) {
  constexpr const char* kCall = "task update";
  const char* name = task.name;
  if (task.kind != TaskKind::kKernel) {
    task.Drop();
    return Fail(ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT,
                "%s on stream %u: %s is no kernel; between update begin and end only kernels may "
                "be launched",
                kCall, stream.id(), name);
  }
  if (complete()) {
    task.Drop();
    return Fail(ACL_ERROR_RT_INTERNAL_ERROR,
                "%s on stream %u: the group has %zu kernels and %s is one more", kCall, stream.id(),
                group_->size(), name);
  }
  KernelCell* cell = group_->cell(next_++);
  cell->Retain();
  Device& device = stream.context().device();
  bool refused = device.pending_updates.fetch_add(1) >= GetProfile().updates;
  task = MakeTask(TaskKind::kControl, "TASK_UPDATE",
                  UpdatePayload{cell, new BoundKernel(task), &device, refused}, RunUpdate);
  task.drop = DropUpdate;
  return ACL_SUCCESS;
}

aclError CheckTaskGroup(Stream& stream, const Task& task) {
  Model& model = *stream.capture;
  TaskGroup* group = model.open_group;
  if (group == nullptr || group->failure != ACL_SUCCESS) return ACL_SUCCESS;
  if (stream.capture_member != model.open_group_member) {
    group->failure = ACL_ERROR_STREAM_TASK_GROUP_INTR;
    Invalidate(model, false);
    return Fail(group->failure,
                "task %s on stream %u: a task group is open on another stream of the same capture, "
                "which is invalidated; end the group first",
                task.name, stream.id());
  }
  if (task.kind == TaskKind::kKernel) return ACL_SUCCESS;
  group->failure = ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT;
  Invalidate(model, false);
  return Fail(group->failure,
              "task %s on stream %u: a task group holds kernels only; the capture is invalidated",
              task.name, stream.id());
}

aclError BeginTaskGroup(Stream& stream) {
  constexpr const char* kCall = "aclmdlRICaptureTaskGrpBegin";
  std::lock_guard lock(CaptureLock());
  if (stream.capture == nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "%s: stream %u is not capturing", kCall,
                stream.id());
  }
  Model& model = *stream.capture;
  if (model.open_group != nullptr || stream.update != nullptr) {
    return Fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "%s: stream %u: a task %s is open already",
                kCall, stream.id(), stream.update != nullptr ? "update" : "group");
  }
  auto group = std::make_shared<TaskGroup>();
  if (group->handle() == nullptr) {
    return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: no handle left for a group", kCall);
  }
  model.open_group = group.get();
  model.open_group_member = stream.capture_member;
  model.groups.push_back(std::move(group));
  return ACL_SUCCESS;
}

aclError EndTaskGroup(Stream& stream, TaskGroup** result) {
  constexpr const char* kCall = "aclmdlRICaptureTaskGrpEnd";
  std::lock_guard lock(CaptureLock());
  Model* model = stream.capture;
  if (model == nullptr || model->open_group == nullptr ||
      model->open_group_member != stream.capture_member) {
    return Fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "%s: stream %u has no open task group", kCall,
                stream.id());
  }
  TaskGroup* group = model->open_group;
  model->open_group = nullptr;
  if (group->failure != ACL_SUCCESS) {
    return Fail(group->failure, "%s: a task that the group does not allow has broken it", kCall);
  }
  if (model->invalidated) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED,
                "%s: the capture was invalidated by an earlier call that failed", kCall);
  }
  *result = group;
  return ACL_SUCCESS;
}

aclError BeginTaskUpdate(Stream& stream, TaskGroup& group) {
  constexpr const char* kCall = "aclmdlRICaptureTaskUpdateBegin";
  std::lock_guard lock(CaptureLock());
  if (stream.capture != nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURED, "%s: stream %u is capturing", kCall, stream.id());
  }
  if (stream.built != nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_MODEL, "%s: stream %u is bound to a model", kCall, stream.id());
  }
  if (stream.update != nullptr) {
    return Fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "%s: stream %u has an open update already",
                kCall, stream.id());
  }
  if (group.updater != nullptr) {
    return Fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "%s: another stream updates the group", kCall);
  }
  stream.update = std::make_shared<TaskUpdate>(group.shared_from_this());
  stream.Divert();
  return ACL_SUCCESS;
}

aclError EndTaskUpdate(Stream& stream) {
  constexpr const char* kCall = "aclmdlRICaptureTaskUpdateEnd";
  std::shared_ptr<TaskUpdate> update;  // outlives the lock
  std::lock_guard lock(CaptureLock());
  if (stream.capture != nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURED, "%s: stream %u is capturing", kCall, stream.id());
  }
  if (stream.update == nullptr) {
    return Fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "%s: stream %u has no open update", kCall,
                stream.id());
  }
  update.swap(stream.update);
  stream.Divert();
  update->group().updater = nullptr;
  if (update->complete()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INTERNAL_ERROR,
              "%s: the group has %zu kernels and %zu were launched; launch as many as at the "
              "capture, in the same order",
              kCall, update->group().size(), update->launched());
}

}  // namespace acltape::device
