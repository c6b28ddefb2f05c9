// Colours of tables for people: which cells get one, as a table of rows.
#pragma once

#include <string>
#include <string_view>

namespace acltape::cli {

enum class Paint { kNone, kError, kWarning, kNote, kFine, kHeading };

// The colour of a text in a column. In a table of quantities and values, `quantity` is what the row
// is about and takes the place of the column's name.
Paint PaintOf(std::string_view column, std::string_view quantity, std::string_view text);

// The text between the codes of a terminal; the text itself for Paint::kNone.
std::string Painted(const std::string& text, Paint paint);

}  // namespace acltape::cli
