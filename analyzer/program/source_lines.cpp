#include "analyzer/program/source_lines.h"

#include <fmt/format.h>

#include "analyzer/program/backward_line.h"
#include "storage/cell.h"
#include "storage/checked_row.h"
#include "storage/columns.h"
#include "storage/database.h"
#include "storage/nesting.h"

namespace acltape::analyzer {
namespace {

// The columns stack_id, file, line and function. Traces of schema version 3 keep one frame for a
// stack and have no view of it.
constexpr char kLocations[] =
    "SELECT stack_id, file, line, function FROM stack_location WHERE file IS NOT NULL";
constexpr char kFormerLocations[] =
    "SELECT stack_id, json_extract(frames, '$[0].file'), json_extract(frames, '$[0].line'), "
    "json_extract(frames, '$[0].function') FROM stack "
    "WHERE json_extract(frames, '$[0].file') IS NOT NULL";

// A virtual environment often lies in the program's folder, so that the package comes first.
std::string Shortened(const std::string& file, const std::string& folder) {
  constexpr std::string_view kPackages = "-packages/";
  const size_t packages = file.rfind(kPackages);
  if (packages != std::string::npos) return file.substr(packages + kPackages.size());
  return folder.size() > 1 && file.starts_with(folder) ? file.substr(folder.size()) : file;
}

}  // namespace

SourceLines::SourceLines(const storage::Reader& trace)
    : trace_(trace), folder_(trace.Meta("cwd") + "/") {
  const bool views = storage::HasColumns(trace, "stack_location", "stack_id,file,line,function");
  storage::Statement rows(trace.database(), views ? kLocations : kFormerLocations);
  const storage::CheckedRow row(rows, trace.path(), "stack");
  while (rows.Next()) {
    const storage::Cell cells[] = {CellOf(rows, 1), CellOf(rows, 2), CellOf(rows, 3)};
    const auto* file = std::get_if<std::string>(&cells[0]);
    const auto* line = std::get_if<int64_t>(&cells[1]);
    const auto* function = std::get_if<std::string>(&cells[2]);
    if (file == nullptr || line == nullptr || function == nullptr) continue;
    lines_.emplace(row.Id("stack_id"), SourceLine{*file, *line, *function});
  }
  has_forward_calls_ = storage::HasColumns(trace, "call_extra", "forward_call");
}

const SourceLine* SourceLines::Find(int64_t stack_id) const {
  const auto found = lines_.find(stack_id);
  return found == lines_.end() ? nullptr : &found->second;
}

std::string SourceLines::OfStack(int64_t stack_id) const {
  const SourceLine* found = Find(stack_id);
  if (found == nullptr) return "";
  const SourceLine& line = *found;
  const std::string file = Shortened(line.file, folder_);
  if (line.line == 0) return fmt::format("{} ({})", file, line.function);  // no debug information
  return fmt::format("{}:{} ({})", file, line.line, line.function);
}

int64_t SourceLines::OwnStack(int64_t call_id) const {
  storage::Statement found(trace_.database(),
                           "SELECT stack_id FROM call WHERE call_id IN (SELECT ?1 UNION ALL SELECT "
                           "call_id FROM call_row WHERE parent_id = ?1) AND stack_id IS NOT NULL "
                           "ORDER BY call_id LIMIT 1");
  found.Bind(1, call_id);
  return found.Next() ? found.Integer(0) : 0;
}

// Finds the nearest node of autograd around the call, and returns the leaf whose gradient it
// computes; 0: none.
int64_t SourceLines::ForwardLeaf(int64_t call_id) const {
  if (!has_forward_calls_) return 0;
  storage::Statement up(
      trace_.database(),
      "WITH RECURSIVE up(call_id, depth) AS (SELECT parent_id, 0 FROM call_row WHERE "
      "call_id = ?1 UNION ALL SELECT c.parent_id, depth + 1 FROM up JOIN call_row c "
      "USING (call_id) WHERE depth < ?2) SELECT x.forward_call FROM up JOIN call_extra x USING "
      "(call_id) WHERE x.forward_call IS NOT NULL ORDER BY depth LIMIT 1");
  up.Bind(1, call_id);
  up.Bind(2, storage::kMostAround);
  return up.Next() ? up.Integer(0) : 0;
}

std::string SourceLines::Of(int64_t call_id) const {
  if (!any()) return "";
  if (const int64_t forward = ForwardLeaf(call_id); forward != 0) {
    const std::string line = OfStack(OwnStack(forward));
    if (!line.empty()) return std::string(kBackwardOf) + line;
  }
  return OfStack(OwnStack(call_id));
}

void SourceLines::Visit(
    const std::function<void(int64_t call_id, const SourceLine& line)>& visit) const {
  if (!any()) return;
  if (!storage::HasColumns(trace_, "call_location", "call_id,file,line,function,via")) {
    storage::Statement rows(trace_.database(),
                            "SELECT call_id, stack_id FROM call WHERE stack_id IS NOT NULL");
    const storage::CheckedRow row(rows, trace_.path(), "call_row");
    while (rows.Next()) {
      const auto found = lines_.find(row.Integer(1, "stack_id", 0, storage::kMostId));
      if (found != lines_.end()) visit(row.Id("call_id"), found->second);
    }
    return;
  }
  storage::Statement rows(trace_.database(),
                          "SELECT call_id, file, line, function FROM call_location");
  const storage::CheckedRow row(rows, trace_.path(), "stack");
  while (rows.Next()) {
    visit(row.Id("call_id"),
          {std::string(row.Text(1, "file")), row.Integer(2, "line", 0, storage::kMostId),
           std::string(row.Text(3, "function"))});
  }
}

}  // namespace acltape::analyzer
