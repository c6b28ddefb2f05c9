#include "analyzer/steps/step_times.h"

#include "analyzer/steps/steps.h"
#include "storage/database.h"
#include "storage/process_choice.h"
#include "storage/process_filter.h"

namespace acltape::analyzer {

std::vector<int64_t> StepTimes(const Work& work) {
  const int64_t chosen = work.trace->process();
  const storage::ProcessFilter filter(chosen != 0 ? chosen : storage::DefaultProcess(*work.trace));
  storage::Statement span(work.trace->database(),
                          "SELECT ifnull(max(begin_ns + duration_ns) - min(begin_ns), 0) FROM "
                          "call_row WHERE call_id BETWEEN ? AND ? AND " +
                              filter.OfThread("thread_id"));
  filter.Bind(span);
  std::vector<int64_t> times;
  times.reserve(work.steps.size());
  for (const storage::Step& step : StepRows(work)) {
    span.Bind(1, step.first_call);
    span.Bind(2, step.last_call);
    times.push_back(span.Next() ? span.Integer(0) : 0);
    span.Reset();
  }
  return times;
}

}  // namespace acltape::analyzer
