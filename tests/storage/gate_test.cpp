// Rows that no acltape wrote: each is told in one sentence that names table, row and column.
#include "storage/checked_row.h"
#include "storage/database.h"
#include "storage/query.h"
#include "tests/storage/query_rows.h"
#include "tests/storage/trace_fixture.h"

namespace acltape::storage {
namespace {

// Everything that a command could take from a trace.
void ReadAll(const std::string& path) {
  const Reader reader(path);
  for (const Call& call : reader.Calls(false)) {
    reader.GetOp(call.op_id);
    for (const Argument& argument : reader.Arguments(call)) {
      for (const TensorRef& tensor : argument.tensors) reader.GetLayout(tensor.layout_id);
    }
    for (const int64_t buffer : call.buffers) reader.GetBuffer(buffer);
  }
  for (const Snapshot& snapshot : reader.Snapshots()) {
    if (snapshot.has_payload) reader.Payload(snapshot.digest);
  }
  reader.Streams();
  reader.Events();
  reader.Models();
  reader.Steps();
  reader.Ledger();
}

class Gate : public TraceTest {
 protected:
  // Kind and sentence of the error after a change of a sound trace.
  std::pair<int, std::string> After(const std::string& sql) {
    std::filesystem::remove(Path());
    Make();
    {
      Database database(Path(), SQLITE_OPEN_READWRITE);
      database.Execute(sql.c_str());
    }
    return ErrorOf([this] { ReadAll(Path()); });
  }
};

struct Wrong {
  const char* sql;
  const char* says;  // the text after "cannot be used: "
};

TEST_F(Gate, ASoundTracePasses) { EXPECT_EQ(After("SELECT 1").first, 0); }

TEST_F(Gate, AWrongRowIsToldByTableRowAndColumn) {
  constexpr Wrong kWrong[] = {
      {"UPDATE layout SET dtype = 'evil' WHERE layout_id = 2",
       "row 2 of its table layout has dtype 'evil', which is no element type"},
      {"UPDATE layout SET dtype = NULL WHERE layout_id = 2",
       "row 2 of its table layout has dtype NULL, where a text is expected"},
      {"UPDATE layout SET dtype = 7 WHERE layout_id = 2",
       "row 2 of its table layout has dtype '7', which is no element type"},
      {"UPDATE layout SET dtype = 'float64' WHERE layout_id = 2",
       "row 2 of its table call_row has layout 2 in buffer 2, which reaches to byte 64 of 32"},
      {"UPDATE layout SET shape = '[2,-4]' WHERE layout_id = 2",
       "row 2 of its table layout has shape '[2,-4]', where no number may be negative"},
      {"UPDATE layout SET shape = '[2' || char(27) || ']' WHERE layout_id = 2",
       "row 2 of its table layout has shape '[2\\x1b]', where a list of whole numbers is expected"},
      {"UPDATE layout SET shape = '[2,4,1]' WHERE layout_id = 2",
       "row 2 of its table layout has strides '[4,1]', which are 2 where its shape has 3 "
       "dimensions"},
      {"UPDATE layout SET shape = '[100000000000000,100000000000000]' WHERE layout_id = 2",
       "row 2 of its table layout has shape '[100000000000000,100000000000000]', which is larger "
       "than any memory"},
      {"UPDATE layout SET shape = '[9223372036854775808,1]' WHERE layout_id = 2",
       "row 2 of its table layout has shape '[9223372036854775808,1]', where a list of whole "
       "numbers "
       "is expected"},
      {"UPDATE layout SET strides = '[4611686018427387904,1]' WHERE layout_id = 2",
       "row 2 of its table layout has strides '[4611686018427387904,1]', which is larger than any "
       "memory"},
      {"UPDATE layout SET strides = '[140737488355328,1]' WHERE layout_id = 2",
       "row 2 of its table layout has strides '[140737488355328,1]', which reach beyond any "
       "memory"},
      {"UPDATE layout SET strides = '[4,-1]' WHERE layout_id = 2",
       "row 2 of its table layout has strides '[4,-1]', where no number may be negative"},
      {"UPDATE layout SET byte_offset = -64 WHERE layout_id = 2",
       "row 2 of its table layout has byte_offset -64, where a whole number from 0 to "
       "140737488355328 is expected"},
      {"UPDATE layout SET byte_offset = 1 WHERE layout_id = 2",
       "row 2 of its table call_row has layout 2 in buffer 2, which reaches to byte 33 of 32"},
      {"DELETE FROM layout WHERE layout_id = 1",
       "row 2 of its table signature_argument names layout 1, which is no row of its table layout"},
      {"UPDATE signature SET op_id = 99 WHERE signature_id = 2",
       "row 2 of its table signature has op_id 99, which is no row of its table op"},
      {"UPDATE signature_argument SET kind = 'evil' WHERE signature_id = 2 AND position = 0",
       "row 2 of its table signature_argument has kind 'evil', which is no kind of argument"},
      {"UPDATE signature_argument SET slot = 4000000000 WHERE signature_id = 2 AND position = 0",
       "row 2 of its table signature_argument has slot 4000000000, where a whole number from 0 to "
       "65535 is expected"},
      {"DELETE FROM signature_argument WHERE signature_id = 2 AND position = 1",
       "row 2 of its table signature_argument has position 2, where 1 follows"},
      {"UPDATE call_row SET bits = 7 WHERE call_id = 2",
       "row 2 of its table call_row has bits 7, which is no phase"},
      {"UPDATE call_row SET bits = 1048576 WHERE call_id = 2",
       "row 2 of its table call_row has bits 1048576, where a whole number from 0 to 524287 is "
       "expected"},
      {"UPDATE call_row SET buffers = '[1,2]' WHERE call_id = 2",
       "row 2 of its table call_row has 2 buffers, where its signature 2 has tensors in 4"},
      {"UPDATE call_row SET buffers = '[-1,2,3,4]' WHERE call_id = 2",
       "row 2 of its table call_row has buffers '[-1,2,3,4]', where a list of buffers is expected"},
      {"UPDATE call_row SET parent_id = 2 WHERE call_id = 2",
       "row 2 of its table call_row has parent_id 2, where a whole number from 0 to 1 is expected"},
      {"UPDATE call_row SET signature_id = 77 WHERE call_id = 2",
       "row 2 of its table call_row names signature 77, which the trace does not have"},
      {"UPDATE call_row SET begin_ns = 'soon' WHERE call_id = 2",
       "row 2 of its table call_row has begin_ns 'soon', where a whole number from "
       "-2305843009213693952 to 2305843009213693952 is expected"},
      {"UPDATE buffer_row SET bytes = -1 WHERE buffer_id = 1",
       "row 1 of its table buffer_row has bytes -1, where a whole number from 0 to 140737488355328 "
       "is expected"},
      {"UPDATE buffer_row SET bytes = 8 WHERE buffer_id = 1",
       "row 2 of its table call_row has layout 1 in buffer 1, which reaches to byte 16 of 8"},
      {"UPDATE snapshot SET bytes = 15 WHERE moment = 'before'",
       "row 2 of its table snapshot has bytes 15, where its content has 16"},
      {"UPDATE snapshot SET bytes = 17 WHERE moment = 'before'",
       "row 2 of its table snapshot has bytes 17, where buffer 1 has 16 after byte 0"},
      {"UPDATE snapshot SET digest = 'x' WHERE moment = 'before'",
       "row 2 of its table snapshot has digest 'x', where 32 hexadecimal digits are expected"},
      {"UPDATE step SET last_call = 0 WHERE step = 1",
       "row 1 of its table step has last_call 0, where a whole number from 5 to 9007199254740992 "
       "is "
       "expected"},
      {"UPDATE ledger SET severity = 'evil'",
       "row 'recorder_stall' of its table ledger has severity 'evil', which is no severity"},
      {"UPDATE meta SET value = 'x' WHERE key = 'base_ns'",
       "the row 'base_ns' of its table meta has value 'x', where a time in nanoseconds is "
       "expected"},
  };
  for (const Wrong& wrong : kWrong) {
    EXPECT_EQ(After(wrong.sql),
              std::make_pair(3, "'" + Path() + "' cannot be used: " + wrong.says +
                                    "; no acltape wrote that, so record the program again"))
        << wrong.sql;
  }
}

TEST_F(Gate, AnOpaqueTensorHasNoStrides) {
  EXPECT_EQ(After("UPDATE layout SET flags = 8, format = 'opaque', strides = '[]' "
                  "WHERE layout_id = 1; UPDATE snapshot SET tensor_id = 1 << 24 | 3, bytes = 32 "
                  "WHERE moment = 'before'; UPDATE buffer_row SET bytes = 32; DELETE FROM payload")
                .first,
            0);
}

TEST_F(Gate, ForeignPartsOfTheSchemaAreRefused) {
  constexpr Wrong kWrong[] = {
      {"PRAGMA legacy_alter_table = ON; ALTER TABLE call_row RENAME TO gone; CREATE VIEW call_row "
       "AS SELECT 1 AS call_id",
       "it has the view 'call_row', which is a table in a trace of acltape"},
      {"CREATE TRIGGER evil AFTER INSERT ON run BEGIN DELETE FROM run; END",
       "it has the trigger 'evil', acltape writes none"},
      {"CREATE VIEW evil AS SELECT 1", "it has the view 'evil', which acltape does not know"},
      {"CREATE INDEX evil ON op(hex(name))",
       "it has the index 'evil', which acltape does not know"},
      {"DROP TABLE step; CREATE TABLE step(step INTEGER PRIMARY KEY, first_call INTEGER, last_call "
       "INTEGER, found_by TEXT CHECK(hex(found_by) <> ''))",
       "it has the table 'step', which is not declared as acltape does"},
      {"DROP TABLE step; CREATE TABLE step(step INTEGER PRIMARY KEY, first_call INTEGER, last_call "
       "INTEGER)",
       "it has the table 'step', which lacks columns of its schema version"},
      {"ALTER TABLE step ADD COLUMN evil",
       "it has the table 'step', whose column 'evil' is not known"},
  };
  for (const Wrong& wrong : kWrong) {
    EXPECT_EQ(After(wrong.sql),
              std::make_pair(3, "'" + Path() + "' cannot be used: " + wrong.says +
                                    "; no acltape wrote that, so remove it, or record the program "
                                    "again"))
        << wrong.sql;
  }
}

TEST_F(Gate, ViewsOfAnotherTextAreNotUsed) {
  ASSERT_EQ(After("DROP VIEW call; CREATE VIEW call AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
                  "SELECT i + 1 FROM n) SELECT i AS call_id FROM n")
                .first,
            0);
  const Reader reader(Path());
  EXPECT_EQ(AllRows(reader, "SELECT call_id FROM call").rows.size(), 8u);
  EXPECT_EQ(AllRows(reader, "SELECT * FROM capture_breaks").rows.size(), 2u);
}

TEST_F(Gate, ColumnsThatAnOlderSchemaLacksReadAsNull) {
  ASSERT_EQ(After("PRAGMA user_version = 3; DROP VIEW call_location; DROP VIEW location_summary; "
                  "DROP VIEW stack_location; DROP VIEW device_call_origin; DROP VIEW tensor_flow; "
                  "DROP VIEW step_summary; DROP VIEW capture_breaks; DROP VIEW host_gaps; "
                  "DROP VIEW top_ops; DROP VIEW tensor; DROP VIEW tensor_use; DROP VIEW argument; "
                  "DROP VIEW call; ALTER TABLE call_row DROP COLUMN stack_id")
                .first,
            0);
  const Reader reader(Path());
  EXPECT_EQ(reader.Calls(false).size(), 8u);
  EXPECT_EQ(AllRows(reader, "SELECT call_id FROM call WHERE stack_id IS NULL").rows.size(), 8u);
}

TEST_F(Gate, ChainsOfParentsThatLeadBackEnd) {
  Make();
  {
    Database database(Path(), SQLITE_OPEN_READWRITE);
    database.Execute("UPDATE call_row SET parent_id = call_id % 8 + 1, stack_id = 1");
    database.Execute("INSERT INTO stack VALUES(1, '[{\"file\":\"a.py\",\"line\":1}]', 0)");
    database.Execute("UPDATE scope SET parent_id = scope_id");
  }
  const Reader reader(Path());
  EXPECT_EQ(AllRows(reader, "SELECT * FROM call_location").rows.size(), 8u);
  EXPECT_EQ(AllRows(reader, "SELECT * FROM device_call_origin").rows.size(), 0u);
}

TEST_F(Gate, QueriesDoOnlyWhatIsListed) {
  Make();
  const Reader reader(Path());
  for (const char* sql : {"BEGIN", "SAVEPOINT x", "PRAGMA journal_mode=DELETE",
                          "PRAGMA writable_schema=1", "PRAGMA temp_store_directory='/'", "VACUUM",
                          "REINDEX", "ANALYZE", "DETACH main", "CREATE TEMP TABLE x(y)",
                          "SELECT fts3_tokenizer('simple')", "SELECT load_extension('x')"}) {
    const auto [kind, sentence] = ErrorOf([&] { AllRows(reader, sql); });
    EXPECT_EQ(kind, 2) << sql << ": " << sentence;
  }
  for (const char* sql : {"SELECT name FROM pragma_table_info('call')", "PRAGMA user_version",
                          "EXPLAIN QUERY PLAN SELECT 1", "PRAGMA table_info(op)",
                          "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 9) "
                          "SELECT json_group_array(i) FROM n"}) {
    EXPECT_EQ(ErrorOf([&] { AllRows(reader, sql); }).first, 0) << sql;
  }
}

}  // namespace
}  // namespace acltape::storage
