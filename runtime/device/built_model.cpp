#include "runtime/device/built_model.h"

#include <cstring>

#include "runtime/device/capture/capture.h"
#include "runtime/device/control.h"
#include "runtime/device/error.h"

namespace acltape::device {
namespace {

constexpr const char* kEndTask = "END_GRAPH";

class EndGraph : public Control {
 public:
  aclError Act(GraphRun& run, uint32_t) override {
    run.ReachEnd();
    return ACL_SUCCESS;
  }
};

class Activation : public Control {
 public:
  explicit Activation(uint32_t member) : member_(member) {}
  aclError Act(GraphRun& run, uint32_t) override {
    run.Activate(member_);
    return ACL_SUCCESS;
  }

 private:
  const uint32_t member_;
};

int64_t ReadValue(const void* address, aclrtCompareDataType type) {
  if (type == ACL_RT_SWITCH_INT64) return *static_cast<const int64_t*>(address);
  return *static_cast<const int32_t*>(address);
}

bool Holds(const Comparison& comparison) {
  int64_t left = ReadValue(comparison.left, comparison.type);
  int64_t right = ReadValue(comparison.right, comparison.type);
  switch (comparison.condition) {
    case ACL_RT_EQUAL:
      return left == right;
    case ACL_RT_NOT_EQUAL:
      return left != right;
    case ACL_RT_GREATER:
      return left > right;
    case ACL_RT_GREATER_OR_EQUAL:
      return left >= right;
    case ACL_RT_LESS:
      return left < right;
    case ACL_RT_LESS_OR_EQUAL:
      return left <= right;
  }
  return false;
}

class StreamSwitch : public Control {
 public:
  StreamSwitch(const Comparison& comparison, uint32_t if_true)
      : comparison_(comparison), if_true_(if_true) {}
  aclError Act(GraphRun& run, uint32_t) override {
    if (Holds(comparison_)) run.Activate(if_true_);
    return ACL_SUCCESS;
  }

 private:
  const Comparison comparison_;
  const uint32_t if_true_;
};

class LabelSwitch : public Control {
 public:
  LabelSwitch(const uint32_t* index, std::vector<std::shared_ptr<LabelPlace>> places)
      : index_(index), places_(std::move(places)) {}
  aclError Act(GraphRun& run, uint32_t lane) override {
    size_t index = __atomic_load_n(index_, __ATOMIC_ACQUIRE);
    const LabelPlace& place = *places_[std::min(index, places_.size() - 1)];  // LBL-03
    if (place.model != &run.model()) {
      SetMessage("the label was not set in a stream of this model");
      return ACL_ERROR_RT_MODEL_EXECUTE;
    }
    run.Jump(lane, place.member, place.position);
    return ACL_SUCCESS;
  }

 private:
  const uint32_t* index_;
  const std::vector<std::shared_ptr<LabelPlace>> places_;
};

aclError CheckBuilt(const Model& model, const char* call) {
  if (model.kind() == Model::Kind::kBuilt) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: model %u was captured, not built", call, model.id());
}

// The capture lock is held. CAP-62, STR-23.
aclError CheckBound(const Stream& stream, const Model* model, const char* call) {
  if (stream.capture != nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURED, "%s: stream %u is capturing", call, stream.id());
  }
  if (stream.built != nullptr && (model == nullptr || stream.built == model)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_STREAM_MODEL, "%s: stream %u is not bound to %s model", call,
              stream.id(), model == nullptr ? "a" : "this");
}

// The capture lock is held.
aclError StoreControl(Stream& stream, const char* name, std::unique_ptr<Control> control) {
  Task task;
  task.kind = TaskKind::kControl;
  task.name = name;
  size_t before = stream.built->nodes.size();
  if (aclError code = StoreBuiltTask(stream, task); code != ACL_SUCCESS) return code;
  stream.built->nodes[before].control = std::move(control);
  return ACL_SUCCESS;
}

// Completes the model when both its end task and the end of its build are there. They may come in
// any order.
void CompleteBuild(Model& model) {
  if (!model.end_task || !model.build_ended) return;
  model.LayOut();
  model.set_state(Model::State::kReady);
}

}  // namespace

aclError BindStream(Model& model, Stream& stream, bool head) {
  constexpr const char* kCall = "aclmdlRIBindStream";
  if (aclError code = CheckBuilt(model, kCall); code != ACL_SUCCESS) return code;
  std::lock_guard lock(CaptureLock());
  if (stream.capture != nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURED, "%s: stream %u is capturing", kCall, stream.id());
  }
  if (stream.built != nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_MODEL, "%s: stream %u is bound to model %u already", kCall,
                stream.id(), stream.built->id());
  }
  if (!stream.persistent()) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: stream %u was created without ACL_STREAM_PERSISTENT", kCall, stream.id());
  }
  if (&stream.context() != &model.context()) {
    return Fail(ACL_ERROR_RT_MODEL_CONTEXT, "%s: model %u belongs to another context", kCall,
                model.id());
  }
  if (model.state() != Model::State::kCapturing) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the build of model %u has ended", kCall,
                model.id());
  }
  model.BindMember(stream, head);
  stream.built = &model;
  stream.built_member = static_cast<uint32_t>(model.members.size() - 1);
  stream.Divert();
  return ACL_SUCCESS;
}

aclError UnbindStream(Model& model, Stream& stream) {
  constexpr const char* kCall = "aclmdlRIUnbindStream";
  if (aclError code = CheckBuilt(model, kCall); code != ACL_SUCCESS) return code;
  std::lock_guard lock(CaptureLock());
  if (aclError code = CheckBound(stream, &model, kCall); code != ACL_SUCCESS) return code;
  model.members[stream.built_member].stream = nullptr;
  stream.built = nullptr;
  stream.Divert();
  return ACL_SUCCESS;
}

aclError CleanPersistent(Stream& stream) {
  std::lock_guard lock(CaptureLock());
  stream.DropHeld();
  if (stream.built == nullptr) return ACL_SUCCESS;
  Model& model = *stream.built;
  if (model.build_ended) {
    return Fail(ACL_ERROR_RT_STREAM_MODEL,
                "aclrtPersistentTaskClean: the build of model %u has ended; unbind stream %u first",
                model.id(), stream.id());
  }
  for (uint32_t index :
       model.hidden_streams[model.members[stream.built_member].newest_hidden].nodes) {
    Model::Node& node = model.nodes[index];
    if (std::strcmp(node.task.name, kEndTask) == 0) model.end_task = false;
    node.disabled = true;
  }
  return ACL_SUCCESS;
}

void UnbindAll(Model& model) {
  if (model.kind() != Model::Kind::kBuilt) return;
  std::lock_guard lock(CaptureLock());
  for (Model::Member& member : model.members) {
    if (member.stream == nullptr) continue;
    member.stream->built = nullptr;
    member.stream->Divert();
    member.stream = nullptr;
  }
}

aclError SubmitEndTask(Model& model, Stream& stream) {
  constexpr const char* kCall = "aclmdlRIEndTask";
  if (aclError code = CheckBuilt(model, kCall); code != ACL_SUCCESS) return code;
  std::lock_guard lock(CaptureLock());
  if (aclError code = CheckBound(stream, &model, kCall); code != ACL_SUCCESS) return code;
  aclError code = StoreControl(stream, kEndTask, std::make_unique<EndGraph>());
  if (code != ACL_SUCCESS) return code;
  model.end_task = true;
  CompleteBuild(model);
  return ACL_SUCCESS;
}

aclError EndBuild(Model& model) {
  constexpr const char* kCall = "aclmdlRIBuildEnd";
  if (aclError code = CheckBuilt(model, kCall); code != ACL_SUCCESS) return code;
  std::lock_guard lock(CaptureLock());
  if (model.build_ended) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the build of model %u has ended already", kCall,
                model.id());
  }
  model.build_ended = true;
  CompleteBuild(model);
  return ACL_SUCCESS;
}

aclError SetLabel(Label& label, Stream& stream) {
  constexpr const char* kCall = "aclrtSetLabel";
  std::lock_guard lock(CaptureLock());
  if (aclError code = CheckBound(stream, nullptr, kCall); code != ACL_SUCCESS) return code;
  if (label.place->model != nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the label has been set already", kCall);
  }
  const Model& model = *stream.built;
  const Model::Member& member = model.members[stream.built_member];
  *label.place = {&model, stream.built_member,
                  model.hidden_streams[member.newest_hidden].nodes.size()};
  return ACL_SUCCESS;
}

aclError SwitchLabel(const uint32_t* index, std::vector<std::shared_ptr<LabelPlace>> places,
                     Stream& stream) {
  std::lock_guard lock(CaptureLock());
  if (aclError code = CheckBound(stream, nullptr, "aclrtSwitchLabelByIndex"); code != ACL_SUCCESS) {
    return code;
  }
  return StoreControl(stream, "LABEL_SWITCH",
                      std::make_unique<LabelSwitch>(index, std::move(places)));
}

aclError ActivateStream(Stream& activated, Stream& stream) {
  constexpr const char* kCall = "aclrtActiveStream";
  std::lock_guard lock(CaptureLock());
  if (aclError code = CheckBound(stream, nullptr, kCall); code != ACL_SUCCESS) return code;
  if (aclError code = CheckBound(activated, stream.built, kCall); code != ACL_SUCCESS) return code;
  return StoreControl(stream, "STREAM_ACTIVE",
                      std::make_unique<Activation>(activated.built_member));
}

aclError SwitchStream(const Comparison& comparison, Stream& if_true, Stream& stream) {
  constexpr const char* kCall = "aclrtSwitchStream";
  std::lock_guard lock(CaptureLock());
  if (aclError code = CheckBound(stream, nullptr, kCall); code != ACL_SUCCESS) return code;
  if (aclError code = CheckBound(if_true, stream.built, kCall); code != ACL_SUCCESS) return code;
  return StoreControl(stream, "STREAM_SWITCH",
                      std::make_unique<StreamSwitch>(comparison, if_true.built_member));
}

}  // namespace acltape::device
