#include "replayer/acl_level/model_parts.h"

#include "generated/meaning/parameter_positions.h"

namespace acltape::replayer::acl_level {

using analyzer::AclCall;

namespace {

namespace create = meaning::position::aclmdlRICondHandleCreate;
namespace add = meaning::position::aclmdlRIAddCondTask;

// The numbers that the recorder kept of the first argument, at least so many.
std::vector<int64_t> NumbersOf(const AclCall& call, const analyzer::AclProgram& program,
                               size_t least) {
  if (!call.arguments.empty() && call.arguments[0].integers.size() >= least) {
    return call.arguments[0].integers;
  }
  throw Error(ErrorKind::kTrace, program.Describe(call) + " has no parameters in " +
                                     program.trace->path() +
                                     "; record the program again, with this version of acltape");
}

int64_t ObjectOf(const AclCall& call) { return call.Integer(call.function->object); }

}  // namespace

struct ModelParts::Row {
  std::string_view name;
  void (ModelParts::*make)(const AclCall& call);
};

const ModelParts::Row ModelParts::kRows[] = {
    {"aclmdlRICondHandleCreate", &ModelParts::CreateCondition},
    {"aclmdlRIAddCondTask", &ModelParts::AddConditionTask},
    {"aclmdlRIBuildBegin", &ModelParts::BeginBuild},
    {"aclmdlRIBindStream", &ModelParts::Bind},
    {"aclmdlRIUnbindStream", &ModelParts::Unbind},
    {"aclmdlRIEndTask", &ModelParts::EndTask},
    {"aclmdlRIBuildEnd", &ModelParts::EndBuild},
    {"aclrtCreateLabel", &ModelParts::CreateLabel},
    {"aclrtDestroyLabel", &ModelParts::DestroyLabel},
    {"aclrtSetLabel", &ModelParts::SetLabel},
    {"aclrtCreateLabelList", &ModelParts::CreateLabelList},
    {"aclrtDestroyLabelList", &ModelParts::DestroyLabelList},
    {"aclrtSwitchLabelByIndex", &ModelParts::SwitchLabel},
    {"aclrtActiveStream", &ModelParts::ActivateStream},
    {"aclrtSwitchStream", &ModelParts::SwitchStream},
    {"aclrtNotifyBatchReset", &ModelParts::ResetNotifies},
};

void ModelParts::Make(const AclCall& call) {
  for (const Row& row : kRows) {
    if (row.name == call.op->name) {
      (this->*row.make)(call);
      return;
    }
  }
  throw Error(ErrorKind::kTrace,
              session_.program.Describe(call) + " makes a part that no replay knows");
}

aclmdlRI ModelParts::SubGraph(const AclCall& call, int64_t id) const {
  const auto found = sub_graphs_.find(id);
  if (found != sub_graphs_.end()) return found->second;
  throw Error(ErrorKind::kTrace, session_.program.Describe(call) +
                                     " is about a graph whose beginning the trace does not hold");
}

aclmdlRI ModelParts::Graph(const AclCall& call, int64_t id) const {
  const auto made = session_.handles.models.find(id);
  if (made != session_.handles.models.end()) return made->second.handle();
  const auto row = session_.program.models.find(id);
  if (row != session_.program.models.end() && row->second.parent == 0 && row->second.origin != 0) {
    auto status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
    aclmdlRI graph = nullptr;
    Ask("aclmdlRICaptureGetInfo", api().aclmdlRICaptureGetInfo,
        session_.handles.Stream(row->second.origin), &status, &graph);
    return graph;
  }
  return SubGraph(call, id);
}

void ModelParts::CreateCondition(const AclCall& call) {
  aclmdlRICondHandle condition = nullptr;
  Ask("aclmdlRICondHandleCreate", api().aclmdlRICondHandleCreate,
      Graph(call, call.Integer(create::kModelRI)),
      static_cast<uint32_t>(call.Integer(create::kDefaultLaunchValue)),
      static_cast<aclmdlRICondHandleFlag>(call.Integer(create::kFlag)), &condition);
  conditions_[ObjectOf(call)] = condition;
  if (call.arguments.size() <= create::kCell || call.arguments[create::kCell].tensors.empty())
    return;
  uint64_t* cell = nullptr;
  Ask("aclmdlRICondHandleGetCondPtr", api().aclmdlRICondHandleGetCondPtr, condition, &cell);
  const int64_t buffer = call.arguments[create::kCell].tensors[0].buffer_id;
  session_.rooms.Adopt(buffer, cell, sizeof(*cell));
  session_.known.Add(buffer, 0, sizeof(*cell));  // it begins as zero (rule COND-02)
}

void ModelParts::AddConditionTask(const AclCall& call) {
  const std::vector<int64_t> numbers = NumbersOf(call, session_.program, analyzer::kFirstSubGraph);
  std::vector<aclmdlRI> graphs(numbers.size() - analyzer::kFirstSubGraph, nullptr);
  aclmdlRICondTaskParams task{};
  task.handle = conditions_[numbers[analyzer::kConditionOfTask]];
  task.type = static_cast<aclmdlRICondTaskType>(numbers[analyzer::kTypeOfTask]);
  task.size = static_cast<uint32_t>(graphs.size());
  task.modelRIArray = graphs.data();
  Ask("aclmdlRIAddCondTask", api().aclmdlRIAddCondTask, task,
      session_.handles.Stream(call.stream()), static_cast<uint32_t>(call.Integer(add::kFlags)));
  for (size_t i = 0; i < graphs.size(); ++i) {
    sub_graphs_[numbers[analyzer::kFirstSubGraph + i]] = graphs[i];
  }
}

void ModelParts::BeginBuild(const AclCall& call) {
  aclmdlRI model = nullptr;
  Ask("aclmdlRIBuildBegin", api().aclmdlRIBuildBegin, &model,
      static_cast<uint32_t>(call.Integer(meaning::position::aclmdlRIBuildBegin::kFlag)));
  session_.handles.models[ObjectOf(call)] = CapturedGraph(session_.device, model);
}

void ModelParts::Bind(const AclCall& call) {
  Ask("aclmdlRIBindStream", api().aclmdlRIBindStream, Graph(call, ObjectOf(call)),
      session_.handles.Stream(call.stream()),
      static_cast<uint32_t>(call.Integer(call.function->detail)));
}

void ModelParts::Unbind(const AclCall& call) {
  Ask("aclmdlRIUnbindStream", api().aclmdlRIUnbindStream, Graph(call, ObjectOf(call)),
      session_.handles.Stream(call.stream()));
}

void ModelParts::EndTask(const AclCall& call) {
  Ask("aclmdlRIEndTask", api().aclmdlRIEndTask, Graph(call, ObjectOf(call)),
      session_.handles.Stream(call.stream()));
}

void ModelParts::EndBuild(const AclCall& call) {
  Ask("aclmdlRIBuildEnd", api().aclmdlRIBuildEnd, Graph(call, ObjectOf(call)), nullptr);
}

void ModelParts::CreateLabel(const AclCall& call) {
  Ask("aclrtCreateLabel", api().aclrtCreateLabel, &labels_[ObjectOf(call)]);
}

void ModelParts::DestroyLabel(const AclCall& call) {
  Ask("aclrtDestroyLabel", api().aclrtDestroyLabel, labels_[ObjectOf(call)]);
  labels_.erase(ObjectOf(call));
}

void ModelParts::SetLabel(const AclCall& call) {
  Ask("aclrtSetLabel", api().aclrtSetLabel, labels_[ObjectOf(call)],
      session_.handles.Stream(call.stream()));
}

void ModelParts::CreateLabelList(const AclCall& call) {
  std::vector<aclrtLabel> labels;
  for (const int64_t label : NumbersOf(call, session_.program, 1)) labels.push_back(labels_[label]);
  Ask("aclrtCreateLabelList", api().aclrtCreateLabelList, labels.data(), labels.size(),
      &label_lists_[ObjectOf(call)]);
}

void ModelParts::DestroyLabelList(const AclCall& call) {
  Ask("aclrtDestroyLabelList", api().aclrtDestroyLabelList, label_lists_[ObjectOf(call)]);
  label_lists_.erase(ObjectOf(call));
}

void ModelParts::SwitchLabel(const AclCall& call) {
  namespace label = meaning::position::aclrtSwitchLabelByIndex;
  Ask("aclrtSwitchLabelByIndex", api().aclrtSwitchLabelByIndex,
      session_.binder.AddressAt(call, label::kPtr),
      static_cast<uint32_t>(call.Integer(label::kMaxValue)), label_lists_[ObjectOf(call)],
      session_.handles.Stream(call.stream()));
}

void ModelParts::ActivateStream(const AclCall& call) {
  Ask("aclrtActiveStream", api().aclrtActiveStream, session_.handles.Stream(ObjectOf(call)),
      session_.handles.Stream(call.stream()));
}

void ModelParts::SwitchStream(const AclCall& call) {
  namespace branch = meaning::position::aclrtSwitchStream;
  Ask("aclrtSwitchStream", api().aclrtSwitchStream,
      session_.binder.AddressAt(call, branch::kLeftValue),
      static_cast<aclrtCondition>(call.Integer(branch::kCond)),
      session_.binder.AddressAt(call, branch::kRightValue),
      static_cast<aclrtCompareDataType>(call.Integer(branch::kDataType)),
      session_.handles.Stream(ObjectOf(call)), aclrtStream{nullptr},
      session_.handles.Stream(call.stream()));
}

void ModelParts::ResetNotifies(const AclCall& call) {
  std::vector<aclrtNotify> notifies;
  for (const int64_t notify : NumbersOf(call, session_.program, 1)) {
    notifies.push_back(session_.handles.Notify(notify));
  }
  Ask("aclrtNotifyBatchReset", api().aclrtNotifyBatchReset, notifies.data(), notifies.size());
}

}  // namespace acltape::replayer::acl_level
