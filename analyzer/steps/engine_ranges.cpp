#include "analyzer/steps/engine_ranges.h"

#include "storage/process_filter.h"

namespace acltape::analyzer {

std::vector<EngineRange> EngineRanges(const storage::Reader& trace) {
  std::vector<EngineRange> ranges;
  const storage::ProcessFilter filter(trace.process());
  storage::Statement rows(
      trace.database(),
      "SELECT s.name, r.thread_id, r.first_call, r.last_call FROM scope_range r JOIN scope s "
      "USING (scope_id) WHERE s.name GLOB 'vllm.*' AND r.first_call <= r.last_call AND " +
          filter.OfThread("r.thread_id") + " ORDER BY r.first_call, r.last_call DESC, s.path");
  filter.Bind(rows);
  while (rows.Next()) {
    ranges.push_back(
        {std::string(rows.Text(0)), rows.Integer(1), rows.Integer(2), rows.Integer(3)});
  }
  return ranges;
}

}  // namespace acltape::analyzer
