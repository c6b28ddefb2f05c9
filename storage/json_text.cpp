#include "storage/json_text.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "storage/hex_digits.h"

namespace acltape::storage {

void AppendInteger(std::string& text, int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  text.append(digits, end);
}

void AppendReal(std::string& text, double value) {
  if (std::isnan(value)) {
    text += "null";
    return;
  }
  if (std::isinf(value)) {
    text += value > 0 ? "9e999" : "-9e999";
    return;
  }
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  const std::string_view written(digits, end - digits);
  text += written;
  // "1" would read back as an integer in SQL.
  if (written.find_first_of(".e") == std::string_view::npos) text += ".0";
}

void AppendIntegers(std::string& text, const int64_t* values, size_t count) {
  text += '[';
  for (size_t i = 0; i < count; ++i) {
    if (i != 0) text += ',';
    AppendInteger(text, values[i]);
  }
  text += ']';
}

std::string IntegersText(const std::vector<int64_t>& values) {
  std::string text;
  AppendIntegers(text, values.data(), values.size());
  return text;
}

std::string RealsText(const std::vector<double>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != 0) text += ',';
    AppendReal(text, values[i]);
  }
  text += ']';
  return text;
}

void AppendQuoted(std::string& text, std::string_view value) {
  text += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (byte < 0x20) {
      text += "\\u00";
      text += kHexDigits[byte >> 4];
      text += kHexDigits[byte & 15];
    } else {
      text += c;
    }
  }
  text += '"';
}

std::vector<int64_t> ParseIntegers(std::string_view text) {
  std::vector<int64_t> values;
  ParseIntegers(text, values);
  return values;
}

bool ParseIntegers(std::string_view text, std::vector<int64_t>& values) {
  values.clear();
  const char* position = text.data();
  const char* end = position + text.size();
  while (position < end) {
    if (*position == '[' || *position == ']' || *position == ',' || *position == ' ') {
      ++position;
      continue;
    }
    int64_t value = 0;
    const auto [next, problem] = std::from_chars(position, end, value);
    if (problem != std::errc()) return false;
    values.push_back(value);
    position = next;
  }
  return true;
}

std::vector<double> ParseReals(std::string_view text) {
  std::vector<double> values;
  ParseReals(text, values);
  return values;
}

bool ParseReals(std::string_view text, std::vector<double>& values) {
  values.clear();
  const char* position = text.data();
  const char* end = position + text.size();
  while (position < end) {
    if (*position == '[' || *position == ']' || *position == ',' || *position == ' ') {
      ++position;
      continue;
    }
    if (text.substr(position - text.data()).starts_with("null")) {
      values.push_back(std::numeric_limits<double>::quiet_NaN());
      position += 4;
      continue;
    }
    double value = 0;
    const auto [next, problem] = std::from_chars(position, end, value);
    if (problem == std::errc::result_out_of_range) {
      value = *position == '-' ? -std::numeric_limits<double>::infinity()
                               : std::numeric_limits<double>::infinity();
    } else if (problem != std::errc()) {
      return false;
    }
    values.push_back(value);
    position = next;
  }
  return true;
}

}  // namespace acltape::storage
