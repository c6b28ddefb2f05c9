#include "runtime/device/capture/conditional.h"

#include <utility>

#include "runtime/device/capture/capture.h"
#include "runtime/device/error.h"
#include "runtime/device/memory.h"

namespace acltape::device {
namespace {

constexpr const char* kAddCall = "aclmdlRIAddCondTask";

// COND-07.
struct SizeRow {
  aclmdlRICondTaskType type;
  const char* name;
  size_t least;
  size_t most;
};
constexpr SizeRow kSizes[] = {
    {ACL_MODEL_RI_COND_TYPE_IF, "COND_IF", 1, 2},
    {ACL_MODEL_RI_COND_TYPE_WHILE, "COND_WHILE", 1, 1},
    {ACL_MODEL_RI_COND_TYPE_SWITCH, "COND_SWITCH", 1, UINT32_MAX},
};

const SizeRow* RowOf(aclmdlRICondTaskType type) {
  for (const SizeRow& row : kSizes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

}  // namespace

aclError Conditional::Act(GraphRun&, uint32_t) { return ACL_SUCCESS; }

Model* Conditional::Choose(uint32_t rounds) {
  if (rounds != 0 && type_ != ACL_MODEL_RI_COND_TYPE_WHILE) return nullptr;
  uint64_t value = __atomic_load_n(cell_, __ATOMIC_ACQUIRE);
  if (type_ == ACL_MODEL_RI_COND_TYPE_WHILE) return value != 0 ? sub_graphs_[0] : nullptr;
  // A negative index runs nothing here; on a device it is unsafe (COND-09).
  size_t index = type_ == ACL_MODEL_RI_COND_TYPE_SWITCH ? value : value != 0 ? 0 : 1;
  return index < sub_graphs_.size() ? sub_graphs_[index] : nullptr;
}

aclError CreateCondition(Model& model, uint64_t default_value, bool assign_default,
                         Model::Condition** result) {
  constexpr const char* kCall = "aclmdlRICondHandleCreate";
  std::lock_guard lock(CaptureLock());
  if (model.kind() == Model::Kind::kBuilt) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: model %u is not captured", kCall,
                model.id());
  }
  if (model.state() != Model::State::kCapturing) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: model %u is not being captured", kCall,
                model.id());
  }
  void* cell = AllocateDeviceMemory(model.context().device(), 32, 0, kCall);
  if (cell == nullptr) {
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: no device memory left for the cell", kCall);
  }
  std::memset(cell, 0, 32);
  Model::Condition& condition = model.conditions.emplace_back();
  condition.model = &model;
  condition.cell = static_cast<uint64_t*>(cell);
  condition.default_value = default_value;
  condition.assign_default = assign_default;
  condition.handle = AllocateHandle(HandleKind::kCondition, &condition);
  if (condition.handle == nullptr) {
    FreeMemory(cell, MemoryKind::kDevice);
    model.conditions.pop_back();
    return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: no handle left for a condition", kCall);
  }
  *result = &condition;
  return ACL_SUCCESS;
}

aclError AddConditionalTask(Stream& stream, Model::Condition& condition, aclmdlRICondTaskType type,
                            std::vector<Model*>* sub_graphs) {
  std::lock_guard lock(CaptureLock());
  if (stream.capture == nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "%s: stream %u is not capturing", kAddCall,
                stream.id());
  }
  Model& model = *stream.capture;
  const SizeRow* row = RowOf(type);
  if (row == nullptr || sub_graphs->size() < row->least || sub_graphs->size() > row->most) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: type %d with %zu sub-graphs; IF has 1 or 2, WHILE 1, SWITCH at least 1",
                kAddCall, static_cast<int>(type), sub_graphs->size());
  }
  if (condition.used || condition.model != &model) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the condition %s", kAddCall,
                condition.used ? "has a task already" : "was created for another model");
  }
  for (Model*& sub_graph : *sub_graphs) {
    aclError code = Model::Create(model.context(), Model::Kind::kSubGraph, kAddCall, &sub_graph);
    if (code != ACL_SUCCESS) {
      for (Model* made : *sub_graphs) delete made;
      return code;
    }
    sub_graph->parent = &model;
  }
  Task task;
  task.kind = TaskKind::kControl;
  task.name = row->name;
  Model::Node* node = nullptr;
  aclError code = StoreTask(stream, task, Model::kNoNode, &node);
  if (node == nullptr) {  // refused, or thrown away with an invalidated capture
    for (Model*& sub_graph : *sub_graphs) delete std::exchange(sub_graph, nullptr);
    return code;
  }
  node->control = std::make_unique<Conditional>(type, condition.cell, *sub_graphs);
  condition.used = true;
  return ACL_SUCCESS;
}

}  // namespace acltape::device
