#include <fmt/format.h>

#include <algorithm>

#include "analyzer/calls/level.h"
#include "cli/choices/picked_calls.h"
#include "cli/frame/options.h"
#include "cli/frame/trace_part_options.h"
#include "cli/look/commands.h"
#include "cli/look/query_table.h"
#include "cli/tables/where.h"
#include "cli/terminal/similar.h"

namespace acltape::cli {
namespace {

class QueryCommand final : public Command {
 public:
  std::string Name() const override { return "query"; }
  std::string Summary() const override {
    return "Run read-only SQL, or a query that comes with acltape, over a trace";
  }
  std::string Examples() const override {
    return "  acltape query @list\n"
           "  acltape query t.db top_ops @limit 10\n"
           "  acltape query t.db top_ops @calls step:3/line:train.py\n"
           "  acltape query t.db 'SELECT op, count(*) FROM call GROUP BY op' @format csv\n"
           "docs/schema.md describes the tables and views."_cli;
  }

  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace");
    auto* sql = app.add_option("sql", sql_,
                               "One SQL statement that does not write, or the name of a query "
                               "that comes with acltape");
    AddOption(app, "name", name_, "A query that comes with acltape")->excludes(sql);
    AddFlag(app, "list", list_, "List those queries");
    AddOption(app, "calls", calls_,
              "Of a query that comes with acltape: only these calls: 100-200, step:3, op:NAME, "
              "line:FILE:LINES");
    AddFlag(app, "all", all_, "Of such a query: calls outside of the steps too");
    AddCount(app, "limit", limit_, 0, "Rows at most, 0: all");
    AddFormatOption(app, format_);
  }

  int Run() override {
    if (list_) {
      ListQueries();
      return kExitFine;
    }
    if (trace_.empty()) throw Error(ErrorKind::kUsage, "query needs a trace, or @list."_cli);
    const storage::NamedQuery* named = Named();
    if (named != nullptr) return RunNamed(storage::Reader(trace_, part()), *named);
    if (!calls_.empty() || all_ || PickedByOptions(part())) {
      throw Error(ErrorKind::kUsage,
                  "@calls, @all, @process and @level pick the calls of a query that comes with "
                  "acltape; write the condition into the WHERE of your SQL."_cli);
    }
    const storage::Reader reader(trace_);
    if (format_ == Format::kCsv) {
      PrintCsv(reader, sql_);
    } else {
      fmt::print("{}", QueryTable(reader, sql_, limit_).ToText(format_));
    }
    return kExitFine;
  }

 private:
  void ListQueries() const {
    Table table({"name", "description", "sql"});
    for (const storage::NamedQuery& query : storage::NamedQueries()) {
      table.Add({std::string(query.name), std::string(query.description), std::string(query.sql)});
    }
    fmt::print("{}", table.ToText(format_));
  }

  // nullptr for SQL of the user's own.
  const storage::NamedQuery* Named() const {
    // One word is no SQL statement, so it names a query.
    const bool word = sql_.find_first_of(" \t\n;") == std::string::npos;
    const std::string& name = name_.empty() && word ? sql_ : name_;
    if (name.empty()) {
      if (!sql_.empty()) return nullptr;
      throw Error(ErrorKind::kUsage,
                  "query needs SQL or @name; `acltape query @list` shows the names."_cli);
    }
    const storage::NamedQuery* query = storage::FindNamedQuery(name);
    if (query != nullptr) return query;
    std::vector<std::string> names;
    for (const storage::NamedQuery& known : storage::NamedQueries()) names.emplace_back(known.name);
    const std::string meant = DidYouMean(name, names);
    throw Error(ErrorKind::kUsage,
                fmt::format("there is no query '{}'{}{} `acltape query @list` shows the names."_cli,
                            name, meant, meant.empty() ? ";" : ""));
  }

  int RunNamed(const storage::Reader& reader, const storage::NamedQuery& query) const {
    if (!query.TakesCalls() && !calls_.empty()) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("the query {} is not about calls, so that none can be picked; leave "
                              "out @calls."_cli,
                              query.name));
    }
    if (reader.part().level) analyzer::ChooseLevel(reader);  // throws where the trace lacks it
    const bool in_steps =
        !query.call_column.empty() && calls_.empty() && !all_ && !reader.Steps().empty();
    const bool of_part = reader.process() != 0 || reader.part().level.has_value();
    const bool picks = query.TakesCalls() && (in_steps || of_part || !calls_.empty());
    std::string_view sql = query.sql;
    if (picks && !in_steps && !query.over_picked.empty()) sql = query.over_picked;
    if (picks) MakePickedTable(reader, calls_, in_steps);
    const std::string text = picks ? storage::PickedSql(sql, true) : std::string(sql);
    Table table = QueryTable(reader, text, limit_);
    const auto& columns = table.columns();
    if (!query.call_column.empty() &&
        std::find(columns.begin(), columns.end(), "where") == columns.end()) {
      table = WithLines(table, query.call_column, analyzer::SourceLines(reader));
      table.KeepNames();
    }
    if (format_ == Format::kTable) table = ForPeople(table, query.name == "capture_breaks");
    fmt::print("{}", table.ToText(format_));
    if (in_steps) SayLeftOut(reader, sql);
    return kExitFine;
  }

  static void SayLeftOut(const storage::Reader& reader, std::string_view sql) {
    const std::string count =
        fmt::format("SELECT count(*) FROM ({})", storage::PickedSql(sql, false));
    const int64_t rows = reader.database().Integer(count.c_str());
    if (rows == 0) return;
    fmt::print(stderr,
               "acltape: {}{} row{} of calls outside of the steps {} left out; @all shows {}\n"_cli,
               rows, sql.ends_with("LIMIT 50") && rows == 50 ? " or more" : "",
               rows == 1 ? "" : "s", rows == 1 ? "is" : "are", rows == 1 ? "it" : "them");
  }

  // Row by row: a dump of a long trace need not fit in memory.
  void PrintCsv(const storage::Reader& reader, const std::string& sql) const {
    int64_t rows = 0;
    storage::RunQuery(
        reader, sql,
        [](const std::vector<std::string>& columns) {
          fmt::print("{}", CsvLine(std::vector<Cell>(columns.begin(), columns.end())));
        },
        [&](std::vector<Cell>& row) {
          fmt::print("{}", CsvLine(row));
          return ++rows != limit_;
        });
  }

  std::string trace_;
  std::string sql_;
  std::string name_;
  std::string calls_;
  bool list_ = false;
  bool all_ = false;
  int64_t limit_ = 0;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeQueryCommand() { return std::make_unique<QueryCommand>(); }

}  // namespace acltape::cli
