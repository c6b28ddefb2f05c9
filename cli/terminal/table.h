// The tables that commands print: typed cells, in one of three formats. `table` is for people
// (columns aligned, numbers to the right). `csv` follows RFC 4180 with a header line. `json` is an
// array of objects with the columns as keys. What `table` looks like depends on the screen.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/terminal/screen.h"
#include "storage/cell.h"

namespace acltape::cli {

enum class Format { kTable, kCsv, kJson };

// Rows of a long list that a table for people shows.
inline constexpr size_t kRowsForPeople = 20;

// SQL's NULL is nothing in a table, an empty field in CSV, null in JSON.
using storage::Cell;

// NULL where the text is empty.
inline Cell TextCell(std::string text) { return text.empty() ? Cell() : Cell(std::move(text)); }

// One record of CSV with its line end.
std::string CsvLine(const std::vector<Cell>& cells);

// A column's or a table's name as a key of JSON: lower case, '_' for all but letters and digits.
std::string JsonKey(std::string_view name);

class Table {
 public:
  explicit Table(std::vector<std::string> columns) : columns_(std::move(columns)) {}
  // A row has as many cells as there are columns.
  void Add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }

  // The names of the columns are somebody else's, such as those of a query: JSON has them as they
  // are.
  void KeepNames() { keeps_names_ = true; }
  std::string key(size_t column) const {
    return keeps_names_ ? columns_[column] : JsonKey(columns_[column]);
  }

  const std::vector<std::string>& columns() const { return columns_; }
  const std::vector<std::vector<Cell>>& rows() const { return rows_; }
  std::string ToText(Format format, const Screen& screen = OutputScreen()) const;

 private:
  std::vector<std::string> columns_;
  std::vector<std::vector<Cell>> rows_;
  bool keeps_names_ = false;
};

// The number of the form in which commands print JSON; it grows when a key changes its meaning or
// goes away, not when one is added.
inline constexpr int kJsonVersion = 1;

// A command that prints several tables prints only the one of this name from now on, in any
// format; JSON is then its array. Names are compared as keys of JSON. Empty: all are printed.
void ChooseTable(std::string name);
// True when the chosen table was among those of a report.
bool ChosenTableWasPrinted();

// Several named tables. JSON: one object with format_version and an array per name. CSV: each with
// its header, an empty line between them. Tables without rows are left out of `table`, but not of
// the other formats. ToText throws Error kUsage when the chosen table is none of them.
class Report {
 public:
  void Add(std::string name, Table table) {
    parts_.emplace_back(std::move(name), std::move(table));
  }
  std::string ToText(Format format, const Screen& screen = OutputScreen()) const;

 private:
  const Table& Chosen() const;
  std::vector<std::pair<std::string, Table>> parts_;
};

// "1.5 GiB", "312 B".
std::string HumanBytes(int64_t bytes);
// A size or a time in one of the tables that have a unit for people, and a plain number in the
// other formats.
Cell BytesCell(int64_t bytes, Format format);
Cell NsCell(int64_t ns, Format format);
// "1.25 ms", "310 ns": three significant digits.
std::string HumanNs(double ns);
// A part in percent of the whole, rounded; 0 if the whole is 0.
double Percent(double part, double whole, int decimals = 1);

}  // namespace acltape::cli
