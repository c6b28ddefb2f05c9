#include "cli/terminal/screen.h"

#include <locale.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace acltape::cli {
namespace {

Screen output_screen;

bool GivenInEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

// A positive number of the environment, or 0.
size_t NumberInEnvironment(const char* name) {
  const char* value = std::getenv(name);
  size_t number = 0;
  if (value == nullptr) return 0;
  const char* end = value + std::strlen(value);
  const auto [rest, error] = std::from_chars(value, end, number);
  return error == std::errc() && rest == end ? number : 0;
}

// The widths of characters are those of the C library's UTF-8, whatever the user's locale is,
// since all our texts are UTF-8.
class Utf8Locale {
 public:
  Utf8Locale() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (locale_ != nullptr) before_ = uselocale(locale_);
  }
  ~Utf8Locale() {
    if (locale_ == nullptr) return;
    uselocale(before_);
    freelocale(locale_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  locale_t locale_;
  locale_t before_ = nullptr;
};

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

struct Character {
  size_t bytes;
  size_t width;
};

// The character that a text begins with. Needs a Utf8Locale.
Character FirstCharacter(std::string_view text) {
  if ((text[0] & 0x80) == 0) return {1, 1};
  mbstate_t state{};
  wchar_t wide = 0;
  const size_t bytes = mbrtowc(&wide, text.data(), text.size(), &state);
  if (bytes == 0 || bytes > text.size()) return {1, 1};
  const int width = wcwidth(wide);
  return {bytes, width < 0 ? 1 : static_cast<size_t>(width)};
}

// Bytes of the longest beginning of `text` that takes at most `width` columns, at least one
// character.
size_t FittingBytes(std::string_view text, size_t width) {
  size_t used = 0, bytes = 0;
  while (bytes < text.size()) {
    const Character next = FirstCharacter(text.substr(bytes));
    if (bytes > 0 && used + next.width > width) break;
    used += next.width;
    bytes += next.bytes;
  }
  return bytes;
}

}  // namespace

Screen LookAt(int descriptor, ColourWish colour) {
  Screen screen;
  screen.terminal = isatty(descriptor) == 1;
  if (screen.terminal) {
    winsize size{};
    if (ioctl(descriptor, TIOCGWINSZ, &size) == 0) {
      screen.width = size.ws_col;
      screen.height = size.ws_row;
    }
    if (screen.width == 0) screen.width = 80;  // a terminal that does not know its size
    if (const size_t columns = NumberInEnvironment("COLUMNS")) screen.width = columns;
    if (const size_t lines = NumberInEnvironment("LINES")) screen.height = lines;
  }
  const char* kind = std::getenv("TERM");
  const bool dumb = kind == nullptr || std::strcmp(kind, "dumb") == 0;
  screen.colour =
      colour == ColourWish::kAlways ||
      (colour == ColourWish::kAuto && screen.terminal && !dumb && !GivenInEnvironment("NO_COLOR"));
  return screen;
}

const Screen& OutputScreen() { return output_screen; }

void SetOutputScreen(const Screen& screen) { output_screen = screen; }

size_t TextWidth(const std::string& text) {
  if (IsAscii(text)) return text.size();
  const Utf8Locale locale;
  size_t width = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const Character next = FirstCharacter(rest);
    width += next.width;
    rest.remove_prefix(next.bytes);
  }
  return width;
}

std::vector<std::string> WrapText(const std::string& text, size_t width) {
  const Utf8Locale locale;
  std::vector<std::string> lines;
  std::string_view rest = text;
  for (;;) {
    const size_t fits = FittingBytes(rest, width);
    if (fits == rest.size()) break;
    // A line ends before a space, or after a separator in its second half.
    size_t end = rest.substr(0, fits + 1).rfind(' ');
    if (end == std::string_view::npos || end == 0) {
      const size_t separator = rest.substr(0, fits).find_last_of("/:,;._-");
      end = separator == std::string_view::npos || separator < fits / 2 ? fits : separator + 1;
    }
    lines.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end);
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  }
  if (!rest.empty() || lines.empty()) lines.emplace_back(rest);
  return lines;
}

}  // namespace acltape::cli
