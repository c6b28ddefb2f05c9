#include "replayer/redact.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "analyzer/metrics/metrics.h"
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

// The text of an argument. Operators choose by words of their own ("none", "tanh", "BSND"), which a
// replay needs. A function of the interface takes names and paths of the machine, an operator of an
// extension whatever its author wants, and no word of an operator has a slash.
constexpr char kKeptText[] =
    "iif(kind = 'other' OR direction = 'out' OR kind = 'text' AND (text LIKE '%/%' OR signature_id "
    "NOT IN (SELECT s.signature_id FROM source.signature s JOIN source.op o ON o.op_id = s.op_id "
    "WHERE o.dialect = 'aclnn' OR o.dialect = 'aten' AND (o.name LIKE 'aten::%' OR o.name LIKE "
    "'npu::%' OR o.name LIKE 'prims::%'))), NULL, text)";

// The rows of a table that are copied. `replaced` has expressions for columns that would reveal too
// much.
struct TableRule {
  const char* table;
  const char* condition;
  std::map<std::string, std::string> replaced;
  const char* unless = "";  // the word of `keep` that keeps the table as it is
};

std::vector<TableRule> Rules() {
  return {
      {"meta", kKeptMeta, {}, "meta"},
      {"quirk", "", {}},
      {"ledger",
       "",
       {{"subject", "'subject ' || rowid"}, {"cause", "''"}, {"remedy", "''"}},
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
        {"text", kKeptText},
        {"list", "iif(direction = 'out' AND kind <> 'tensor_list', NULL, list)"}}},
      {"call_row", "", {{"stack_id", "NULL"}}, "stacks"},
      {"call_extra", "", {{"stack_id", "NULL"}}, "stacks"},
      {"stack", "0", {}, "stacks"},
      {"buffer_row", "", {{"address", "0"}}},
      {"scope", "", {{"name", "'scope ' || scope_id"}, {"path", "'scope ' || scope_id"}}, "scopes"},
      {"scope_range", "", {}},
      {"stream", "", {{"handle", "iif(handle = 0, 0, stream_id)"}}},
      {"event", "", {{"handle", "event_id"}}},
      {"model", "", {{"handle", "model_id"}}},
      // Ranks of one communicator keep one name.
      {"communicator",
       "",
       {{"handle", "communicator_id"},
        {"name",
         "'communicator ' || (SELECT min(o.communicator_id) FROM source.communicator o "
         "WHERE o.name = communicator.name)"}}},
      {"device_span", "", {}},
      {"step", "", {{"found_by", "iif(found_by LIKE 'range:%', 'range', found_by)"}}, "scopes"},
      {"buffer_role", "", {}},
      {"dependency", "", {}},
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
    for (const TableRule& rule : Rules()) {
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
