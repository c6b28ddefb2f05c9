// The tables that commands print: typed cells, in one of three formats. `table` is for people
// (columns aligned, numbers to the right). `csv` follows RFC 4180 with a header line. `json` is an
// array of objects with the columns as keys. What `table` looks like depends on the screen.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/screen.h"

namespace acltape::cli {

enum class Format { kTable, kCsv, kJson };

// Rows of a long list that a table for people shows.
inline constexpr size_t kRowsForPeople = 20;

// std::monostate is SQL's NULL: nothing in a table, an empty field in CSV, null in JSON.
using Cell = std::variant<std::monostate, int64_t, double, std::string>;

// NULL where the text is empty.
inline Cell TextCell(std::string text) { return text.empty() ? Cell() : Cell(std::move(text)); }

// One record of CSV with its line end.
std::string CsvLine(const std::vector<Cell>& cells);

class Table {
 public:
  explicit Table(std::vector<std::string> columns) : columns_(std::move(columns)) {}
  // A row has as many cells as there are columns.
  void Add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }

  const std::vector<std::string>& columns() const { return columns_; }
  const std::vector<std::vector<Cell>>& rows() const { return rows_; }
  std::string ToText(Format format, const Screen& screen = OutputScreen()) const;

 private:
  std::vector<std::string> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// Several named tables. JSON: one object with an array per name. CSV: each with its header, an
// empty line between them. Tables without rows are left out of `table`, but not of the other
// formats.
class Report {
 public:
  void Add(std::string name, Table table) {
    parts_.emplace_back(std::move(name), std::move(table));
  }
  std::string ToText(Format format, const Screen& screen = OutputScreen()) const;

 private:
  std::vector<std::pair<std::string, Table>> parts_;
};

// "1.5 GiB", "312 B".
std::string HumanBytes(int64_t bytes);
// "1.25 ms", "310 ns": three significant digits.
std::string HumanNs(double ns);
// A part in percent of the whole, rounded; 0 if the whole is 0.
double Percent(double part, double whole, int decimals = 1);

}  // namespace acltape::cli
