#include "cli/terminal/similar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace acltape::cli {
namespace {

// Case and the choice between '-' and '_' are not counted as mistakes.
std::string Folded(std::string_view word) {
  std::string folded(word);
  for (char& letter : folded) {
    letter =
        letter == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return folded;
}

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: a swap looks two rows back.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string MostSimilar(std::string_view word, const std::vector<std::string>& words) {
  const std::string folded = Folded(word);
  const size_t allowed = std::max<size_t>(1, folded.size() / 3);
  std::string best;
  size_t least = allowed + 1;
  std::vector<std::string> longer;
  for (const std::string& other : words) {
    const std::string known = Folded(other);
    const size_t distance = EditDistance(folded, known);
    if (distance < least) {
      least = distance;
      best = other;
    }
    if (folded.size() >= 3 && known.starts_with(folded)) longer.push_back(other);
  }
  if (least > 1 && longer.size() == 1) return longer.front();
  return best;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& words) {
  const std::string meant = MostSimilar(word, words);
  return meant.empty() ? "" : fmt::format("; did you mean `{}`?", meant);
}

}  // namespace acltape::cli
