#include "cli/table_layout.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "cli/paint.h"

namespace acltape::cli {
namespace {

// The widest that a column may grow on a screen without a width.
constexpr size_t kWidest = 72;
// Text is not wrapped to less than this, or it could not be read.
constexpr size_t kNarrowest = 12;
constexpr size_t kGap = 2;

struct LaidColumn {
  size_t index;  // in the table
  size_t width;
  bool numeric;
};

using CellTexts = std::vector<std::vector<std::string>>;

CellTexts TextsOf(const Table& table) {
  CellTexts texts;
  texts.reserve(table.rows().size());
  for (const auto& row : table.rows()) {
    auto& line = texts.emplace_back();
    for (const Cell& cell : row) line.push_back(CellForPeople(cell));
  }
  return texts;
}

std::vector<LaidColumn> ColumnsOf(const Table& table, const CellTexts& texts, bool fitted) {
  std::vector<LaidColumn> columns;
  for (size_t i = 0; i < table.columns().size(); ++i) {
    LaidColumn column{i, TextWidth(table.columns()[i]), true};
    bool empty = true;
    for (size_t row = 0; row < texts.size(); ++row) {
      const size_t width = TextWidth(texts[row][i]);
      empty = empty && width == 0;
      column.width = std::max(column.width, fitted ? width : std::min(width, kWidest));
      if (std::holds_alternative<std::string>(table.rows()[row][i])) column.numeric = false;
    }
    if (!fitted || !empty || texts.empty()) columns.push_back(column);
  }
  return columns;
}

// Takes from the widest columns of text until the line fits, one column of the screen at a time
// from whichever is the widest then.
void Fit(std::vector<LaidColumn>& columns, const Table& table, size_t width) {
  size_t used = columns.empty() ? 0 : (columns.size() - 1) * kGap;
  for (const LaidColumn& column : columns) used += column.width;
  while (used > width) {
    LaidColumn* widest = nullptr;
    for (LaidColumn& column : columns) {
      const size_t least = std::max(kNarrowest, TextWidth(table.columns()[column.index]));
      if (column.numeric || column.width <= least) continue;
      if (widest == nullptr || column.width >= widest->width) widest = &column;
    }
    if (widest == nullptr) return;
    --widest->width;
    --used;
  }
}

struct LineCell {
  std::string text;
  Paint paint = Paint::kNone;
};

std::string LineOf(const std::vector<LaidColumn>& columns, const std::vector<LineCell>& cells,
                   bool colour) {
  std::string line;
  size_t waiting = 0;  // blanks that are written only when text follows them
  for (size_t i = 0; i < columns.size(); ++i) {
    const size_t used = TextWidth(cells[i].text);
    const size_t gap = used < columns[i].width ? columns[i].width - used : 0;
    if (i > 0) waiting += kGap;
    if (columns[i].numeric) waiting += gap;
    if (used > 0) {
      line.append(waiting, ' ');
      line += colour ? Painted(cells[i].text, cells[i].paint) : cells[i].text;
      waiting = 0;
    }
    if (!columns[i].numeric) waiting += gap;
  }
  // What a cell itself ends with goes too, as all blanks at the end of a line do.
  if (!colour) line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace

std::string AlignedText(const Table& table, const Screen& screen) {
  const bool fitted = screen.width > 0;
  const CellTexts texts = TextsOf(table);
  std::vector<LaidColumn> columns = ColumnsOf(table, texts, fitted);
  if (fitted) Fit(columns, table, screen.width);
  std::string text;
  std::vector<LineCell> line(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    line[i] = {table.columns()[columns[i].index], Paint::kHeading};
  }
  text += LineOf(columns, line, screen.colour);
  for (size_t i = 0; i < columns.size(); ++i) line[i] = {std::string(columns[i].width, '-')};
  text += LineOf(columns, line, screen.colour);
  for (const auto& row : texts) {
    std::vector<std::vector<std::string>> wrapped;
    size_t lines = 1;
    for (const LaidColumn& column : columns) {
      wrapped.push_back(fitted && TextWidth(row[column.index]) > column.width
                            ? WrapText(row[column.index], column.width)
                            : std::vector<std::string>{row[column.index]});
      lines = std::max(lines, wrapped.back().size());
    }
    for (size_t k = 0; k < lines; ++k) {
      for (size_t i = 0; i < columns.size(); ++i) {
        line[i] = {k < wrapped[i].size() ? wrapped[i][k] : ""};
        if (screen.colour) {
          line[i].paint =
              PaintOf(table.columns()[columns[i].index], row.front(), row[columns[i].index]);
        }
      }
      text += LineOf(columns, line, screen.colour);
    }
  }
  return text;
}

}  // namespace acltape::cli
