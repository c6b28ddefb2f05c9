#include "cli/terminal/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/terminal/paint.h"
#include "cli/terminal/table_layout.h"
#include "storage/error.h"
#include "storage/visible_text.h"

namespace acltape::cli {
namespace {

std::string chosen_table;
bool chosen_was_printed = false;

std::string RealText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{}", value);
}

std::string Shown(const Cell& cell, Format format) {
  if (const auto* integer = std::get_if<int64_t>(&cell)) return fmt::format("{}", *integer);
  if (const auto* real = std::get_if<double>(&cell)) {
    return format == Format::kTable && std::isfinite(*real) ? fmt::format("{:.6g}", *real)
                                                            : RealText(*real);
  }
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return "";
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string CsvText(const Table& table) {
  std::string text = CsvLine(std::vector<Cell>(table.columns().begin(), table.columns().end()));
  for (const auto& row : table.rows()) text += CsvLine(row);
  return text;
}

nlohmann::ordered_json ToJson(const Table& table) {
  auto rows = nlohmann::ordered_json::array();
  for (const auto& row : table.rows()) {
    auto object = nlohmann::ordered_json::object();
    for (size_t i = 0; i < row.size(); ++i) {
      auto& value = object[table.key(i)];
      if (const auto* integer = std::get_if<int64_t>(&row[i])) value = *integer;
      // JSON has no NaN and no infinities; their names keep the difference.
      if (const auto* real = std::get_if<double>(&row[i])) {
        if (std::isfinite(*real)) {
          value = *real;
        } else {
          value = RealText(*real);
        }
      }
      if (const auto* text = std::get_if<std::string>(&row[i])) value = *text;
    }
    rows.push_back(std::move(object));
  }
  return rows;
}

// Bytes that are not UTF-8 become replacement characters instead of an exception.
std::string Dump(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace

std::string CellForPeople(const Cell& cell) {
  std::string text = Shown(cell, Format::kTable);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return storage::VisibleText(text);
}

std::string CsvLine(const std::vector<Cell>& cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    line += (i == 0 ? "" : ",") + CsvField(Shown(cells[i], Format::kCsv));
  }
  return line + '\n';
}

std::string Table::ToText(Format format, const Screen& screen) const {
  switch (format) {
    case Format::kCsv:
      return CsvText(*this);
    case Format::kJson:
      return Dump(ToJson(*this));
    case Format::kTable:
      break;
  }
  return AlignedText(*this, screen);
}

std::string JsonKey(std::string_view name) {
  std::string key;
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) != 0) {
      key += static_cast<char>(std::tolower(letter));
    } else if (!key.empty() && key.back() != '_') {
      key += '_';
    }
  }
  while (!key.empty() && key.back() == '_') key.pop_back();
  return key;
}

void ChooseTable(std::string name) { chosen_table = std::move(name); }

bool ChosenTableWasPrinted() { return chosen_was_printed; }

const Table& Report::Chosen() const {
  std::string names;
  for (const auto& [name, table] : parts_) {
    if (JsonKey(name) == JsonKey(chosen_table)) {
      chosen_was_printed = true;
      return table;
    }
    names += (names.empty() ? "" : ", ") + JsonKey(name);
  }
  throw Error(ErrorKind::kUsage, fmt::format("there is no table '{}' in this output; there are {}.",
                                             chosen_table, names));
}

std::string Report::ToText(Format format, const Screen& screen) const {
  if (!chosen_table.empty()) return Chosen().ToText(format, screen);
  if (format == Format::kJson) {
    nlohmann::ordered_json object{{"format_version", kJsonVersion}};
    for (const auto& [name, table] : parts_) object[JsonKey(name)] = ToJson(table);
    return Dump(object);
  }
  std::string text;
  for (const auto& [name, table] : parts_) {
    if (format == Format::kTable && table.rows().empty()) continue;
    if (!text.empty()) text += '\n';
    if (format == Format::kTable) {
      text += (screen.colour ? Painted(name, Paint::kHeading) : name) + '\n';
    }
    text += table.ToText(format, screen);
  }
  return text;
}

std::string HumanBytes(int64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string HumanNs(double ns) {
  static constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
  size_t unit = 0;
  while (std::abs(ns) >= 1000 && unit + 1 < std::size(kUnits)) {
    ns /= 1000;
    ++unit;
  }
  const int decimals = std::abs(ns) >= 100 || unit == 0 ? 0 : std::abs(ns) >= 10 ? 1 : 2;
  return fmt::format("{:.{}f} {}", ns, decimals, kUnits[unit]);
}

Cell BytesCell(int64_t bytes, Format format) {
  return format == Format::kTable ? Cell(HumanBytes(bytes)) : Cell(bytes);
}

Cell NsCell(int64_t ns, Format format) {
  return format == Format::kTable ? Cell(HumanNs(static_cast<double>(ns))) : Cell(ns);
}

double Percent(double part, double whole, int decimals) {
  const double scale = std::pow(10, decimals);
  return whole == 0 ? 0 : std::round(100 * scale * part / whole) / scale;
}

}  // namespace acltape::cli
