#include "storage/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "storage/checked_row.h"
#include "storage/interned_rows.h"
#include "storage/json_text.h"
#include "storage/merged_meta.h"
#include "storage/recording_cost.h"
#include "storage/row_gate.h"
#include "storage/signature_rows.h"
#include "storage/sql_functions.h"
#include "storage/table_rows.h"
#include "storage/trace_copy.h"

namespace acltape::storage {
namespace {

constexpr int kLayoutBits = 24;
constexpr std::string_view kMarked[] = {"range:", "optimizer"};

// Tables whose ids go on after those of the sources before.
struct Counted {
  const char* table;
  const char* id;
};
constexpr Counted kCounted[] = {{"process", "process_id"},
                                {"thread", "thread_id"},
                                {"buffer_row", "buffer_id"},
                                {"stream", "stream_id"},
                                {"event", "event_id"},
                                {"model", "model_id"},
                                {"communicator", "communicator_id"},
                                {"recorded_window", "window_id"}};

// The ids of one source in the new trace.
struct NewIds {
  CallNumbers calls;
  std::map<std::string, int64_t> last;   // the greatest id of each of kCounted in the source
  std::map<std::string, int64_t> added;  // the number to add to each
  IdMap ops;
  IdMap layouts;
  IdMap signatures;
  IdMap scopes;
  IdMap stacks;

  // An id that the source does not have stays: it is none.
  int64_t Counted(const std::string& id, int64_t value) const {
    return value >= 1 && value <= last.at(id) ? value + added.at(id) : value;
  }
  static int64_t Interned(const IdMap& ids, int64_t value) {
    const auto found = ids.find(value);
    return found == ids.end() ? 0 : found->second;
  }
  int64_t Tensor(int64_t tensor) const {
    const int64_t layout = tensor & kMostLayoutId;
    return Counted("buffer_id", tensor >> kLayoutBits) << kLayoutBits | Interned(layouts, layout);
  }
  std::string Buffers(std::string_view text) const {
    std::vector<int64_t> buffers = ParseIntegers(text);
    for (int64_t& buffer : buffers) buffer = Counted("buffer_id", buffer);
    return IntegersText(buffers);
  }
};

std::string HandleId(HandleKind kind) {
  constexpr const char* kIds[] = {"stream_id", "event_id", "model_id", "communicator_id"};
  return kIds[static_cast<size_t>(kind)];
}

class Merger {
 public:
  Merger(const std::vector<MergeSource>& sources, const MergeOptions& options)
      : sources_(sources),
        options_(options),
        copy_(*sources.front().trace, options.output, options.overwrite, Paths(sources)),
        ops_(copy_.database(), tables::kOp),
        layouts_(copy_.database(), tables::kLayout),
        scopes_(copy_.database(), tables::kScope),
        stacks_(copy_.database(), tables::kStack),
        signatures_(copy_.database()) {
    AddFunctions();
  }

  void Run() {
    int64_t total = 0;
    for (const MergeSource& source : sources_) total += source.trace->CallCount(false);
    // Half of the work is to number the calls, the other half to copy them.
    const auto tell = [&](int64_t half, int64_t calls) {
      if (options_.progress) options_.progress((half * total + calls) / 2, total);
    };
    std::vector<CallNumbers> calls = NumberCalls(sources_, [&](int64_t done) { tell(0, done); });
    int64_t copied = 0;
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (i > 0) copy_.NextSource(*sources_[i].trace);
      ids_.calls = std::move(calls[i]);
      CopySource(sources_[i]);
      copied += ids_.calls.size();
      ids_.calls = {};
      tell(1, copied);
    }
    AddSteps();
    WriteMergedMeta(copy_, sources_, processes_, cost_, FirstBase());
    copy_.Close();
    copy_.ReadBack([](const Reader& trace) { static_cast<void>(trace.Steps()); });
    copy_.Accept();
  }

 private:
  static std::vector<std::string> Paths(const std::vector<MergeSource>& sources) {
    std::vector<std::string> paths;
    for (const MergeSource& source : sources) paths.push_back(source.trace->path());
    return paths;
  }

  // The new trace counts from what begins first.
  int64_t BaseOf(const MergeSource& source) const {
    return TakeBaseNs(source.trace->path(), source.trace->Meta("base_ns")) + source.shift_ns;
  }
  int64_t FirstBase() const {
    int64_t base = kMostNs;
    for (const MergeSource& source : sources_) base = std::min(base, BaseOf(source));
    return std::max<int64_t>(base, 0);
  }

  void AddFunctions() {
    Database& database = copy_.database();
    const auto add = [&](const char* name,
                         std::optional<int64_t> (*change)(const NewIds&, int64_t)) {
      AddIntegerFunction(database, name, [this, change](int64_t id) { return change(ids_, id); });
    };
    using Id = std::optional<int64_t>;
    add("new_call", [](const NewIds& ids, int64_t id) { return ids.calls.Of(id); });
    add("new_first", [](const NewIds& ids, int64_t id) { return Id(ids.calls.AtOrAfter(id)); });
    add("new_last", [](const NewIds& ids, int64_t id) { return Id(ids.calls.AtOrBefore(id)); });
    add("new_signature",
        [](const NewIds& ids, int64_t id) { return Id(NewIds::Interned(ids.signatures, id)); });
    add("new_scope",
        [](const NewIds& ids, int64_t id) { return Id(NewIds::Interned(ids.scopes, id)); });
    add("new_stack",
        [](const NewIds& ids, int64_t id) { return Id(NewIds::Interned(ids.stacks, id)); });
    add("new_tensor", [](const NewIds& ids, int64_t id) { return Id(ids.Tensor(id)); });
    for (const Counted& one : kCounted) {
      AddIntegerFunction(database, fmt::format("new_{}", one.id).c_str(),
                         [this, id = std::string(one.id)](int64_t value) {
                           return std::optional(ids_.Counted(id, value));
                         });
    }
    AddTextFunction(database, "new_buffers",
                    [this](std::string_view text) { return ids_.Buffers(text); });
  }

  void CopySource(const MergeSource& source) {
    const Reader& trace = *source.trace;
    const std::string relative = fmt::format(" + {}", BaseOf(source) - FirstBase());
    const std::string absolute = fmt::format(" + {}", source.shift_ns);
    Count(trace);
    Intern(trace);
    using Replaced = std::map<std::string, std::string>;
    // The new value of each of these columns, wherever it is.
    Replaced ids{{"process_id", "new_process_id(process_id)"},
                 {"thread_id", "new_thread_id(thread_id)"},
                 {"call_id", "new_call(call_id)"},
                 {"parent_id", "new_call(parent_id)"},
                 {"signature_id", "new_signature(signature_id)"},
                 {"scope_id", "new_scope(scope_id)"},
                 {"stack_id", "new_stack(stack_id)"},
                 {"forward_call", "new_call(forward_call)"},
                 {"alloc_call", "new_call(alloc_call)"},
                 {"free_call", "new_call(free_call)"},
                 {"create_call", "new_call(create_call)"},
                 {"destroy_call", "new_call(destroy_call)"},
                 {"begin_call", "new_call(begin_call)"},
                 {"end_call", "new_call(end_call)"},
                 {"first_call", "new_first(first_call)"},
                 {"last_call", "new_last(last_call)"},
                 {"tensor_id", "new_tensor(tensor_id)"},
                 {"buffers", "new_buffers(buffers)"},
                 {"block", "new_buffer_id(block)"}};
    for (const Counted& one : kCounted) {
      ids[one.id] = fmt::format("new_{0}({0})", one.id);
    }
    const auto copy = [&](const StoredTable& table, const Replaced& times,
                          const std::string& condition = "") {
      Replaced replaced;
      for (const StoredColumn& column : table.columns) {
        const auto id = ids.find(std::string(column.name));
        if (id != ids.end()) replaced.insert(*id);
      }
      for (const auto& [column, added] : times) replaced[column] = column + added;
      copy_.CopyRows(table.name, condition, replaced);
    };
    const Replaced none;
    copy(tables::kQuirk, none);
    copy(tables::kProcess, none);
    copy(tables::kThread, none);
    copy(tables::kCallRow, {{"begin_ns", relative}});
    copy(tables::kCallExtra, none);
    copy(tables::kBufferRow, {{"alloc_ns", relative}});
    copy(tables::kSnapshot, none);
    copy(tables::kScopeRange, {{"begin_ns", absolute}, {"end_ns", absolute}});
    copy(tables::kStream, none);
    copy(tables::kEvent, none);
    copy(tables::kModel, none);
    copy(tables::kCommunicator, none);
    copy(tables::kRecordedWindow, {{"begin_ns", relative}, {"end_ns", relative}});
    copy(tables::kDeviceSpan, {{"begin_ns", absolute}, {"end_ns", absolute}});
    copy(tables::kFailureText, none);
    if (options_.contents) {
      copy(tables::kPayload, none, "digest NOT IN (SELECT digest FROM main.payload)");
    }
    AddLedger(trace);
    CollectSteps(trace);
    CollectCost(trace);
    processes_.push_back({ids_.added.at("process_id"), ids_.last.at("process_id")});
  }

  // The traces of ranks that one recorder wrote (split.h) have its ledger each.
  void AddLedger(const Reader& trace) {
    std::string recorder;
    for (const char* key : {"collector_boot", "collector_pid", "collector_start"}) {
      recorder += trace.Meta(key) + " ";
    }
    const bool is_known = recorder.size() > 3;
    if (is_known && !recorders_.insert(recorder).second) return;
    auto row = RowInsert<tables::kLedger>(copy_.database(), "INSERT INTO", kAddToCount, "main.");
    for (const LedgerEntry& entry : trace.Ledger()) AddRow(row, entry);
  }

  void Count(const Reader& trace) {
    for (const Counted& one : kCounted) {
      int64_t& sum = sums_[one.id];
      Statement greatest(trace.database(),
                         fmt::format("SELECT ifnull(max({}), 0) FROM {}", one.id, one.table));
      const CheckedRow row(greatest, trace.path(), one.table);
      greatest.Next();
      const bool buffers = std::string_view(one.id) == "buffer_id";
      const int64_t last = row.Integer(0, one.id, 0, buffers ? kMostBufferId : kMostId);
      if (buffers && sum + last > kMostBufferId) RefuseTooMuch("buffers");
      ids_.added[one.id] = sum;
      ids_.last[one.id] = last;
      sum += last;
    }
  }

  [[noreturn]] static void RefuseTooMuch(std::string_view what) {
    throw Error(ErrorKind::kUsage,
                fmt::format("these traces hold more {} than one trace can have; merge fewer of "
                            "them, or parts that `acltape trim` makes",
                            what));
  }

  void Intern(const Reader& trace) {
    ops_.Add(trace, {}, ids_.ops);
    layouts_.Add(trace, {}, ids_.layouts);
    for (const auto& [before, after] : ids_.layouts) {
      if (after > kMostLayoutId) RefuseTooMuch("layouts");
    }
    // A scope comes after the one that encloses it.
    const auto new_scope = [this](int64_t id) {
      return std::optional(NewIds::Interned(ids_.scopes, id));
    };
    scopes_.Add(trace, {{"parent_id", new_scope}}, ids_.scopes);
    stacks_.Add(trace, {}, ids_.stacks);
    const auto new_handle = [this](HandleKind kind, int64_t id) {
      return ids_.Counted(HandleId(kind), id);
    };
    signatures_.Add(trace, {ids_.ops, ids_.layouts, new_handle}, ids_.signatures);
  }

  // Steps that the program marked. Those that were found by what repeats are found anew.
  void CollectSteps(const Reader& trace) {
    for (Step step : trace.Steps()) {
      const bool marked = std::ranges::any_of(
          kMarked, [&](std::string_view prefix) { return step.found_by.starts_with(prefix); });
      if (!marked) continue;
      step.first_call = ids_.calls.AtOrAfter(step.first_call);
      step.last_call = ids_.calls.AtOrBefore(step.last_call);
      steps_.push_back(std::move(step));
    }
  }

  // Adds what recording took from the threads; the sizes are those of the first trace.
  void CollectCost(const Reader& trace) {
    std::optional<RecordingCost> cost = RecordingCostOf(trace);
    if (!cost) return;
    for (ThreadCost& thread : cost->threads) {
      thread.thread_id = ids_.Counted("thread_id", thread.thread_id);
    }
    if (!cost_) {
      cost_ = std::move(cost);
      return;
    }
    cost_->threads.insert(cost_->threads.end(), cost->threads.begin(), cost->threads.end());
    cost_->more_threads += cost->more_threads;
    cost_->value_bytes += cost->value_bytes;
    cost_->values_ns = std::max(cost_->values_ns, cost->values_ns);
    cost_->backlog_was_full = cost_->backlog_was_full || cost->backlog_was_full;
  }

  void AddSteps() {
    std::ranges::stable_sort(steps_, {}, &Step::first_call);
    auto row = copy_.Insert<tables::kStep>();
    for (size_t i = 0; i < steps_.size(); ++i) {
      steps_[i].step = static_cast<int64_t>(i);
      AddRow(row, steps_[i]);
    }
  }

  const std::vector<MergeSource>& sources_;
  const MergeOptions& options_;
  NewIds ids_;
  TraceCopy copy_;
  InternedRows ops_;
  InternedRows layouts_;
  InternedRows scopes_;
  InternedRows stacks_;
  SignatureRows signatures_;
  std::map<std::string, int64_t> sums_;  // the ids of kCounted so far
  std::vector<Step> steps_;
  std::set<std::string> recorders_;  // their ledgers are there already
  std::optional<RecordingCost> cost_;
  std::vector<MergedProcesses> processes_;  // for each source
};

// The rows of meta that traces must have in common to be one.
struct Common {
  const char* key;
  const char* what;
};
constexpr Common kCommon[] = {{"levels", "levels"}, {"payload", "values"}};

void RequireCommon(const std::vector<MergeSource>& sources) {
  const Reader& first = *sources.front().trace;
  for (const MergeSource& source : sources) {
    for (const Common& one : kCommon) {
      const std::string here = source.trace->Meta(one.key);
      const std::string there = first.Meta(one.key);
      if (here == there) continue;
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} holds the {} {}, {} holds {}; merge traces that were recorded "
                              "with the same options",
                              first.path(), one.what, ShownValue(there), source.trace->path(),
                              ShownValue(here)));
    }
  }
}

// One process in two traces would be two.
void RequireDifferentProcesses(const std::vector<MergeSource>& sources) {
  std::map<std::pair<std::string, int64_t>, std::string> seen;  // boot and pid, and the file
  for (const MergeSource& source : sources) {
    const std::string boot = source.trace->Meta("collector_boot");
    if (boot.empty()) continue;
    Statement rows(source.trace->database(),
                   "SELECT pid FROM process WHERE process_id IN (SELECT process_id FROM thread)");
    const CheckedRow row(rows, source.trace->path(), "process");
    while (rows.Next()) {
      const int64_t pid = row.IntegerOrNull(0, "pid", 0, kMostId);
      const auto [other, is_new] = seen.try_emplace({boot, pid}, source.trace->path());
      if (is_new) continue;
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} and {} both hold the process with pid {}; name each recording "
                              "once",
                              other->second, source.trace->path(), pid));
    }
  }
}

}  // namespace

void Merge(const std::vector<MergeSource>& sources, const MergeOptions& options) {
  RequireCommon(sources);
  RequireDifferentProcesses(sources);
  Merger(sources, options).Run();
}

}  // namespace acltape::storage
