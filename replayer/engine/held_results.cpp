#include "replayer/engine/held_results.h"

namespace acltape::replayer {

bool HoldsResult(const analyzer::Program& program, int64_t leaf, size_t write) {
  const analyzer::TensorUse& use = program.uses[leaf].writes[write];
  if (use.layout->ElementCount() == 0) return true;
  const storage::Snapshot* snapshot = analyzer::RecordedResult(program.leaves[leaf], use);
  return snapshot != nullptr && snapshot->has_payload;
}

}  // namespace acltape::replayer
