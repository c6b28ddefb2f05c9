// JSON arrays of numbers as SQLite's json_each reads them, written and parsed without a JSON
// library because every call row holds one.
//
// Reals are written with the fewest digits that read back equal. JSON has no infinities and no NaN:
// they are written 9e999, -9e999 and null, which SQLite reads as Inf, -Inf and NULL.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace acltape::storage {

void AppendInteger(std::string& text, int64_t value);
void AppendReal(std::string& text, double value);
// "[1,2,3]"
void AppendIntegers(std::string& text, const int64_t* values, size_t count);
std::string IntegersText(const std::vector<int64_t>& values);
std::string RealsText(const std::vector<double>& values);
// `text` in double quotes with JSON escapes.
void AppendQuoted(std::string& text, std::string_view value);

// All numbers in the text in order, brackets of nested arrays ignored. Parsing ends at the first
// character that is not part of an array of numbers.
std::vector<int64_t> ParseIntegers(std::string_view text);
// The same in place of the content of `values`. Returns false when parsing ended before the text
// did, or when a number does not fit.
bool ParseIntegers(std::string_view text, std::vector<int64_t>& values);
bool ParseReals(std::string_view text, std::vector<double>& values);
std::vector<double> ParseReals(std::string_view text);

}  // namespace acltape::storage
