#include "page/part_of_steps.h"

#include <set>

#include "analyzer/program/leaves.h"
#include "analyzer/steps/steps.h"
#include "meaning/dialects.h"
#include "storage/database.h"
#include "storage/process_choice.h"

namespace acltape::page {

std::string ProcessOfSteps(const storage::Reader& trace) {
  storage::Database& database = trace.database();
  if (trace.process() != 0 || database.Integer("SELECT count(*) FROM process") < 2) return "";
  if (const int64_t one = storage::DefaultProcess(trace); one != 0) return std::to_string(one);
  std::set<int64_t> at_work, with_device;
  storage::Statement used(database,
                          "SELECT DISTINCT t.process_id, o.dialect FROM ("
                          "SELECT DISTINCT thread_id, signature_id FROM call_row) c "
                          "JOIN thread t ON t.thread_id = c.thread_id "
                          "JOIN signature s ON s.signature_id = c.signature_id "
                          "JOIN op o ON o.op_id = s.op_id");
  while (used.Next()) {
    at_work.insert(used.Integer(0));
    if (meaning::IsAclDialect(used.Text(1))) with_device.insert(used.Integer(0));
  }
  if (at_work.size() < 2) return "";
  if (with_device.size() == 1) return std::to_string(*with_device.begin());
  storage::Statement order(
      database, "SELECT process_id FROM process ORDER BY rank IS NULL, rank, process_id");
  while (order.Next()) {
    if (at_work.contains(order.Integer(0))) return std::to_string(order.Integer(0));
  }
  return "";
}

// The leaves with their steps, from which a plan is made; nothing where there are none. `why` gets
// the sentence.
std::optional<analyzer::Work> LeavesOf(const storage::Reader& trace, std::string& why) {
  try {
    return analyzer::LoadLeaves(trace, nullptr);
  } catch (const Error& error) {
    why = error.what();
    return std::nullopt;
  }
}

// The steps that the trace names, else those that are found in it now.
std::vector<storage::Step> StepsFor(const storage::Reader& trace,
                                    const std::optional<analyzer::Work>& leaves) {
  if (!trace.Steps().empty()) return trace.Steps();
  // Calls of executed graphs have ids of their own, which the recorded calls do not have.
  if (leaves && leaves->dialect == analyzer::Dialect::kAten) return analyzer::StepRows(*leaves);
  try {
    analyzer::Work work = analyzer::LoadWork(trace);
    analyzer::AssignSteps(work, nullptr);
    return analyzer::StepRows(work);
  } catch (const Error&) {
    return {};  // no work, no steps
  }
}

}  // namespace acltape::page
