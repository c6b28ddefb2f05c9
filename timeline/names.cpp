#include "timeline/names.h"

#include <fmt/format.h>

#include <vector>

#include "storage/json_text.h"

namespace acltape::timeline {
namespace {

constexpr size_t kKeptNames = 20000;
constexpr size_t kTensorsShown = 6;

// Texts of tensors, of which the first few are shown.
struct ShownTensors {
  std::string text;
  size_t count = 0;

  void Add(const std::string& tensor) {
    if (count++ < kTensorsShown) text += (text.empty() ? "" : ", ") + tensor;
  }
  std::string Take() const {
    return count <= kTensorsShown ? text
                                  : fmt::format("{} and {} more", text, count - kTensorsShown);
  }
};

}  // namespace

CallForms::CallForms(storage::Database& database)
    : op_(database,
          "SELECT o.dialect, o.name, o.overload FROM signature s JOIN op o USING (op_id) "
          "WHERE s.signature_id = ?"),
      arguments_(database,
                 "SELECT kind, direction, layout_id, list FROM signature_argument "
                 "WHERE signature_id = ? AND kind IN ('tensor', 'tensor_list') ORDER BY position"),
      layout_(database, "SELECT dtype, shape FROM layout WHERE layout_id = ?") {}

std::string CallForms::TensorText(int64_t layout_id) {
  layout_.Reset();
  layout_.Bind(1, layout_id);
  if (layout_id == 0 || !layout_.Next()) return "none";
  return fmt::format("{}{}", layout_.Text(0), layout_.Text(1));
}

const CallForm& CallForms::Of(int64_t signature_id) {
  if (const auto found = kept_.find(signature_id); found != kept_.end()) return found->second;
  if (kept_.size() >= kKeptNames) kept_.clear();
  CallForm& form = kept_[signature_id];
  op_.Reset();
  op_.Bind(1, signature_id);
  form.name = form.full_name = "unknown";
  if (op_.Next()) {
    form.dialect = op_.Text(0);
    form.name = op_.Text(1);
    form.full_name = form.name;
    if (!op_.Text(2).empty()) form.full_name += "." + std::string(op_.Text(2));
  }
  ShownTensors read, written;
  arguments_.Reset();
  arguments_.Bind(1, signature_id);
  while (arguments_.Next()) {
    const auto add = [&](const std::string& tensor) {
      if (arguments_.Text(1) != "out") read.Add(tensor);
      if (arguments_.Text(1) != "in") written.Add(tensor);
    };
    if (arguments_.Text(0) == "tensor") {
      add(TensorText(arguments_.Integer(2)));
      continue;
    }
    const std::vector<int64_t> pairs = storage::ParseIntegers(arguments_.Text(3));
    for (size_t index = 0; index + 1 < pairs.size(); index += 2) add(TensorText(pairs[index + 1]));
  }
  form.inputs = read.Take();
  form.outputs = written.Take();
  return form;
}

ModulePaths::ModulePaths(storage::Database& database)
    : scope_(database,
             "WITH RECURSIVE up(scope_id, parent_id, kind, path) AS ("
             "  SELECT scope_id, parent_id, kind, path FROM scope WHERE scope_id = ?"
             "  UNION SELECT s.scope_id, s.parent_id, s.kind, s.path"
             "  FROM up JOIN scope s ON s.scope_id = up.parent_id)"
             "SELECT path FROM up WHERE kind = 'module' LIMIT 1") {}

const std::string& ModulePaths::Of(int64_t scope_id) {
  static const std::string kNone;
  if (scope_id == 0) return kNone;
  if (const auto found = kept_.find(scope_id); found != kept_.end()) return found->second;
  if (kept_.size() >= kKeptNames) kept_.clear();
  scope_.Reset();
  scope_.Bind(1, scope_id);
  return kept_[scope_id] = scope_.Next() ? std::string(scope_.Text(0)) : std::string();
}

bool HasTable(storage::Database& database, std::string_view name) {
  storage::Statement find(database, "SELECT 1 FROM sqlite_master WHERE name = ?");
  find.Bind(1, name);
  return find.Next();
}

bool HasColumn(storage::Database& database, std::string_view table, std::string_view column) {
  storage::Statement find(database, "SELECT 1 FROM pragma_table_info(?) WHERE name = ?");
  find.Bind(1, table);
  find.Bind(2, column);
  return find.Next();
}

}  // namespace acltape::timeline
