#include "storage/trace_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <vector>

#include "storage/checked_row.h"
#include "storage/database.h"
#include "storage/schema.h"
#include "storage/tables.h"

namespace acltape::storage {
namespace {

// The text without blanks: SQL that differs in them alone is the same here.
std::string Squeezed(std::string_view sql) {
  std::string text;
  for (const char c : sql) {
    if (std::isspace(static_cast<unsigned char>(c)) == 0) text += c;
  }
  return text;
}

const StoredTable* FindTable(std::string_view name) {
  for (const std::span<const StoredTable* const> list :
       {std::span<const StoredTable* const>(tables::kRecorded),
        std::span<const StoredTable* const>(tables::kResults),
        std::span<const StoredTable* const>(tables::kTotals)}) {
    for (const StoredTable* table : list) {
      if (table->name == name) return table;
    }
  }
  return tables::kBarrierRule.name == name ? &tables::kBarrierRule : nullptr;
}

const std::string* FindView(std::string_view name) {
  for (const ViewText& view : ViewTexts()) {
    if (view.name == name) return &view.sql;
  }
  return nullptr;
}

// Traces before a version of the schema may declare a table with this constraint.
struct OlderConstraint {
  std::string_view table;
  int64_t before_version;
  std::string_view constraint;
};
constexpr OlderConstraint kOlderConstraints[] = {{"payload", 8, "PRIMARY KEY(digest, piece)"}};

class SchemaCheck {
 public:
  SchemaCheck(Database& database, int64_t version) : database_(database), version_(version) {}

  void Run() {
    std::set<std::string> tables;
    Statement objects(database_, "SELECT name, type, sql FROM main.sqlite_master");
    const CheckedRow row(objects, database_.path(), "sqlite_master");
    while (objects.Next()) {
      const std::string name(row.Text(0, "name"));
      const std::string_view type = row.Text(1, "type");
      const std::string_view sql = row.TextOrNull(2, "sql");
      if (type == "trigger") Refuse("trigger", name, "acltape writes none");
      if (type == "view") CheckView(name, sql);
      if (type == "index") CheckIndex(name, sql);
      if (type != "table") continue;
      if (Squeezed(sql).starts_with("CREATEVIRTUAL")) {
        Refuse("virtual table", name, "acltape writes none");
      }
      tables.insert(name);
      if (FindTable(name) != nullptr) {
        CheckTable(*FindTable(name), sql);
      } else if (FindView(name) != nullptr) {
        Refuse("table", name, "which is a view in a trace of acltape");
      }
    }
    objects.Reset();
    for (const std::span<const StoredTable* const> list :
         {std::span<const StoredTable* const>(tables::kTotals),
          std::span<const StoredTable* const>(tables::kLater)}) {
      for (const StoredTable* table : list) {
        if (!tables.contains(std::string(table->name))) absent_.push_back(table);
      }
    }
    if (differs_ || !absent_.empty()) Hide();
  }

 private:
  [[noreturn]] void Refuse(std::string_view kind, const std::string& name,
                           std::string_view why) const {
    throw Error(ErrorKind::kTrace,
                fmt::format("'{}' cannot be used: it has the {} {}, {}; no acltape wrote that, so "
                            "remove it, or record the program again",
                            database_.path(), kind, ShownValue(name), why));
  }

  void CheckView(const std::string& name, std::string_view sql) {
    if (FindTable(name) != nullptr) Refuse("view", name, "which is a table in a trace of acltape");
    const std::string* ours = FindView(name);
    if (ours == nullptr) Refuse("view", name, "which acltape does not know");
    if (Squeezed(sql) != Squeezed(*ours)) differs_ = true;
  }

  // An index over columns alone may have been added; one over expressions would run them.
  void CheckIndex(const std::string& name, std::string_view sql) {
    const std::string text = Squeezed(sql);
    const bool plain = std::count(text.begin(), text.end(), '(') <= 1 && text.ends_with(')');
    const auto ours = [&](std::string_view known) { return Squeezed(known) == text; };
    const std::span<const std::string_view> known = IndexTexts();
    if (sql.empty() || plain || std::any_of(known.begin(), known.end(), ours)) return;
    Refuse("index", name, "which acltape does not know");
  }

  // The columns of an older schema are fewer. All else must be as it is written today.
  void CheckTable(const StoredTable& table, std::string_view sql) {
    std::vector<StoredColumn> columns;
    std::set<std::string_view> present;
    Statement names(database_, "SELECT name FROM pragma_table_info(?1, 'main') ORDER BY cid");
    names.Bind(1, table.name);
    while (names.Next()) {
      const std::string_view name = names.Text(0);
      const auto known =
          std::find_if(table.columns.begin(), table.columns.end(),
                       [&](const StoredColumn& column) { return column.name == name; });
      if (known == table.columns.end()) {
        Refuse("table", std::string(table.name),
               fmt::format("whose column {} is not known", ShownValue(name)));
      }
      columns.push_back(*known);
      present.insert(known->name);
    }
    StoredTable shorter = table;
    shorter.columns = columns;
    bool declared = IsDeclaredAs(shorter, sql);
    for (const OlderConstraint& older : kOlderConstraints) {
      if (older.table != table.name || version_ >= older.before_version) continue;
      shorter.constraint = older.constraint;
      declared = declared || IsDeclaredAs(shorter, sql);
    }
    if (!declared) {
      Refuse("table", std::string(table.name), "which is not declared as acltape does");
    }
    if (present.size() == table.columns.size()) return;
    if (version_ >= kSchemaVersion) {
      Refuse("table", std::string(table.name), "which lacks columns of its schema version");
    }
    for (const StoredColumn& column : table.columns) {
      if (!present.contains(column.name)) missing_[table.name].push_back(column.name);
    }
    differs_ = true;
  }

  static bool IsDeclaredAs(const StoredTable& table, std::string_view sql) {
    std::string expected = CreateText(table);
    constexpr std::string_view kUnlessThere = "IF NOT EXISTS ";
    expected.erase(expected.find(kUnlessThere), kUnlessThere.size());
    return Squeezed(sql) == Squeezed(expected);
  }

  // Views of this connection alone. A name is looked for there first.
  void Hide() {
    for (const auto& [table, columns] : missing_) {
      std::string sql = fmt::format("CREATE TEMP VIEW {} AS SELECT *", table);
      for (const std::string_view column : columns) sql += fmt::format(", NULL AS {}", column);
      database_.Execute((sql + fmt::format(" FROM main.{}", table)).c_str());
    }
    for (const StoredTable* table : absent_) {
      std::string columns;
      for (const StoredColumn& column : table->columns) {
        columns += fmt::format("{}NULL AS {}", columns.empty() ? "" : ", ", column.name);
      }
      database_.Execute(
          fmt::format("CREATE TEMP VIEW {} AS SELECT {} WHERE 0", table->name, columns).c_str());
    }
    for (const ViewText& view : ViewTexts()) {
      const std::string body = view.sql.substr(view.sql.find(" VIEW "));
      database_.Execute(("CREATE TEMP" + body).c_str());
    }
  }

  Database& database_;
  int64_t version_;
  bool differs_ = false;
  std::map<std::string_view, std::vector<std::string_view>> missing_;
  std::vector<const StoredTable*> absent_;  // tables that read as empty
};

}  // namespace

void CheckSchemaObjects(Database& database, int64_t version) {
  SchemaCheck(database, version).Run();
}

void Distrust(Database& database) {
  sqlite3* handle = database.handle();
  for (const auto& [setting, value] :
       {std::pair(SQLITE_DBCONFIG_DEFENSIVE, 1), std::pair(SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
        std::pair(SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
        std::pair(SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0)}) {
    sqlite3_db_config(handle, setting, value, nullptr);
  }
  constexpr int kMostBytesOfAValue = 512 << 20;  // twice a piece of a payload
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kMostBytesOfAValue);
}

}  // namespace acltape::storage
