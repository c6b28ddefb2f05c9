#include "analyzer/ranks/fused_operators.h"

#include <algorithm>

#include "meaning/acl_operators.h"
#include "storage/checked_row.h"
#include "storage/database.h"

namespace acltape::analyzer::ranks {
namespace {

using storage::CheckedRow;
using storage::Statement;

struct Operator {
  int64_t op_id = 0;
  std::string name;
};

std::vector<Operator> FindOperators(const storage::Reader& trace) {
  std::vector<Operator> found;
  Statement rows(trace.database(), "SELECT op_id, name FROM op WHERE dialect = 'aclnn'");
  const CheckedRow row(rows, trace.path(), "op");
  while (rows.Next()) {
    const std::string_view name = row.Text(1, "name");
    if (meaning::Communicates(name)) found.push_back({row.Id("op_id"), std::string(name)});
  }
  return found;
}

}  // namespace

std::vector<Collective> LoadFusedOperators(const storage::Reader& trace) {
  std::vector<Collective> operators;
  for (const Operator& op : FindOperators(trace)) {
    Statement rows(
        trace.database(),
        "SELECT c.call_id, t.process_id, m.name, m.rank, m.ranks, c.stream_id, "
        "c.model_id, c.begin_ns, c.parent_id FROM signature s CROSS JOIN signature_argument a "
        "ON a.signature_id = s.signature_id AND a.kind = 'text' "
        "JOIN call c ON c.signature_id = s.signature_id "
        "JOIN thread t ON t.thread_id = c.thread_id "
        "JOIN communicator m ON m.process_id = t.process_id AND m.name = a.text "
        "WHERE s.op_id = ?1 AND ifnull(c.status, 0) = 0 "
        "ORDER BY c.call_id, a.position");
    rows.Bind(1, op.op_id);
    const CheckedRow row(rows, trace.path(), "call");
    while (rows.Next()) {
      Collective one;
      one.call_id = row.Id("call_id");
      if (!operators.empty() && operators.back().call_id == one.call_id) continue;
      one.process_id = row.Integer(1, "process_id", 0, kMost);
      one.communicator = row.Text(2, "communicator");
      one.rank = row.Integer(3, "rank", 0, UINT32_MAX);
      one.ranks = row.Integer(4, "ranks", 0, UINT32_MAX);
      one.op = op.name;
      one.computes = true;
      one.stream_id = row.IntegerOrNull(5, "stream_id", 0, kMost);
      one.model_id = row.IntegerOrNull(6, "model_id", 0, kMost);
      one.begin_ns = row.Integer(7, "begin_ns", -kMost, kMost);
      one.asked_call = row.IsNull(8) ? one.call_id : row.Integer(8, "parent_id", 0, kMost);
      operators.push_back(std::move(one));
    }
  }
  std::ranges::sort(operators, {}, &Collective::call_id);
  return operators;
}

}  // namespace acltape::analyzer::ranks
