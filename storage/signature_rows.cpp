#include "storage/signature_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "meaning/recorded_values.h"
#include "storage/checked_row.h"
#include "storage/json_text.h"
#include "storage/trace.h"

namespace acltape::storage {
namespace {

struct HandleType {
  std::string_view type;  // the name in C
  HandleKind kind;
};
constexpr HandleType kHandleTypes[] = {{"aclrtStream", HandleKind::kStream},
                                       {"aclrtEvent", HandleKind::kEvent},
                                       {"aclmdlRI", HandleKind::kModel},
                                       {"HcclComm", HandleKind::kCommunicator}};

// The function that adds a conditional task to a graph. Its argument is a list that ends with the
// sub-graphs.
constexpr std::string_view kConditionalTask = "aclmdlRIAddCondTask";

// The handles of each interface function of the trace, by its id. Others have none.
std::unordered_map<int64_t, std::vector<std::optional<HandleKind>>> HandlesByOp(
    const Reader& from, int64_t& conditional_task) {
  std::unordered_map<int64_t, std::vector<std::optional<HandleKind>>> handles;
  Statement rows(from.database(),
                 "SELECT op_id, dialect, name, schema FROM op "
                 "WHERE dialect IN ('aclrt', 'aclmdlRI', 'hccl')");
  const CheckedRow row(rows, from.path(), "op");
  while (rows.Next()) {
    const int64_t op = row.Id("op_id");
    handles[op] = HandlesOf(std::string(row.TextOrNull(3, "schema")));
    if (row.TextOrNull(2, "name") == kConditionalTask) conditional_task = op;
  }
  return handles;
}

// The arguments of all signatures of a trace, with the ids of the new one.
class Arguments {
 public:
  Arguments(const Reader& from, const SignatureChanges& changes)
      : from_(from), changes_(changes), handles_(HandlesByOp(from, conditional_task_)) {
    Statement rows(from.database(), "SELECT signature_id, op_id FROM signature");
    const CheckedRow row(rows, from.path(), "signature");
    while (rows.Next()) ops_[row.Id("signature_id")] = row.Integer(1, "op_id", 0, kMostId);
  }

  // Visits each row: the signature, and a value for each further column.
  template <typename Visit>
  void ForEach(const Visit& visit) {
    Statement rows(
        from_.database(),
        "SELECT signature_id, position, name, direction, kind, layout_id, slot, integer, "
        "real, text, list FROM signature_argument ORDER BY signature_id, position");
    const CheckedRow row(rows, from_.path(), "signature_argument");
    while (rows.Next()) {
      const int64_t signature = row.Id("signature_id");
      std::optional<int64_t> layout;
      if (!row.IsNull(5)) layout = NewLayout(row.Integer(5, "layout_id", 0, kMostLayoutId));
      const int64_t position = row.Integer(1, "position", 0, kMostId);
      std::optional<int64_t> integer;
      if (!row.IsNull(7)) {
        integer = NewInteger(signature, position, row.TextOrNull(4, "kind"),
                             row.Integer(7, "integer", INT64_MIN, INT64_MAX));
      }
      visit(rows, signature, layout, integer, NewList(signature, row));
    }
  }

 private:
  int64_t NewLayout(int64_t layout) const {
    const auto found = changes_.layouts.find(layout);
    return found == changes_.layouts.end() ? 0 : found->second;
  }

  int64_t OpOf(int64_t signature) const {
    const auto op = ops_.find(signature);
    return op == ops_.end() ? 0 : op->second;
  }

  int64_t NewInteger(int64_t signature, int64_t position, std::string_view kind,
                     int64_t integer) const {
    if (kind != ValueKindName(ValueKind::kInt)) return integer;
    const auto of_op = handles_.find(OpOf(signature));
    if (of_op == handles_.end() || position >= static_cast<int64_t>(of_op->second.size())) {
      return integer;
    }
    const std::optional<HandleKind> handle = of_op->second[position];
    return handle ? changes_.handle(*handle, integer) : integer;
  }

  // The list of an argument; nothing where it stays as it is.
  std::optional<std::string> NewList(int64_t signature, const CheckedRow& row) const {
    const std::string_view kind = row.TextOrNull(4, "kind");
    const bool tensors = kind == ValueKindName(ValueKind::kTensorList);
    const bool graphs =
        kind == ValueKindName(ValueKind::kIntList) && OpOf(signature) == conditional_task_;
    if (row.IsNull(10) || (!tensors && !graphs)) return std::nullopt;
    std::vector<int64_t> values;
    if (!ParseIntegers(row.Text(10, "list"), values)) {
      row.RefuseValue(10, "list", "where a list of integers is expected");
    }
    if (tensors) return PairsText(values);
    for (size_t i = meaning::kFirstSubGraph; i < values.size(); ++i) {
      values[i] = changes_.handle(HandleKind::kModel, values[i]);
    }
    return IntegersText(values);
  }

  // Slots, each with its new layout.
  std::string PairsText(const std::vector<int64_t>& values) const {
    std::string text = "[";
    for (size_t i = 0; i + 1 < values.size(); i += 2) {
      const int64_t pair[] = {values[i], NewLayout(values[i + 1])};
      if (i != 0) text += ',';
      AppendIntegers(text, pair, 2);
    }
    return text + "]";
  }

  const Reader& from_;
  const SignatureChanges& changes_;
  int64_t conditional_task_ = -1;
  std::unordered_map<int64_t, std::vector<std::optional<HandleKind>>> handles_;
  std::unordered_map<int64_t, int64_t> ops_;  // by signature
};

constexpr int kLayoutColumn = NumberOf(tables::kSignatureArgument, "layout_id");
constexpr int kIntegerColumn = NumberOf(tables::kSignatureArgument, "integer");
constexpr int kListColumn = NumberOf(tables::kSignatureArgument, "list");
constexpr int kColumns = static_cast<int>(tables::kSignatureArgument.columns.size());

}  // namespace

std::vector<std::optional<HandleKind>> HandlesOf(const std::string& schema) {
  std::vector<std::optional<HandleKind>> handles;
  const size_t begin = schema.find('(');
  const size_t end = schema.rfind(')');
  if (begin == std::string::npos || end <= begin + 1) return handles;
  std::string_view arguments = std::string_view(schema).substr(begin + 1, end - begin - 1);
  while (true) {
    const size_t comma = arguments.find(", ");
    const std::string_view argument = arguments.substr(0, comma);
    const std::string_view type = argument.substr(0, argument.find_first_of("*( "));
    std::optional<HandleKind> handle;
    for (const HandleType& known : kHandleTypes) {
      if (known.type == type) handle = known.kind;
    }
    handles.push_back(handle);
    if (comma == std::string_view::npos) return handles;
    arguments.remove_prefix(comma + 2);
  }
}

SignatureRows::SignatureRows(Database& to) : to_(to), signatures_(to, tables::kSignature) {}

void SignatureRows::Add(const Reader& from, const SignatureChanges& changes, IdMap& ids) {
  Arguments arguments(from, changes);
  std::unordered_map<int64_t, std::string> contents;
  arguments.ForEach([&](const Statement& rows, int64_t signature,
                        const std::optional<int64_t>& layout, const std::optional<int64_t>& integer,
                        const std::optional<std::string>& list) {
    std::string& key = contents[signature];
    for (int column = 1; column < kColumns; ++column) {
      if (column == kLayoutColumn || column == kIntegerColumn) {
        const std::optional<int64_t>& value = column == kLayoutColumn ? layout : integer;
        key += value ? fmt::format("i{};", *value) : "n";
      } else if (column == kListColumn && list) {
        key += fmt::format("l{};", *list);
      } else {
        AppendKey(key, sqlite3_column_value(rows.handle(), column));
      }
    }
  });
  const auto new_op = [&](int64_t op) -> std::optional<int64_t> {
    const auto found = changes.ops.find(op);
    return found == changes.ops.end() ? 0 : found->second;
  };
  signatures_.Add(from, {{"op_id", new_op}}, ids, contents);
  std::unordered_map<int64_t, int64_t> first_of;  // the old id that a new signature is made of
  for (const auto& [before, after] : ids) {
    if (!signatures_.IsNew(after)) continue;
    const auto [entry, is_new] = first_of.try_emplace(after, before);
    if (!is_new) entry->second = std::min(entry->second, before);
  }
  Statement insert(to_, InsertText(tables::kSignatureArgument, "INSERT INTO", "main."));
  arguments.ForEach([&](const Statement& rows, int64_t signature,
                        const std::optional<int64_t>& layout, const std::optional<int64_t>& integer,
                        const std::optional<std::string>& list) {
    const auto after = ids.find(signature);
    if (after == ids.end() || !signatures_.IsNew(after->second)) return;
    if (first_of.at(after->second) != signature) return;
    insert.Bind(1, after->second);
    for (int column = 1; column < kColumns; ++column) {
      sqlite3_bind_value(insert.handle(), column + 1, sqlite3_column_value(rows.handle(), column));
    }
    insert.Bind(kLayoutColumn + 1, layout);
    insert.Bind(kIntegerColumn + 1, integer);
    if (list) insert.Bind(kListColumn + 1, std::string_view(*list));
    insert.Run();
  });
}

}  // namespace acltape::storage
