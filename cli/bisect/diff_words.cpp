#include "cli/bisect/diff_words.h"

#include <fmt/format.h>

#include "analyzer/program/acl_leaves.h"

namespace acltape::cli {

using analyzer::diff::DiffRow;

std::string CallsText(const std::vector<int64_t>& calls) {
  std::string text;
  for (const int64_t call : calls) text += (text.empty() ? "" : " ") + std::to_string(call);
  return text;
}

// "call 812 aten::mm of A, call 815 of B".
std::string Place(const DiffRow& row) {
  const auto side = [](const std::vector<int64_t>& calls, const std::string& op, const char* name) {
    return fmt::format("{} {} {} of {}", calls.size() == 1 ? "call" : "calls", CallsText(calls), op,
                       name);
  };
  if (row.a_calls.empty()) return side(row.b_calls, row.b_op, "B");
  if (row.b_calls.empty()) return side(row.a_calls, row.a_op, "A");
  if (row.a_op == row.b_op) {
    return side(row.a_calls, row.a_op, "A") + ", " + side(row.b_calls, "", "B");
  }
  return side(row.a_calls, row.a_op, "A") + ", " + side(row.b_calls, row.b_op, "B");
}

std::string LineOf(const std::vector<int64_t>& calls, const analyzer::SourceLines& lines) {
  return calls.empty() ? "" : lines.Of(analyzer::RecordedCall(calls.back()));
}

std::string LineOf(const DiffRow& row, const analyzer::SourceLines& of_a,
                   const analyzer::SourceLines& of_b) {
  const std::string line = LineOf(row.a_calls, of_a);
  return line.empty() ? LineOf(row.b_calls, of_b) : line;
}

std::string WithOutput(const DiffRow& row) {
  return row.output.empty() ? row.reason : row.output + ": " + row.reason;
}

}  // namespace acltape::cli
