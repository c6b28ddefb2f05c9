#include "replayer/redact.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "analyzer/metrics/metrics.h"
#include "analyzer/program/roles.h"
#include "replayer/redact_words.h"
#include "storage/columns.h"
#include "storage/process_choice.h"
#include "storage/statistics.h"
#include "storage/table_rows.h"
#include "storage/trace_copy.h"

namespace acltape::replayer {
namespace {

using storage::DType;
using storage::Statement;
using storage::Statistics;
using storage::TraceCopy;

// The kinds of results that are numbers of the host, as a list in SQL.
std::string HostNumberKinds() {
  using storage::ValueKind;
  std::string list;
  for (const ValueKind kind :
       {ValueKind::kInt, ValueKind::kReal, ValueKind::kBool, ValueKind::kIntList,
        ValueKind::kRealList, ValueKind::kBoolList, ValueKind::kComplex}) {
    list += fmt::format("{}'{}'", list.empty() ? "" : ", ", storage::ValueKindName(kind));
  }
  return list;
}

// The metadata that a replay and the tools need.
constexpr char kKeptMeta[] =
    "key IN ('state', 'base_ns', 'acltape_version', 'levels', 'payload', 'torch_version', "
    "'torch_commit', 'torch_build_id', 'torch_threads', 'blas_threads', 'soft_device', "
    "'torch_processes', "
    "'acl_processes', 'exit_code', 'signal', "
    "'trimmed_calls')";

// The words as a list in SQL.
std::string List(std::span<const std::string_view> words) {
  std::string list;
  for (const std::string_view word : words) {
    list += fmt::format("{}'{}'", list.empty() ? "" : ", ", word);
  }
  return list;
}

// The column where it is one of these words, else `otherwise`.
std::string OneOf(std::string_view column, std::span<const std::string_view> words,
                  std::string_view otherwise = "''") {
  return fmt::format("iif({0} IN ({1}), {0}, {2})", column, List(words), otherwise);
}

// The names of an enumeration from 0 to `last`.
template <typename Enum>
std::vector<std::string_view> NamesUpTo(Enum last, std::string_view (*name)(Enum)) {
  std::vector<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(last); ++i) names.push_back(name(static_cast<Enum>(i)));
  return names;
}

// A JSON array of numbers, else NULL.
std::string Numbers(std::string_view column) {
  std::string bare(column);
  for (const char* word : {"null", "true", "false", "NaN", "nan", "Infinity", "inf"}) {
    bare = fmt::format("replace({}, '{}', '')", bare, word);
  }
  return fmt::format("iif({} NOT GLOB '*[^]0-9[,.eE+ -]*', {}, NULL)", bare, column);
}

// The text of an argument. Operators choose by words of their own ("none", "tanh", "BSND"), which a
// replay needs. The name of a communicator is what it is called in the copy.
std::string KeptText(bool has_communicators) {
  constexpr size_t kMostLayout = 12;
  const std::string device =
      "iif(instr(text, ':') = 0, text, substr(text, 1, instr(text, ':') - 1))";
  const std::string number = "iif(instr(text, ':') = 0, '0', substr(text, instr(text, ':') + 1))";
  return fmt::format(
      "CASE WHEN direction = 'out' THEN NULL"
      " WHEN kind IN ('scalar', 'scalar_list') THEN text"
      " WHEN kind = 'device' THEN iif({} IN ({}) AND {} NOT GLOB '*[^0-9]*', text, NULL)"
      " WHEN kind <> 'text' THEN NULL"
      " WHEN text = '' OR text IN ({}) THEN text"
      " WHEN length(text) <= {} AND text NOT GLOB '*[^{}]*' THEN text"
      " ELSE {} END",
      device, List(kDeviceWords), number, List(kOptionWords), kMostLayout, kLayoutLetters,
      has_communicators ? "(SELECT 'communicator ' || min(o.communicator_id) FROM "
                          "source.communicator o WHERE o.name = text)"
                        : "NULL");
}

// The rows of a table that are copied. `replaced` has expressions for columns that would reveal too
// much.
struct TableRule {
  const char* table;
  std::string condition;
  std::map<std::string, std::string> replaced;
  const char* unless = "";  // the word of `keep` that keeps the table as it is
};

std::vector<TableRule> Rules(const storage::Reader& trace, bool keep_stacks) {
  const auto severities = NamesUpTo(storage::Severity::kError, storage::SeverityName);
  const auto roles = NamesUpTo(analyzer::BufferRole::kActivation, analyzer::BufferRoleName);
  return {
      {"meta", kKeptMeta, {}, "meta"},
      {"quirk", fmt::format("name IN ({})", List(kQuirks)), {{"description", "''"}}},
      {"ledger",
       "",
       {{"kind", OneOf("kind", kLedgerKinds, "'other'")},
        {"severity", OneOf("severity", severities, "'notice'")},
        {"subject", "'subject ' || rowid"},
        {"cause", "''"},
        {"remedy", "''"}},
       "meta"},
      // The name that PyTorch gives to workers tells which process is the program.
      {"process",
       "",
       {{"pid", "0"},
        {"name", fmt::format("iif(name = '{}', name, '')", storage::kDataLoaderWorker)}},
       "meta"},
      {"thread", "", {{"tid", "0"}, {"name", "''"}}, "meta"},
      {"op", "", {}},
      {"layout", "", {}},
      {"signature", "", {}},
      {"signature_argument",
       "",
       {{"integer", "iif(direction = 'out' AND layout_id IS NULL, NULL, integer)"},
        {"real", "iif(direction = 'out' AND layout_id IS NULL, NULL, real)"},
        {"text", KeptText(storage::HasColumns(trace, "communicator", "name"))},
        {"list", fmt::format("iif(direction = 'out' AND kind <> 'tensor_list', NULL, {})",
                             Numbers("list"))}}},
      {"call_row",
       "",
       {{"stack_id", keep_stacks ? "stack_id" : "NULL"}, {"buffers", Numbers("buffers")}}},
      {"call_extra", "", {{"stack_id", "NULL"}}, "stacks"},
      {"stack", "0", {}, "stacks"},
      {"buffer_row", "", {{"address", "0"}}},
      {"scope",
       "",
       {{"kind", OneOf("kind", kScopeKinds, "'user'")},
        {"name", "'scope ' || scope_id"},
        {"path", "'scope ' || scope_id"}},
       "scopes"},
      {"scope_range", "", {}},
      {"stream", "", {{"handle", "iif(handle = 0, 0, stream_id)"}}},
      {"event", "", {{"handle", "event_id"}}},
      {"model", "", {{"handle", "model_id"}, {"mode", OneOf("mode", kCaptureModes)}}},
      // Ranks of one communicator keep one name.
      {"communicator",
       "",
       {{"handle", "communicator_id"},
        {"name",
         "'communicator ' || (SELECT min(o.communicator_id) FROM source.communicator o "
         "WHERE o.name = communicator.name)"}}},
      {"device_span", "", {}},
      {"step", "", {{"found_by", OneOf("found_by", kFoundBy, "'range'")}}, "scopes"},
      {"buffer_role", "", {{"role", OneOf("role", roles, "NULL")}, {"pool", "NULL"}}},
      {"dependency", "", {{"kind", OneOf("kind", kDependencies)}}},
  };
}

void CheckKeep(const std::set<std::string>& keep) {
  for (const std::string& word : keep) {
    if (word == "meta" || word == "scopes" || word == "stacks") continue;
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}' cannot be kept; known are meta, scopes and stacks", word));
  }
}

// Measures a content with elements of `dtype`. Returns false if it holds no numbers.
bool Measured(DType dtype, const std::vector<uint8_t>& content, Statistics& statistics) {
  const std::map<DType, DType> parts{{DType::kComplex32, DType::kFloat16},
                                     {DType::kComplex64, DType::kFloat32},
                                     {DType::kComplex128, DType::kFloat64}};
  const auto part = parts.find(dtype);
  if (part != parts.end()) dtype = part->second;
  const int64_t size = storage::DTypeBytes(dtype);
  if (size == 0 || static_cast<int64_t>(content.size()) < size) return false;
  const int64_t elements = static_cast<int64_t>(content.size()) / size;
  const analyzer::metrics::SideStatistics side =
      analyzer::metrics::Measure(dtype, content.data(), dtype, content.data(), elements).a;
  statistics.min = side.min;
  statistics.max = side.max;
  statistics.mean = side.mean;
  statistics.l2 = side.norm;
  statistics.nan_count = side.nan_count;
  statistics.inf_count = side.inf_count;
  return true;
}

class Redactor {
 public:
  Redactor(const storage::Reader& reader, const RedactOptions& options)
      : reader_(reader), options_(options), copy_(reader, options.output, options.overwrite) {}

  RedactReport Run() {
    for (const TableRule& rule : Rules(reader_, options_.keep.contains("stacks"))) {
      if (*rule.unless != '\0' && options_.keep.count(rule.unless) != 0) {
        copy_.CopyRows(rule.table,
                       std::string(rule.table) == "meta" ? "key <> 'schema_version'" : "");
      } else {
        copy_.CopyRows(rule.table, rule.condition, rule.replaced);
      }
    }
    CopySnapshots();
    copy_.SetMeta("redacted", "values");
    report_.content_bytes = reader_.database().Integer("SELECT ifnull(sum(bytes), 0) FROM payload");
    report_.contents = reader_.database().Integer("SELECT count(DISTINCT digest) FROM payload");
    report_.host_values = reader_.database().Integer(
        fmt::format("SELECT count(*) FROM call_row c JOIN signature_argument a "
                    "ON a.signature_id = c.signature_id WHERE a.direction = 'out' "
                    "AND a.layout_id IS NULL AND a.kind IN ({})",
                    HostNumberKinds())
            .c_str());
    copy_.Close();
    copy_.ReadBack([](const storage::Reader& trace) { static_cast<void>(trace.Snapshots()); });
    report_.bytes = static_cast<int64_t>(std::filesystem::file_size(copy_.partial_path()));
    report_.bytes_before = static_cast<int64_t>(std::filesystem::file_size(reader_.path()));
    copy_.Accept();
    return report_;
  }

 private:
  // Returns the statistics of a content with this element type. They are measured once.
  const Statistics* StatisticsOf(const storage::Snapshot& snapshot, DType dtype) {
    const auto [entry, fresh] = measured_.try_emplace({snapshot.digest, dtype});
    if (fresh && snapshot.has_payload) {
      entry->second.first = Measured(dtype, reader_.Payload(snapshot.digest), entry->second.second);
    }
    return entry->second.first ? &entry->second.second : nullptr;
  }

  void CopySnapshots() {
    const auto recorded = storage::LoadStatistics(reader_);
    const std::vector<storage::Snapshot> snapshots = reader_.Snapshots();
    auto row = copy_.Insert<storage::tables::kSnapshot>();
    for (storage::Snapshot snapshot : snapshots) {
      const auto found = recorded.find(storage::KeyOf(snapshot));
      const DType dtype = reader_.GetLayout(snapshot.tensor.layout_id).dtype;
      const Statistics* statistics =
          found != recorded.end() ? &found->second : StatisticsOf(snapshot, dtype);
      if (statistics != nullptr) ++report_.statistics;
      snapshot.digest.clear();
      AddRow(row, snapshot, statistics);
      ++report_.snapshots;
      if (options_.progress) {
        options_.progress(report_.snapshots, static_cast<int64_t>(snapshots.size()));
      }
    }
  }

  const storage::Reader& reader_;
  const RedactOptions& options_;
  TraceCopy copy_;
  RedactReport report_;
  // The statistics by digest and type; false: there are none.
  std::map<std::pair<std::string, DType>, std::pair<bool, Statistics>> measured_;
};

}  // namespace

RedactReport Redact(const storage::Reader& reader, const RedactOptions& options) {
  CheckKeep(options.keep);
  return Redactor(reader, options).Run();
}

}  // namespace acltape::replayer
