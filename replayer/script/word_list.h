// Lists of words that are separated by commas, as options accept them.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace acltape::replayer::script {

// Splits a text at its commas: "0:1,812" has two words. Empty words count.
inline std::vector<std::string> WordsOf(const std::string& text) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// Parses a whole number of at least 0. Returns nothing if the word is not such a number.
inline std::optional<int64_t> NumberOf(const std::string& word) {
  int64_t number = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, number);
  if (error != std::errc() || stop != end || number < 0) return std::nullopt;
  return number;
}

}  // namespace acltape::replayer::script
