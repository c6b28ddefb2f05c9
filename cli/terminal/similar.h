// Finds the word that a mistyped one was probably meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace acltape::cli {

// Number of letters to insert, delete, replace or swap with their neighbour that makes one word of
// the other (optimal string alignment).
size_t EditDistance(std::string_view a, std::string_view b);

// The most similar of the words, or the only one that begins with `word`. Empty when none is near:
// at most a third of the letters of `word` may be wrong, and always one.
std::string MostSimilar(std::string_view word, const std::vector<std::string>& words);

// "; did you mean `x`?" of the most similar word, or an empty text.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& words);

}  // namespace acltape::cli
