// Task groups and their update (TG-01 to TG-06, UPD-01 to UPD-09).
//
// Each kernel of a group runs through a cell. An update is a task of the update stream that puts
// another kernel into the cell, so it takes effect in the order of that stream, also while a replay
// waits in front of the group. A kernel that a replay has begun stays alive until it has ended,
// whatever the order: an update that nothing orders against the replay is a race of the program,
// and must still not crash. No filler tasks are inserted (TG-06).
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/device/event.h"
#include "runtime/device/model.h"

namespace acltape::device {

// A launched kernel with its arguments.
struct BoundKernel : Shared<BoundKernel> {
  explicit BoundKernel(const Task& kernel) : task(kernel) {}
  ~BoundKernel() { task.Drop(); }
  Task task;
};

// The place of one kernel of a group.
class KernelCell : public Shared<KernelCell> {
 public:
  explicit KernelCell(BoundKernel* kernel) : kernel_(kernel) {}
  ~KernelCell() { kernel_->Release(); }

  // The kernel of now; the caller releases it.
  BoundKernel* Acquire();
  void Put(BoundKernel* kernel);

 private:
  std::mutex mutex_;
  BoundKernel* kernel_;
};

class TaskUpdate;

class TaskGroup : public std::enable_shared_from_this<TaskGroup> {
 public:
  TaskGroup() : handle_(AllocateHandle(HandleKind::kTaskGroup, this)) {}
  ~TaskGroup();

  HandleBlock* handle() const { return handle_; }
  size_t size() const { return cells_.size(); }
  KernelCell* cell(size_t i) const { return cells_[i]; }

  // The task that stands for a captured kernel of the group.
  Task Adopt(const Task& kernel);

  // Guarded by the capture lock.
  const TaskUpdate* updater = nullptr;
  aclError failure = ACL_SUCCESS;  // TG-05

 private:
  HandleBlock* handle_;
  std::vector<KernelCell*> cells_;
};

// An open update of a group by a stream.
class TaskUpdate {
 public:
  // The capture lock is held.
  explicit TaskUpdate(std::shared_ptr<TaskGroup> group) : group_(std::move(group)) {
    group_->updater = this;
  }
  // The capture lock is not held.
  ~TaskUpdate();

  // The capture lock is held. Turns a launched kernel into the task that updates the next cell; on
  // failure drops the kernel.
  aclError Next(const Stream& stream, Task& task);
  bool complete() const { return next_ == group_->size(); }
  TaskGroup& group() const { return *group_; }
  size_t launched() const { return next_; }

 private:
  std::shared_ptr<TaskGroup> group_;
  size_t next_ = 0;
};

// The kernel that a captured task runs now; its own task when it is of no group.
Task CurrentKernel(const Model::Node& node);

aclError BeginTaskGroup(Stream& stream);
aclError EndTaskGroup(Stream& stream, TaskGroup** group);
aclError BeginTaskUpdate(Stream& stream, TaskGroup& group);
aclError EndTaskUpdate(Stream& stream);

// The capture lock is held. TG-03, TG-04: whether the open group of the stream's capture allows the
// task; otherwise invalidates the capture.
aclError CheckTaskGroup(Stream& stream, const Task& task);

}  // namespace acltape::device
