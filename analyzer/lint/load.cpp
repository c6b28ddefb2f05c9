#include "analyzer/lint/load.h"

#include <string>
#include <utility>

#include "analyzer/executions/kernels_on_host.h"
#include "analyzer/steps/steps.h"
#include "storage/database.h"

namespace acltape::analyzer::lint {
namespace {

// The process of a thread, as an option takes it.
std::string ProcessOf(const storage::Reader& trace, int64_t thread) {
  storage::Statement process(trace.database(), "SELECT process_id FROM thread WHERE thread_id = ?");
  process.Bind(1, thread);
  return process.Next() ? std::to_string(process.Integer(0)) : "";
}

}  // namespace

Work LoadWorkForLint(const storage::Reader& trace, Level level) {
  return executions::WithKernelsOnHost(LoadWork(trace, level));
}

Work LoadStepsForLint(const storage::Reader& trace, Level level, storage::Results* results) {
  Work work = LoadWork(trace, level);
  AssignSteps(work, results);
  return executions::WithKernelsOnHost(std::move(work));
}

Work* LeavesBeside::Load() {
  if (std::exchange(loaded_, true)) return leaves_.get();
  const storage::Reader& trace = *calls_.trace;
  if (calls_.calls.empty() || !HoldsLevel(trace, Level::kAten)) return nullptr;
  storage::TracePart part = trace.part();
  part.level = Level::kAten;
  if (part.process.empty()) part.process = ProcessOf(trace, calls_.calls.front().thread);
  reader_ = std::make_unique<storage::Reader>(trace.path(), part);
  leaves_ = std::make_unique<Work>(LoadWorkForLint(*reader_, Level::kAten));
  return leaves_.get();
}

}  // namespace acltape::analyzer::lint
