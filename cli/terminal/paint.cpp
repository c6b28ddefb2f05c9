#include "cli/terminal/paint.h"

namespace acltape::cli {
namespace {

struct PaintRule {
  std::string_view column;  // or the quantity of the row
  std::string_view begin;   // how the text begins
  Paint paint;
};

constexpr PaintRule kPaintRules[] = {
    {"severity", "error", Paint::kError},
    {"severity", "data_loss", Paint::kError},
    {"severity", "warning", Paint::kWarning},
    {"severity", "notice", Paint::kWarning},
    {"severity", "note", Paint::kNote},
    {"severity", "info", Paint::kNote},
    {"state", "missing", Paint::kError},
    {"state", "partial", Paint::kWarning},
    {"state", "ok", Paint::kFine},
    {"state", "complete", Paint::kFine},
    {"verdict", "different", Paint::kError},
    {"verdict", "equal", Paint::kFine},
    {"verdict", "within", Paint::kFine},
    {"verdict", "no meaningful divergence", Paint::kFine},
    {"verdict", "nothing", Paint::kWarning},
    {"verdict", "not known", Paint::kWarning},
    {"verdict", "not comparable", Paint::kWarning},
    {"verdict", "not_comparable", Paint::kWarning},
    {"verdict", "flaky", Paint::kWarning},
    {"verdict", "cannot judge", Paint::kWarning},
    {"verdict", "out of time", Paint::kWarning},
    {"verdict", "reproduced", Paint::kError},
    {"verdict", "slower", Paint::kError},
    {"verdict", "not slower", Paint::kFine},
    {"difference", "", Paint::kError},
    {"first divergence", "", Paint::kError},
    {"change", "", Paint::kWarning},
};

}  // namespace

Paint PaintOf(std::string_view column, std::string_view quantity, std::string_view text) {
  if (text.empty()) return Paint::kNone;
  const bool is_quantity = column == "value" && !quantity.empty();
  const std::string_view about = is_quantity ? quantity : column;
  for (const PaintRule& rule : kPaintRules) {
    if (about == rule.column && text.starts_with(rule.begin)) return rule.paint;
  }
  return Paint::kNone;
}

std::string Painted(const std::string& text, Paint paint) {
  constexpr std::string_view kCodes[] = {"", "31", "33", "36", "32", "1"};
  if (paint == Paint::kNone || text.empty()) return text;
  return "\x1b[" + std::string(kCodes[static_cast<size_t>(paint)]) + "m" + text + "\x1b[0m";
}

}  // namespace acltape::cli
