#include "cli/terminal/table_layout.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "cli/terminal/paint.h"

namespace acltape::cli {
namespace {

// The widest that a column may grow on a screen without a width.
constexpr size_t kWidest = 72;
// A column of text is not wrapped to less than this, or it could not be read.
constexpr size_t kNarrowest = 16;
// Text wider than kProse is sentences. In a table with many columns they get kNarrowestProse at
// least, or one row would fill the screen.
constexpr size_t kProse = 40;
constexpr size_t kNarrowestProse = 32;
// A table of up to so many columns has names and values, and no sentences beside other columns.
constexpr size_t kFewColumns = 2;
constexpr size_t kGap = 2;
// How far the cells below a row are indented.
constexpr size_t kIndent = 4;

struct LaidColumn {
  size_t index;  // in the table
  std::string name;
  size_t content;  // width of the widest cell
  size_t width;
  bool numeric;
};

// The columns of the table's lines, and those whose cells stand below their row.
struct Layout {
  std::vector<LaidColumn> columns;
  std::vector<LaidColumn> below;
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
    LaidColumn column{i, table.columns()[i], 0, 0, true};
    for (size_t row = 0; row < texts.size(); ++row) {
      const size_t width = TextWidth(texts[row][i]);
      column.content = std::max(column.content, fitted ? width : std::min(width, kWidest));
      if (std::holds_alternative<std::string>(table.rows()[row][i])) column.numeric = false;
    }
    column.width = std::max(TextWidth(column.name), column.content);
    if (!fitted || column.content > 0 || texts.empty()) columns.push_back(column);
  }
  return columns;
}

// The words of a name: they end before a space or after a '_'.
std::vector<std::string> WordsOf(const std::string& name) {
  std::vector<std::string> words{""};
  for (const char c : name) {
    if (!words.back().empty() && (c == ' ' || words.back().back() == '_')) words.emplace_back();
    words.back() += c;
  }
  return words;
}

std::string WithoutLeadingSpaces(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first);
}

// The lines of a column's name. Only between words does a line end.
std::vector<std::string> NameLines(const std::string& name, size_t width) {
  std::vector<std::string> lines;
  for (const std::string& word : WordsOf(name)) {
    if (!lines.empty() && TextWidth(lines.back() + word) <= width) {
      lines.back() += word;
    } else {
      lines.push_back(WithoutLeadingSpaces(word));
    }
  }
  return lines;
}

size_t LongestWord(const std::string& name) {
  size_t longest = 0;
  for (const std::string& word : WordsOf(name)) {
    longest = std::max(longest, TextWidth(WithoutLeadingSpaces(word)));
  }
  return longest;
}

size_t LineWidth(const std::vector<LaidColumn>& columns) {
  size_t used = columns.empty() ? 0 : (columns.size() - 1) * kGap;
  for (const LaidColumn& column : columns) used += column.width;
  return used;
}

// Takes from the widest columns until the line fits, one column of the screen at a time from
// whichever is the widest then. `least` gives the width that a column keeps.
template <typename Least>
void Shrink(std::vector<LaidColumn>& columns, size_t width, Least least) {
  for (size_t used = LineWidth(columns); used > width; --used) {
    LaidColumn* widest = nullptr;
    for (LaidColumn& column : columns) {
      if (column.width <= least(column)) continue;
      if (widest == nullptr || column.width >= widest->width) widest = &column;
    }
    if (widest == nullptr) return;
    --widest->width;
  }
}

// Narrows columns whose name is wider than their cells, those first that give the most, so that few
// names are wrapped.
void WrapNames(std::vector<LaidColumn>& columns, size_t width) {
  const auto spare = [](const LaidColumn& column) {
    const size_t words = LongestWord(column.name);
    // The cells of a column that is narrower than them are wrapped already.
    const size_t least = std::max(words, std::min(column.content, column.width));
    return column.width - std::min(column.width, least);
  };
  for (size_t used = LineWidth(columns); used > width;) {
    const auto most = std::max_element(
        columns.begin(), columns.end(),
        [&](const LaidColumn& a, const LaidColumn& b) { return spare(a) < spare(b); });
    if (most == columns.end() || spare(*most) == 0) return;
    const size_t taken = std::min(spare(*most), used - width);
    most->width -= taken;
    used -= taken;
  }
}

// Wraps sentences first, which are read line by line anyway, then names of columns, which costs the
// table a line, then all text.
bool Fits(std::vector<LaidColumn>& columns, size_t width) {
  for (LaidColumn& column : columns) {
    column.width = std::max(TextWidth(column.name), column.content);
  }
  const bool few = columns.size() <= kFewColumns;
  const auto wrapped = [few](const LaidColumn& column, size_t text) {
    const size_t least = column.content > kProse && !few ? kNarrowestProse : text;
    return column.numeric ? column.content : std::min(column.content, least);
  };
  Shrink(columns, width, [&](const LaidColumn& column) {
    return std::max(wrapped(column, few ? kNarrowest : kProse), TextWidth(column.name));
  });
  WrapNames(columns, width);
  Shrink(columns, width, [&](const LaidColumn& column) {
    return std::max(wrapped(column, kNarrowest), LongestWord(column.name));
  });
  return LineWidth(columns) <= width;
}

// The column that goes below the rows next: the one with the longest sentences, else the last. The
// first columns tell what a row is about.
size_t NextBelow(const std::vector<LaidColumn>& columns) {
  size_t next = 0;
  for (size_t i = 1; i < columns.size(); ++i) {
    const size_t longest = next == 0 ? kProse : columns[next].content;
    if (!columns[i].numeric && columns[i].content > longest) next = i;
  }
  return next > 0 ? next : columns.size() - 1;
}

Layout LayOut(std::vector<LaidColumn> columns, size_t width) {
  Layout layout;
  while (!Fits(columns, width) && columns.size() > 1) {
    const size_t next = NextBelow(columns);
    layout.below.push_back(columns[next]);
    columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(next));
  }
  // One column alone is as narrow as the screen.
  Shrink(columns, width, [](const LaidColumn&) { return size_t{1}; });
  std::sort(layout.below.begin(), layout.below.end(),
            [](const LaidColumn& a, const LaidColumn& b) { return a.index < b.index; });
  layout.columns = std::move(columns);
  return layout;
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
  // Blanks at the end of a cell go too, as all blanks at the end of a line do.
  if (!colour) line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

// The names of the columns over their rules. Names of several lines end on the same one.
std::string HeadText(const std::vector<LaidColumn>& columns, bool colour) {
  std::vector<std::vector<std::string>> names;
  size_t lines = 1;
  for (const LaidColumn& column : columns) {
    names.push_back(NameLines(column.name, column.width));
    lines = std::max(lines, names.back().size());
  }
  std::string text;
  std::vector<LineCell> line(columns.size());
  for (size_t k = 0; k < lines; ++k) {
    for (size_t i = 0; i < columns.size(); ++i) {
      const size_t above = lines - names[i].size();
      line[i] = {k < above ? "" : names[i][k - above], Paint::kHeading};
    }
    text += LineOf(columns, line, colour);
  }
  for (size_t i = 0; i < columns.size(); ++i) line[i] = {std::string(columns[i].width, '-')};
  return text + LineOf(columns, line, colour);
}

// "name: value" of the cells that stand below their row. Short ones share a line; sentences have
// lines of their own. Cells without text are left out.
class BelowText {
 public:
  explicit BelowText(const Screen& screen) : screen_(screen) {}

  void Add(const std::string& name, const std::string& value, Paint paint) {
    if (value.empty()) return;
    const size_t room = screen_.width > kIndent ? screen_.width - kIndent : 1;
    const size_t named = TextWidth(name) + 2;
    const size_t needed = named + TextWidth(value);
    if (used_ > 0 && used_ + kGap + needed > room) EndLine();
    text_ += std::string(used_ > 0 ? kGap : kIndent, ' ');
    text_ += screen_.colour ? Painted(name + ":", Paint::kHeading) : name + ":";
    if (needed <= room) {
      text_ += ' ' + Shown(value, paint);
      used_ += (used_ > 0 ? kGap : 0) + needed;
      return;
    }
    // Text under its name where much room is left beside that; else on lines of its own.
    const bool beside = room >= named + kNarrowestProse;
    const size_t start = beside ? named : kGap;
    bool first = beside;
    for (const std::string& line : WrapText(value, room > start ? room - start : 1)) {
      text_ += first ? " " : '\n' + std::string(kIndent + start, ' ');
      text_ += Shown(line, paint);
      first = false;
    }
    used_ = 1;
    EndLine();
  }

  std::string Take() {
    EndLine();
    return std::move(text_);
  }

 private:
  std::string Shown(const std::string& text, Paint paint) const {
    return screen_.colour ? Painted(text, paint) : text;
  }
  void EndLine() {
    if (used_ > 0) text_ += '\n';
    used_ = 0;
  }

  const Screen& screen_;
  std::string text_;
  size_t used_ = 0;  // characters of the line that has begun, without the indent
};

}  // namespace

std::string AlignedText(const Table& table, const Screen& screen) {
  const bool fitted = screen.width > 0;
  const CellTexts texts = TextsOf(table);
  std::vector<LaidColumn> all = ColumnsOf(table, texts, fitted);
  const Layout layout = fitted ? LayOut(std::move(all), screen.width) : Layout{std::move(all), {}};
  const std::vector<LaidColumn>& columns = layout.columns;
  std::string text = HeadText(columns, screen.colour);
  std::vector<LineCell> line(columns.size());
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
          line[i].paint = PaintOf(columns[i].name, row.front(), row[columns[i].index]);
        }
      }
      text += LineOf(columns, line, screen.colour);
    }
    BelowText below(screen);
    for (const LaidColumn& column : layout.below) {
      const std::string& cell = row[column.index];
      below.Add(column.name, cell, PaintOf(column.name, row.front(), cell));
    }
    text += below.Take();
  }
  return text;
}

}  // namespace acltape::cli
