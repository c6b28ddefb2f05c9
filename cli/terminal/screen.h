// Describes the place that stdout leads to: how wide it is, and if it shows colours.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace acltape::cli {

struct Screen {
  bool terminal = false;
  size_t width = 0;   // in characters; 0: lines may be of any length
  size_t height = 0;  // in lines; 0: unknown
  bool colour = false;
};

enum class ColourWish { kAuto, kAlways, kNever };

// Asks the terminal that a file descriptor leads to. COLUMNS and LINES in the environment go before
// what the terminal says, NO_COLOR and TERM=dumb before the wish "auto".
Screen LookAt(int descriptor, ColourWish colour);

// The screen that tables are laid out for. It is a file until the frame of the commands says
// otherwise, so that tests and programs get the same lines everywhere.
const Screen& OutputScreen();
void SetOutputScreen(const Screen& screen);

// Columns of a terminal that a text in UTF-8 takes: wide characters take two, those that are put
// over others none. Bytes that are not UTF-8 take one each.
size_t TextWidth(const std::string& text);

// Cuts a text into lines of at most `width` columns: at spaces, else after a separator such as
// '/' or ':', else anywhere between two characters. Gives one empty line for the empty text.
std::vector<std::string> WrapText(const std::string& text, size_t width);

}  // namespace acltape::cli
