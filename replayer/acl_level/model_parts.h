// Makes the parts of graphs that are no tasks of a stream: conditions, conditional tasks and their
// sub-graphs; models that are built on bound streams, with labels and switches.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "replayer/acl_level/acl_session.h"

namespace acltape::replayer::acl_level {

class ModelParts {
 public:
  explicit ModelParts(AclSession& session) : session_(session) {}

  // Makes the part that the call made in the recording. Throws CallFailed.
  void Make(const analyzer::AclCall& call);
  // The graph into which a sub-graph is captured, by its id in the recording. Throws Error kTrace
  // if no conditional task made it.
  aclmdlRI SubGraph(const analyzer::AclCall& call, int64_t id) const;

 private:
  using Call = analyzer::AclCall;
  struct Row;
  static const Row kRows[];

  void CreateCondition(const Call& call);
  void AddConditionTask(const Call& call);
  void BeginBuild(const Call& call);
  void Bind(const Call& call);
  void Unbind(const Call& call);
  void EndTask(const Call& call);
  void EndBuild(const Call& call);
  void CreateLabel(const Call& call);
  void DestroyLabel(const Call& call);
  void SetLabel(const Call& call);
  void CreateLabelList(const Call& call);
  void DestroyLabelList(const Call& call);
  void SwitchLabel(const Call& call);
  void ActivateStream(const Call& call);
  void SwitchStream(const Call& call);
  void ResetNotifies(const Call& call);

  // The graph with this id: one that exists, a sub-graph, or one that is being captured.
  aclmdlRI Graph(const Call& call, int64_t id) const;
  template <typename Function, typename... Arguments>
  void Ask(const char* name, Function function, Arguments... arguments) const {
    session_.device.work().Ask(name, function, arguments...).Check();
  }
  const acl::Api& api() const { return session_.device.api(); }

  AclSession& session_;
  // The maps below are by the handle in the recording.
  std::unordered_map<int64_t, aclmdlRICondHandle> conditions_;
  std::unordered_map<int64_t, aclrtLabel> labels_;
  std::unordered_map<int64_t, aclrtLabelList> label_lists_;
  std::unordered_map<int64_t, aclmdlRI> sub_graphs_;  // by id
};

}  // namespace acltape::replayer::acl_level
