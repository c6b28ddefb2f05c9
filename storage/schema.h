// The tables and views of a trace. Names and columns are public and documented in docs/schema.md;
// changes are additive, and raise kSchemaVersion.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace acltape::storage {

class Database;

constexpr int64_t kApplicationId = 0x41434c54;  // "ACLT" in the header of the file
constexpr int64_t kSchemaVersion = 9;

// Creates every table, fills the rule tables and adds the views. The database is empty before.
void CreateSchema(Database& database);

// Indexes that only pay once recording is over; created when the trace is closed.
void CreateIndexes(Database& database);

// Makes (digest, piece) of the table `payload` unique and quick to find, if it is not so yet. Rows
// of contents come in the order of arrival; to keep an index of them up to date takes half the time
// that they take to write. So a recording makes it when it is closed, or when it first needs it.
void IndexPayloads(Database& database);
// True if it is so: not while a trace is recorded, nor after a recorder that was killed.
bool HasPayloadIndex(Database& database);

// Part of CreateSchema. Traces of schema version 1 lack the table `witness` until the first one is
// added; where it exists nothing happens.
void CreateWitnessTable(Database& database);

// Part of CreateSchema; in a file of its own (views.cpp) because it is the part users read.
void CreateViews(Database& database);

// The views that CreateViews adds, in that order.
struct ViewText {
  std::string name;
  std::string sql;  // "CREATE VIEW name AS ...", without a semicolon at the end
};
std::span<const ViewText> ViewTexts();

// The indexes over a part of a table that CreateIndexes adds, as SQLite keeps their text.
std::span<const std::string_view> IndexTexts();

}  // namespace acltape::storage
