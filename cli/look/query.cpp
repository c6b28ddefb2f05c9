#include <fmt/format.h>

#include "cli/frame/options.h"
#include "cli/look/commands.h"
#include "cli/look/query_table.h"
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
           "  acltape query t.db @name top_ops @limit 10\n"
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
    AddCount(app, "limit", limit_, 0, "Rows at most, 0: all");
    AddFormatOption(app, format_);
  }

  int Run() override {
    if (list_) {
      ListQueries();
      return kExitFine;
    }
    if (trace_.empty()) throw Error(ErrorKind::kUsage, "query needs a trace, or @list."_cli);
    const std::string sql = Statement();
    const storage::Reader reader(trace_);
    if (format_ == Format::kCsv) {
      PrintCsv(reader, sql);
      return kExitFine;
    }
    fmt::print("{}", QueryTable(reader, sql, limit_).ToText(format_));
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

  std::string Statement() const {
    // One word is no SQL statement, so it names a query.
    const bool word = sql_.find_first_of(" \t\n;") == std::string::npos;
    const std::string& name = name_.empty() && word ? sql_ : name_;
    if (!name.empty()) {
      const storage::NamedQuery* query = storage::FindNamedQuery(name);
      if (query == nullptr) {
        std::vector<std::string> names;
        for (const storage::NamedQuery& known : storage::NamedQueries()) {
          names.emplace_back(known.name);
        }
        const std::string meant = DidYouMean(name, names);
        throw Error(
            ErrorKind::kUsage,
            fmt::format("there is no query '{}'{}{} `acltape query @list` shows the names."_cli,
                        name, meant, meant.empty() ? ";" : ""));
      }
      return std::string(query->sql);
    }
    if (sql_.empty()) {
      throw Error(ErrorKind::kUsage,
                  "query needs SQL or @name; `acltape query @list` shows the names."_cli);
    }
    return sql_;
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
  bool list_ = false;
  int64_t limit_ = 0;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeQueryCommand() { return std::make_unique<QueryCommand>(); }

}  // namespace acltape::cli
