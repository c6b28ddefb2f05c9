#include "runtime/device/changes.h"

#include <algorithm>
#include <cstring>

#include "runtime/device/capture/task_group.h"
#include "runtime/device/error.h"
#include "runtime/device/event.h"
#include "runtime/device/value_task.h"

namespace acltape::device {
namespace {

// One model is changed by one thread at a time (ENUM-16), but may be looked at by others.
std::mutex& InspectionLock() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

struct TypeRow {
  TaskKind kind;
  aclmdlRITaskType type;
};
constexpr TypeRow kTypes[] = {
    {TaskKind::kKernel, ACL_MODEL_RI_TASK_KERNEL},
    {TaskKind::kEventRecord, ACL_MODEL_RI_TASK_EVENT_RECORD},
    {TaskKind::kEventWait, ACL_MODEL_RI_TASK_EVENT_WAIT},
    {TaskKind::kEventReset, ACL_MODEL_RI_TASK_EVENT_RESET},
    {TaskKind::kValueWrite, ACL_MODEL_RI_TASK_VALUE_WRITE},
    {TaskKind::kValueWait, ACL_MODEL_RI_TASK_VALUE_WAIT},
};

KernelAttributes& AttributesOf(Model::Node& node) {
  if (node.attributes == nullptr) node.attributes = std::make_unique<KernelAttributes>();
  return *node.attributes;
}

aclError GetKernelParams(Model::Node& node, aclmdlRITaskParams* params) {
  Task kernel = CurrentKernel(node);
  Function* function = FunctionOf(kernel);
  if (function == nullptr) {
    return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
                "aclmdlRITaskGetParams: no handle left for a function");
  }
  KernelAttributes& attributes = AttributesOf(node);
  attributes.config = {attributes.attributes.data(), attributes.attributes.size()};
  aclmdlRIKernelTaskParams& out = params->kernelTaskParams;
  out.funcHandle = function->handle;
  out.cfg = &attributes.config;
  out.numBlocks = attributes.blocks;
  out.argsSize = ArgumentBytes(kernel);
  out.isHostArgs = 1;
  if (TakesBytes(kernel)) {
    out.args = kernel.argument;
  } else {
    attributes.opaque = kernel.argument;
    out.args = &attributes.opaque;
  }
  if (node.group != nullptr) params->taskGrp = node.group->handle();
  return ACL_SUCCESS;
}

void GetEventParams(const Model::Node& node, aclmdlRITaskType type, aclmdlRITaskParams* params) {
  auto* live = node.event.event.Get<Event>(HandleKind::kEvent);
  aclrtEvent event = live != nullptr ? live->handle() : nullptr;
  switch (type) {
    case ACL_MODEL_RI_TASK_EVENT_RECORD:
      params->eventRecordTaskParams = {event, node.event.flags, node.event.external};
      break;
    case ACL_MODEL_RI_TASK_EVENT_WAIT:
      params->eventWaitTaskParams = {event, node.event.flags, node.event.external};
      break;
    default:
      params->eventResetTaskParams = {event, node.event.flags, node.event.external};
  }
}

aclError Refuse(const char* what) {
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "aclmdlRITaskSetParams: %s", what);
}

// An opaque argument belongs to a kernel of the same model and function.
bool HasOpaqueArgument(const Model& model, const Function& function, const void* argument) {
  auto matches = [&](const Task& kernel) {
    return kernel.run == function.run && kernel.name == function.name &&
           kernel.argument == argument;
  };
  return std::any_of(model.nodes.begin(), model.nodes.end(),
                     [&](const Model::Node& node) {
                       return TypeOf(node) == ACL_MODEL_RI_TASK_KERNEL && node.group == nullptr &&
                              matches(node.task);
                     }) ||
         std::any_of(model.replaced.begin(), model.replaced.end(), matches);
}

aclError MakeKernel(const Model& model, const aclmdlRIKernelTaskParams& params, Task* task) {
  auto* function = ObjectOf<Function>(params.funcHandle, HandleKind::kFunction);
  if (function == nullptr) return Refuse("the function handle is not valid");
  if (params.args == nullptr || params.argsSize == 0) {
    return Refuse("the argument block is missing");
  }
  if (function->takes_bytes) {
    *task = KernelTaskWithArgs(*function, params.args, params.argsSize);
    return ACL_SUCCESS;
  }
  void* argument = nullptr;
  if (params.argsSize != sizeof(argument)) {
    return Refuse(
        "the arguments of this function are opaque; give a block of 8 bytes that "
        "aclmdlRITaskGetParams has shown");
  }
  std::memcpy(&argument, params.args, sizeof(argument));
  if (!HasOpaqueArgument(model, *function, argument)) {
    return Refuse("the argument block is of no kernel of this function in this model");
  }
  task->run = function->run;
  task->argument = argument;  // the former owner keeps it
  task->name = function->name;
  task->kind = TaskKind::kKernel;
  return ACL_SUCCESS;
}

// ENUM-10: what the task becomes.
aclError MakeTaskOf(const Model::Node& node, const aclmdlRITaskParams& params, Task* task) {
  constexpr const char* kCall = "aclmdlRITaskSetParams";
  if (params.type != TypeOf(node)) return Refuse("the type is not that of the task");
  switch (params.type) {
    case ACL_MODEL_RI_TASK_KERNEL:
      return MakeKernel(*node.model, params.kernelTaskParams, task);
    case ACL_MODEL_RI_TASK_VALUE_WRITE: {
      const aclmdlRIValueWriteTaskParams& write = params.valueWriteTaskParams;
      if (write.devAddr == nullptr) return Refuse("devAddr is NULL");
      if (aclError code = CheckValueAddress(write.devAddr, kCall); code != ACL_SUCCESS) return code;
      *task = ValueWriteTask(write.devAddr, write.value);
      return ACL_SUCCESS;
    }
    case ACL_MODEL_RI_TASK_VALUE_WAIT: {
      const aclmdlRIValueWaitTaskParams& wait = params.valueWaitTaskParams;
      if (wait.devAddr == nullptr) return Refuse("devAddr is NULL");
      if (aclError code = CheckValueAddress(wait.devAddr, kCall); code != ACL_SUCCESS) return code;
      if (aclError code = CheckValueComparison(wait.flag, kCall); code != ACL_SUCCESS) return code;
      *task = ValueWaitTask(wait.devAddr, wait.value, wait.flag);
      return ACL_SUCCESS;
    }
    default:
      return Refuse("only kernels, value writes and value waits can be set");
  }
}

aclError RefuseState(const Model& model, const char* call) {
  return Fail(ACL_ERROR_RT_MODEL_UPDATE_FAILED,
              "%s: model %u is running, faulty or not complete, so that it cannot be changed", call,
              model.id());
}

void Apply(Model& model, Model::Node& node) {
  KernelAttributes& changes = *node.attributes;
  if (changes.disable) node.disabled = true;
  if (changes.set) {
    model.replaced.push_back(node.task);
    uint32_t thread_id = node.task.thread_id;
    node.task = changes.next;
    node.task.thread_id = thread_id;
    changes.blocks = changes.next_blocks;
    changes.attributes = std::move(changes.next_attributes);
  }
  changes.disable = changes.set = false;
  changes.next = Task();
}

}  // namespace

KernelAttributes::~KernelAttributes() { next.Drop(); }

aclmdlRITaskType TypeOf(const Model::Node& node) {
  for (const TypeRow& row : kTypes) {
    if (row.kind == node.task.kind) return row.type;
  }
  return ACL_MODEL_RI_TASK_DEFAULT;
}

HandleBlock* HandleOf(Model::HiddenStream& stream) {
  std::lock_guard lock(InspectionLock());
  if (stream.handle == nullptr) {
    stream.handle = AllocateHandle(HandleKind::kHiddenStream, &stream);
  }
  return stream.handle;
}

HandleBlock* HandleOf(Model::Node& node) {
  std::lock_guard lock(InspectionLock());
  if (node.handle == nullptr) node.handle = AllocateHandle(HandleKind::kModelTask, &node);
  return node.handle;
}

aclError GetParams(Model::Node& node, aclmdlRITaskParams* params) {
  std::lock_guard lock(InspectionLock());
  aclmdlRITaskType type = TypeOf(node);
  if (type == ACL_MODEL_RI_TASK_DEFAULT) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "aclmdlRITaskGetParams: task %s has no parameters that can be shown",
                node.task.name);
  }
  std::memset(params, 0, sizeof(*params));
  params->type = type;
  if (type == ACL_MODEL_RI_TASK_KERNEL) return GetKernelParams(node, params);
  if (type == ACL_MODEL_RI_TASK_VALUE_WRITE) {
    ValuePayload value = ValueOf(node.task);
    params->valueWriteTaskParams = {value.address, value.value};
  } else if (type == ACL_MODEL_RI_TASK_VALUE_WAIT) {
    ValuePayload value = ValueOf(node.task);
    params->valueWaitTaskParams = {value.address, value.value, value.flag};
  } else {
    GetEventParams(node, type, params);
  }
  return ACL_SUCCESS;
}

aclError SetParams(Model::Node& node, const aclmdlRITaskParams& params) {
  constexpr const char* kCall = "aclmdlRITaskSetParams";
  std::lock_guard lock(InspectionLock());
  Model& model = *node.model;
  Model::State former;
  if (!model.BeginChange(&former)) return RefuseState(model, kCall);
  if (params.taskGrp != nullptr || node.group != nullptr) {  // ENUM-11
    model.set_state(former);
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: kernels of a task group are updated by aclmdlRICaptureTaskUpdateBegin", kCall);
  }
  Task task;
  if (aclError code = MakeTaskOf(node, params, &task); code != ACL_SUCCESS) {
    model.set_state(Model::State::kFault);
    return code;
  }
  KernelAttributes& changes = AttributesOf(node);
  changes.next.Drop();
  changes.next = task;
  changes.set = true;
  if (params.type == ACL_MODEL_RI_TASK_KERNEL) {
    const aclmdlRIKernelTaskParams& kernel = params.kernelTaskParams;
    changes.next_blocks = kernel.numBlocks;
    changes.next_attributes.clear();
    if (kernel.cfg != nullptr && kernel.cfg->attrs != nullptr) {
      changes.next_attributes.assign(kernel.cfg->attrs, kernel.cfg->attrs + kernel.cfg->numAttrs);
    }
  }
  model.changed.push_back(&node);
  return ACL_SUCCESS;
}

aclError DisableTask(Model::Node& node) {
  constexpr const char* kCall = "aclmdlRITaskDisable";
  std::lock_guard lock(InspectionLock());
  Model& model = *node.model;
  Model::State former;
  if (!model.BeginChange(&former)) return RefuseState(model, kCall);
  if (TypeOf(node) == ACL_MODEL_RI_TASK_DEFAULT) {
    model.set_state(Model::State::kFault);
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: task %s cannot be disabled", kCall,
                node.task.name);
  }
  AttributesOf(node).disable = true;
  model.changed.push_back(&node);
  return ACL_SUCCESS;
}

aclError ApplyChanges(Model& model) {
  std::lock_guard lock(InspectionLock());
  if (model.state() == Model::State::kReady) return ACL_SUCCESS;
  Model::State former;
  if (!model.BeginChange(&former)) return RefuseState(model, "aclmdlRIUpdate");
  for (Model::Node* node : model.changed) Apply(model, *node);
  model.changed.clear();
  model.LayOut();
  model.set_state(Model::State::kReady);
  return ACL_SUCCESS;
}

aclError GetKernelAttribute(const Model::Node& node, aclrtLaunchKernelAttrId id,
                            aclrtLaunchKernelAttrValue* value) {
  constexpr const char* kCall = "aclmdlRIKernelTaskGetAttribute";
  std::lock_guard lock(InspectionLock());
  if (TypeOf(node) != ACL_MODEL_RI_TASK_KERNEL) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: task %s is no kernel", kCall, node.task.name);
  }
  bool readable = id >= ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE &&
                  id <= ACL_RT_LAUNCH_KERNEL_ATTR_ENABLE_PROFILING &&
                  id != ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE &&
                  id != ACL_RT_LAUNCH_KERNEL_ATTR_BLOCKDIM_OFFSET &&
                  id != ACL_RT_LAUNCH_KERNEL_ATTR_BLOCK_TASK_PREFETCH;
  if (!readable) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: attribute %d cannot be read", kCall,
                static_cast<int>(id));
  }
  std::memset(value, 0, sizeof(*value));
  if (node.attributes == nullptr) return ACL_SUCCESS;
  for (const aclrtLaunchKernelAttr& attribute : node.attributes->attributes) {
    if (attribute.id == id) *value = attribute.value;
  }
  return ACL_SUCCESS;
}

}  // namespace acltape::device
