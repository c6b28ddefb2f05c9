#include "analyzer/program/given_away.h"

#include <algorithm>

namespace acltape::analyzer {

int64_t GivenTo(const Program& program, int64_t leaf, const TensorUse& result, int64_t end) {
  const auto buffer = program.buffers.find(result.tensor.buffer_id);
  if (buffer == program.buffers.end() || result.layout->ElementCount() == 0) return -1;
  const std::vector<Access>& accesses = buffer->second.accesses;
  auto access = std::partition_point(accesses.begin(), accesses.end(),
                                     [&](const Access& own) { return own.leaf <= leaf; });
  for (; access != accesses.end() && access->leaf < end; ++access) {
    const bool apart = access->end_byte <= result.layout->FirstByte() ||
                       result.layout->EndByte() <= access->first_byte;
    if (apart) continue;
    if (program.leaves[access->leaf].kind == LeafKind::kExchange) return access->leaf;
    if (access->write) return -1;
  }
  return -1;
}

std::vector<GivenResult> GivenResults(const Program& program, const StepMatch& step) {
  const StepRange& range = program.work.steps[step.step_index];
  std::vector<GivenResult> given;
  const bool any =
      std::any_of(program.leaves.begin() + range.first, program.leaves.begin() + range.end,
                  [](const Leaf& leaf) { return leaf.kind == LeafKind::kExchange; });
  if (!any) return given;
  for (size_t place = 0; place < step.leaves.size(); ++place) {
    const std::vector<TensorUse>& writes = program.uses[step.leaves[place]].writes;
    for (size_t write = 0; write < writes.size(); ++write) {
      const int64_t exchange = GivenTo(program, step.leaves[place], writes[write], range.end);
      if (exchange < 0) continue;
      const auto next = std::lower_bound(step.leaves.begin(), step.leaves.end(), exchange);
      given.push_back({place, write, static_cast<size_t>(next - step.leaves.begin())});
    }
  }
  return given;
}

}  // namespace acltape::analyzer
