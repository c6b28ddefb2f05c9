#include "replayer/engine/graph_writer.h"

namespace acltape::replayer {

void WriteRegion(const IssuedRegion& region, int fork, int streams,
                 const std::function<void(size_t index)>& write_leaf,
                 std::vector<Operation>& operations) {
  if (streams > 1) operations.push_back(RecordEvent{fork, 0});
  for (int s = 1; s < streams; ++s) operations.push_back(WaitEvent{fork, s});
  for (size_t i = 0; i < region.leaves.size(); ++i) {
    const IssuedLeaf& leaf = region.leaves[i];
    for (const int event : leaf.wait_for) operations.push_back(WaitEvent{event, leaf.stream});
    write_leaf(i);
    for (const int event : leaf.record) operations.push_back(RecordEvent{event, leaf.stream});
  }
  for (int s = 1; s < streams; ++s) {
    operations.push_back(RecordEvent{fork + s, s});
    operations.push_back(WaitEvent{fork + s, 0});
  }
}

void WriteGroup(const VaryingLeaf& leaf, size_t match, int stream,
                const std::function<void()>& launch, HeldArguments& held, Script& script,
                std::vector<Operation>& operations) {
  const int group = script.groups++;
  held.groups[leaf.place] = group;
  held.values[leaf.place] = leaf.value_of[match];
  operations.push_back(BeginGroup{group, stream});
  launch();
  operations.push_back(EndGroup{group, stream});
}

int WriteUpdates(const std::vector<const VaryingLeaf*>& leaves, size_t match,
                 const UpdateOrder& order, const std::function<void(size_t place)>& launch,
                 HeldArguments& held, std::vector<Operation>& operations) {
  int updates = 0;
  for (const VaryingLeaf* leaf : leaves) {
    const auto group = held.groups.find(leaf->place);
    if (group == held.groups.end()) continue;
    int& holds = held.values[leaf->place];
    if (holds == leaf->value_of[match]) continue;
    holds = leaf->value_of[match];
    if (updates++ == 0 && order.has_executed) {
      operations.push_back(WaitEvent{order.executed, order.stream});
    }
    operations.push_back(BeginUpdate{group->second, order.stream});
    launch(leaf->place);
    operations.push_back(EndUpdate{group->second, order.stream});
  }
  if (updates == 0) return 0;
  operations.push_back(RecordEvent{order.updated, order.stream});
  operations.push_back(WaitEvent{order.updated, 0});
  return updates;
}

}  // namespace acltape::replayer
