#include "analyzer/lint/words.h"

#include <string_view>

#include "storage/database.h"
#include "storage/nesting.h"

namespace acltape::analyzer::lint {
namespace {

constexpr std::string_view kBackward = "backward of ";

std::string PlaceText(const std::string& place) {
  if (place.empty()) return "";
  return place.starts_with(kBackward) ? " in the " + place : " at " + place;
}

// The outermost operator of PyTorch around the call, itself included; empty: none.
std::string OuterOperator(const storage::Reader& trace, int64_t call_id) {
  storage::Statement up(
      trace.database(),
      "WITH RECURSIVE up(call_id, parent_id, op_id, depth) AS (SELECT call_id, parent_id, op_id, 0 "
      "FROM call WHERE call_id = ?1 UNION ALL SELECT c.call_id, c.parent_id, c.op_id, depth + 1 "
      "FROM up JOIN call c ON c.call_id = up.parent_id WHERE depth < ?2) SELECT o.name FROM up "
      "JOIN op o USING "
      "(op_id) WHERE o.dialect = 'aten' AND o.name LIKE '%::%' AND o.name NOT LIKE 'autograd%' "
      "ORDER BY depth DESC LIMIT 1");
  up.Bind(1, call_id);
  up.Bind(2, storage::kMostAround);
  return up.Next() ? std::string(up.Text(0)) : "";
}

}  // namespace

Words::Words(const Work& work, const Places& places) : work_(work), places_(places) {
  storage::Database& database = work.trace->database();
  over_torch_ = database.Integer(
                    "SELECT 1 FROM op WHERE dialect = 'aten' UNION SELECT 1 FROM meta WHERE key = "
                    "'torch_library' AND coalesce(value, '') <> ''") != 0;
  storage::Statement scopes(database, "SELECT scope_id, path FROM scope");
  while (scopes.Next()) scopes_.emplace(scopes.Integer(0), std::string(scopes.Text(1)));
}

const std::string& Words::Operator(size_t call) {
  const auto [entry, created] = operators_.try_emplace(work_.calls[call].call_id);
  if (!created) return entry->second;
  if (over_torch_) entry->second = OuterOperator(*work_.trace, entry->first);
  if (entry->second.empty()) entry->second = work_.op(call).FullName();
  return entry->second;
}

std::string Words::Call(size_t call) {
  const auto scope = scopes_.find(work_.calls[call].scope);
  const bool scoped = scope != scopes_.end() && !scope->second.empty();
  return Operator(call) + (scoped ? " in " + scope->second : "") + PlaceText(places_.Text(call));
}

std::string Words::Spell(const std::string& message) {
  std::string text;
  for (size_t from = 0; from < message.size();) {
    const size_t begin = message.find('\x01', from);
    text += message.substr(from, begin - from);
    if (begin == std::string::npos) break;
    const size_t end = message.find('\x02', begin);
    text += Call(std::stoul(message.substr(begin + 1, end - begin - 1)));
    from = end + 1;
  }
  return text;
}

std::string Words::Evidence(const std::vector<int64_t>& call_ids) const {
  std::string text;
  for (const int64_t call_id : call_ids) {
    const int64_t call = work_.Find(call_id);
    if (call < 0) continue;
    text += (text.empty() ? " (" : ", ") + work_.Describe(static_cast<size_t>(call));
  }
  return text.empty() ? text : text + ")";
}

std::string Words::Numbered(int64_t call_id) {
  const int64_t call = work_.Find(call_id);
  if (call < 0) return "call " + std::to_string(call_id);
  const auto index = static_cast<size_t>(call);
  const bool placed = places_.Of(index) != 0;
  return Call(index) + (placed ? "" : " (call " + std::to_string(call_id) + ")");
}

std::string Words::Edits(const std::vector<Edit>& edits, const Stretch& stretch) {
  const std::string region = stretch.recorded()  ? "the capture"
                             : stretch.step >= 0 ? "the step"
                                                 : "the region";
  std::string text;
  for (const Edit& edit : edits) {
    std::string one;
    if (edit.kind == Edit::Kind::kHoist) {
      one = "move " + Numbered(edit.call_id) + " out of " + region;
    } else if (edit.kind == Edit::Kind::kPin) {
      one = "pin the host memory that " + Numbered(edit.call_id) + " copies (" +
            (over_torch_ ? "pin_memory(), or pin_memory=True of a DataLoader" : "aclrtMallocHost") +
            ")";
    } else {
      one = edit.record_after == 0
                ? "record an event at the start of " + region
                : "record an event after " + Numbered(edit.record_after) + ", on its stream,";
      one += edit.wait_before == 0 ? " and let the stream that begins wait for it at the end"
                                   : " and let the stream of " + Numbered(edit.wait_before) +
                                         " wait for it before that call";
    }
    // An operator of the framework may be several calls of the interface.
    if (text.find(one) == std::string::npos) text += (text.empty() ? "" : "; ") + one;
  }
  return text;
}

}  // namespace acltape::analyzer::lint
