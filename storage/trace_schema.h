// The tables, views and triggers of a trace. A view can run for ever and a trigger can write what
// it likes, so only those that an acltape wrote count.
#pragma once

#include <cstdint>

namespace acltape::storage {

class Database;

// Checks what the trace declares. `version` is its schema version. Throws Error kTrace when it has
// a trigger, a virtual table, a view or an index over expressions that acltape does not have, a
// view in the place of a table, or a table with other columns.
//
// The views of an older acltape differ, and so may those of a hand that changed them. Then this
// connection gets its own views, which hide those of the file. In a trace of an older schema,
// columns that came later read as NULL, and tables of totals (tables::kTotals) as empty.
void CheckSchemaObjects(Database& database, int64_t version);

// Makes a connection to a file that is not trusted safe: nothing in it can load code, its triggers
// do not run, SQL cannot overwrite the structures of the file, and a value has a greatest length.
// (SQLite 3.40 takes its own JSON functions for unsafe where the schema is not trusted. So it is
// trusted here, and CheckSchemaObjects sees to it that all of it is ours.)
void Distrust(Database& database);

}  // namespace acltape::storage
