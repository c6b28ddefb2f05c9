#include "recorder/collector/op_schema.h"

#include <fmt/format.h>

#include "meaning/torch_operators.h"

namespace acltape::collector {
namespace {

using storage::Direction;

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// End of the parenthesis that opens at `open`; npos when it never closes.
size_t Closing(std::string_view text, size_t open) {
  int depth = 0;
  char quote = 0;
  for (size_t i = open; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[') {
      ++depth;
    } else if (c == ')' || c == ']') {
      if (--depth == 0) return i;
    }
  }
  return std::string_view::npos;
}

// Parts between commas that are in no bracket and no quotes.
std::vector<std::string_view> Split(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  char quote = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[') {
      ++depth;
    } else if (c == ')' || c == ']') {
      --depth;
    } else if (c == ',' && depth == 0) {
      parts.push_back(Trim(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  const std::string_view last = Trim(text.substr(begin));
  if (!last.empty()) parts.push_back(last);
  return parts;
}

// True if the part has "(a!)" after its type. It may also have "(a -> *)"; only the exclamation
// mark says that it is written.
bool IsWritten(std::string_view part) {
  const size_t open = part.find('(');
  if (open == std::string_view::npos) return false;
  const size_t close = part.find(')', open);
  return part.substr(open, close - open).find('!') != std::string_view::npos;
}

// "(out!)" and "(inout!)" say the direction in so many words (schemas of the ACL interface).
bool IsSaid(std::string_view part, std::string_view direction) {
  const size_t open = part.find('(');
  return open != std::string_view::npos && part.substr(open + 1).starts_with(direction) &&
         part.substr(open + 1 + direction.size()).starts_with("!)");
}

// "Scalar alpha=1" -> "alpha"; empty when there is a type only.
std::string_view ArgumentName(std::string_view part) {
  int depth = 0;
  size_t space = std::string_view::npos;
  size_t end = part.size();
  for (size_t i = 0; i < part.size(); ++i) {
    const char c = part[i];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (depth != 0) continue;
    if (c == '=') {
      end = i;
      break;
    }
    if (c == ' ') space = i;
  }
  return space == std::string_view::npos ? std::string_view()
                                         : Trim(part.substr(space + 1, end - space - 1));
}

Direction DirectionOf(std::string_view op, std::string_view part, std::string_view name,
                      bool keyword_only, bool first) {
  if (meaning::FindConditionalUse(op, name, true) != nullptr) return Direction::kInOut;
  const meaning::TorchOperator facts = meaning::TorchOperatorOf(op, "");
  if (!IsWritten(part)) return Direction::kIn;
  if (!facts.writes_only.empty() && name != facts.writes_only) return Direction::kIn;
  if (IsSaid(part, "out")) return Direction::kOut;
  const bool overwritten = keyword_only || (first && facts.overwrites);
  return overwritten ? Direction::kOut : Direction::kInOut;
}

}  // namespace

OpSchema ParseOpSchema(std::string_view op_name, std::string_view schema) {
  OpSchema result;
  const size_t open = schema.find('(');
  if (open == std::string_view::npos) return result;
  const size_t close = Closing(schema, open);
  if (close == std::string_view::npos) return result;

  int position = 0;
  bool keyword_only = false;
  for (const std::string_view part : Split(schema.substr(open + 1, close - open - 1))) {
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    if (part == "...") continue;
    const std::string_view name = ArgumentName(part);
    result.values.push_back({position, std::string(name),
                             DirectionOf(op_name, part, name, keyword_only, position == 0)});
    ++position;
  }

  const size_t arrow = schema.find("->", close);
  if (arrow == std::string_view::npos) return result;
  std::string_view returns = Trim(schema.substr(arrow + 2));
  if (!returns.empty() && returns.front() == '(' && Closing(returns, 0) == returns.size() - 1) {
    returns = returns.substr(1, returns.size() - 2);
  }
  const std::vector<std::string_view> parts = Split(returns);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (IsWritten(parts[i])) continue;
    result.values.push_back({position + static_cast<int>(i),
                             parts.size() == 1 ? "out" : fmt::format("out{}", i), Direction::kOut});
  }
  return result;
}

}  // namespace acltape::collector
