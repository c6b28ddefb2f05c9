#include "cli/choices/picked_calls.h"

#include "cli/choices/selection.h"
#include "meaning/dialects.h"
#include "storage/database.h"

namespace acltape::cli {
namespace {

constexpr const char* kCalls = R"sql(
SELECT c.call_id, ifnull(c.step, -1), ifnull(c.stream_id, -1), o.name, c.op, o.dialect
FROM call c JOIN op o ON o.op_id = c.op_id JOIN thread t ON t.thread_id = c.thread_id
WHERE ?1 = 0 OR t.process_id = ?1)sql";

constexpr const char* kCallsOfSteps = R"sql(
INSERT INTO temp.picked SELECT DISTINCT c.call_id FROM step s
CROSS JOIN call_row c ON c.call_id BETWEEN s.first_call AND s.last_call)sql";

bool OfLevel(const storage::TracePart& part, std::string_view dialect) {
  return !part.level || meaning::IsAclDialect(dialect) == (*part.level == storage::Level::kAcl);
}

}  // namespace

void MakePickedTable(const storage::Reader& reader, const std::string& selection, bool in_steps) {
  storage::Database& database = reader.database();
  database.Execute("CREATE TEMP TABLE picked (call_id INTEGER PRIMARY KEY)");
  const Selection picked = Selection::Parse(selection);
  if (picked.empty() && in_steps && reader.process() == 0 && !reader.part().level) {
    database.Execute(kCallsOfSteps);
    return;
  }
  picked.RequireSteps(reader);
  const CallLines lines(reader, picked.asks_line());
  storage::Statement add(database, "INSERT INTO temp.picked VALUES (?1)");
  storage::Statement rows(database, kCalls);
  rows.Bind(1, reader.process());
  while (rows.Next()) {
    SelectionSubject subject{rows.Integer(0), rows.Integer(1), rows.Integer(2), "", "", "", 0};
    if ((in_steps && subject.step < 0) || !OfLevel(reader.part(), rows.Text(5))) continue;
    const std::string name(rows.Text(3));
    const std::string full_name(rows.Text(4));
    subject.name = name;
    subject.full_name = full_name;
    lines.Tell(subject.call_id, subject);
    if (!picked.Contains(subject)) continue;
    add.Bind(1, subject.call_id);
    add.Run();
  }
}

}  // namespace acltape::cli
