#include "replayer/reproducer/trim.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "analyzer/acl/acl_program.h"
#include "analyzer/calls/acl_calls.h"
#include "analyzer/steps/steps.h"
#include "meaning/options.h"
#include "replayer/acl_level/replay_level.h"
#include "replayer/device/device.h"
#include "replayer/replay.h"
#include "replayer/reproducer/trim_acl.h"
#include "storage/json_text.h"
#include "storage/table_rows.h"
#include "storage/trace_copy.h"

namespace acltape::replayer::reproducer {
namespace {

using analyzer::ByteSet;
using analyzer::Leaf;
using analyzer::Program;
using analyzer::TensorUse;

// ---- Which calls

std::set<int64_t> LeavesOfCalls(const Program& program, const std::vector<int64_t>& calls) {
  std::unordered_map<int64_t, int64_t> leaf_of_call;
  for (const Leaf& leaf : program.leaves) leaf_of_call.emplace(leaf.call.call_id, leaf.index);
  std::set<int64_t> leaves;
  for (const int64_t call : calls) {
    const auto found = leaf_of_call.find(call);
    if (found == leaf_of_call.end()) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} has no operator call {}; `acltape query` lists "
                              "the calls with leaf = 1",
                              program.trace->path(), call));
    }
    leaves.insert(found->second);
  }
  if (leaves.empty()) {
    throw Error(ErrorKind::kUsage, "the selection picks no call of " + program.trace->path());
  }
  return leaves;
}

// The calls at the same places of other steps of the class.
void AddSteps(const Program& program, const std::vector<int64_t>& steps,
              std::set<int64_t>& leaves) {
  const analyzer::StepClasses classes =
      analyzer::ClassifySteps(program, analyzer::HostArguments::kVary);
  std::set<int64_t> added;
  for (const int64_t wanted : steps) {
    const auto range =
        std::find_if(program.work.steps.begin(), program.work.steps.end(),
                     [&](const analyzer::StepRange& step) { return step.step == wanted; });
    if (range == program.work.steps.end()) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} has no step {}", program.trace->path(), wanted));
    }
    const int64_t target = range - program.work.steps.begin();
    const analyzer::StepTemplate* step_class = classes.OfStep(target);
    const auto match_of = [&](int64_t step) -> const analyzer::StepMatch* {
      for (const analyzer::StepMatch& match : step_class->matches) {
        if (match.step_index == step) return &match;
      }
      return nullptr;
    };
    const analyzer::StepMatch* there = match_of(target);
    for (const int64_t leaf : leaves) {
      const int64_t step = program.leaves[leaf].step_index;
      const analyzer::StepMatch* here = step < 0 ? nullptr : match_of(step);
      if (here == nullptr) {
        throw Error(ErrorKind::kUsage,
                    fmt::format("{} lies in no step that has the calls of step {}; pick calls of "
                                "steps that `acltape steps` puts into one class",
                                program.Describe(leaf), wanted));
      }
      const auto place = std::lower_bound(here->leaves.begin(), here->leaves.end(), leaf);
      if (place == here->leaves.end() || *place != leaf) continue;  // a view: nothing to replay
      added.insert(there->leaves[place - here->leaves.begin()]);
    }
  }
  leaves.insert(added.begin(), added.end());
}

// The calls that wrote last what the leaves read, and theirs, for as many generations.
void AddProducers(const Program& program, int generations, std::set<int64_t>& leaves) {
  std::set<int64_t> newest = leaves;
  for (int generation = 0; generation < generations && !newest.empty(); ++generation) {
    std::set<int64_t> found;
    for (const int64_t leaf : newest) {
      for (const TensorUse& use : program.uses[leaf].reads) {
        const auto& accesses = program.buffers.at(use.tensor.buffer_id).accesses;
        for (auto access = accesses.rbegin(); access != accesses.rend(); ++access) {
          if (access->leaf >= leaf || !access->write ||
              access->end_byte <= use.layout->FirstByte() ||
              use.layout->EndByte() <= access->first_byte) {
            continue;
          }
          if (leaves.insert(access->leaf).second) found.insert(access->leaf);
          break;
        }
      }
    }
    newest = std::move(found);
  }
}

// A graph leaves only what lies in its buffers in the end. Random numbers that a later call of the
// graph overwrites are not known, and drawing them again gives others.
void RefuseLostRandomNumbers(const Program& program, const std::set<int64_t>& leaves) {
  for (const int64_t index : leaves) {
    const Leaf& leaf = program.leaves[index];
    if (leaf.kind != analyzer::LeafKind::kSource || leaf.execution == 0) continue;
    if (analyzer::FindAclFunction(leaf.op->name).kind != analyzer::AclCallKind::kRandom) continue;
    for (const TensorUse& write : program.uses[index].writes) {
      if (analyzer::RecordedResult(leaf, write) != nullptr) continue;
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} cannot be kept in a trimmed trace: it draws random numbers in a "
                              "graph, and the recording has only what the graph left in the end; "
                              "pick calls without it",
                              program.Describe(index)));
    }
  }
}

// ---- What they need

// Follows which bytes of each buffer the kept calls and inputs alone give the recorded content.
class InputFinder {
 public:
  InputFinder(const Program& program, TrimPlan& plan) : program_(program), plan_(plan) {
    for (const int64_t leaf : plan.leaves) {
      for (const TensorUse& use : program.uses[leaf].reads) read_.insert(use.tensor.buffer_id);
    }
  }

  void Run() {
    for (const Leaf& leaf : program_.leaves) {
      if (plan_.leaves.count(leaf.index) != 0) {
        Keep(leaf);
      } else {
        Drop(leaf);
      }
    }
  }

 private:
  void Drop(const Leaf& leaf) {
    for (const storage::Snapshot& snapshot : leaf.before) {
      const int64_t first = analyzer::FirstByteOf(program_, snapshot);
      right_[snapshot.tensor.buffer_id].Remove(first, first + snapshot.bytes);
    }
    for (const TensorUse& use : program_.uses[leaf.index].writes) {
      if (read_.count(use.tensor.buffer_id) == 0) continue;
      ByteSet written;
      analyzer::AddElements(*use.layout, written);
      right_[use.tensor.buffer_id].Remove(written);
    }
  }

  void Keep(const Leaf& leaf) {
    for (const storage::Snapshot& snapshot : leaf.before) {
      const int64_t first = analyzer::FirstByteOf(program_, snapshot);
      right_[snapshot.tensor.buffer_id].Add(first, first + snapshot.bytes);
    }
    std::map<int64_t, TrimPlan::Input> inputs;
    for (const TensorUse& use : program_.uses[leaf.index].reads) {
      if (use.layout->ElementCount() == 0) continue;
      ByteSet missing;
      analyzer::AddElements(*use.layout, missing);
      const ByteSet elements = missing;
      missing.Remove(right_[use.tensor.buffer_id]);
      TrimPlan::Input& input = inputs[use.tensor.buffer_id];
      input.needed.Add(elements);
      if (missing.empty()) continue;
      input.leaf = leaf.index;
      input.buffer_id = use.tensor.buffer_id;
    }
    for (auto& [buffer, input] : inputs) {
      if (input.buffer_id == 0) continue;  // all of it is there
      // An input replaces its buffer from the first byte on: what is right already must stay so.
      const int64_t end = program_.buffers.at(buffer).bytes;
      input.bytes = end;
      ByteSet& right = right_[buffer];
      input.needed.Add(right);
      right.Add(0, end);
      plan_.inputs.push_back(std::move(input));
    }
    for (const TensorUse& use : program_.uses[leaf.index].writes) {
      // The bytes that a view with many gaps writes are not followed and count as not written.
      constexpr int64_t kExactElements = int64_t{1} << 16;
      if (!use.layout->IsDense() && use.layout->ElementCount() > kExactElements) continue;
      analyzer::AddElements(*use.layout, right_[use.tensor.buffer_id]);
    }
  }

  const Program& program_;
  TrimPlan& plan_;
  std::set<int64_t> read_;                      // buffers that kept calls read
  std::unordered_map<int64_t, ByteSet> right_;  // by buffer
};

// ---- Writing

// Rows that belong to the calls of the table `kept`, which has the leaves.
constexpr char kKeepParents[] = R"sql(
WITH RECURSIVE parents(call_id) AS (
  SELECT c.parent_id FROM source.call_row c JOIN kept k ON k.call_id = c.call_id
  UNION SELECT c.parent_id FROM source.call_row c JOIN parents p ON p.call_id = c.call_id)
INSERT OR IGNORE INTO kept SELECT call_id FROM parents WHERE call_id IS NOT NULL
  AND call_id IN (SELECT call_id FROM source.call_row))sql";

struct CopyRule {
  const char* table;
  const char* condition;
};
constexpr CopyRule kCopyRules[] = {
    {"quirk", ""},
    {"ledger", ""},
    {"process", ""},
    {"thread", ""},
    {"call_row", "call_id IN (SELECT call_id FROM kept)"},
    {"call_extra", "call_id IN (SELECT call_id FROM kept)"},
    {"device_span", "call_id IN (SELECT call_id FROM kept)"},
    {"failure_text", "call_id IN (SELECT call_id FROM kept)"},
    {"signature", "signature_id IN (SELECT signature_id FROM main.call_row)"},
    {"signature_argument", "signature_id IN (SELECT signature_id FROM main.signature)"},
    {"op", "op_id IN (SELECT op_id FROM main.signature)"},
    {"snapshot", "call_id IN (SELECT call_id FROM kept)"},
    {"layout",
     "layout_id IN (SELECT layout_id FROM main.signature_argument"
     " UNION SELECT json_extract(e.value, '$[1]') FROM main.signature_argument a,"
     " json_each(a.list) e WHERE a.kind = 'tensor_list'"
     " UNION SELECT tensor_id & 0xffffff FROM main.snapshot)"},
    {"buffer_row",
     "buffer_id IN (SELECT e.value FROM main.call_row c, json_each(c.buffers) e"
     " UNION SELECT tensor_id >> 24 FROM main.snapshot)"},
    {"buffer_role", "buffer_id IN (SELECT buffer_id FROM main.buffer_row)"},
    {"payload", "digest IN (SELECT digest FROM main.snapshot)"},
    {"scope",
     "scope_id IN (WITH RECURSIVE up(scope_id) AS (SELECT scope_id FROM main.call_row"
     " UNION SELECT s.parent_id FROM source.scope s JOIN up ON up.scope_id = s.scope_id)"
     " SELECT scope_id FROM up)"},
    {"scope_range",
     "scope_id IN (SELECT scope_id FROM main.scope) AND EXISTS (SELECT 1 FROM main.call_row c"
     " WHERE c.call_id BETWEEN first_call AND last_call)"},
    {"stack", "stack_id IN (SELECT stack_id FROM main.call)"},
    {"stream", ""},
    {"event", ""},
    {"model", ""},
    {"communicator", ""},
};

void CopyKept(storage::TraceCopy& copy, const Program& program, const TrimPlan& plan) {
  storage::Database& database = copy.database();
  database.Execute("CREATE TEMP TABLE kept(call_id INTEGER PRIMARY KEY)");
  {
    storage::Statement keep(database, "INSERT INTO kept VALUES(?)");
    for (const int64_t leaf : plan.leaves) {
      keep.Bind(1, program.leaves[leaf].call.call_id);
      keep.Run();
    }
  }
  database.Execute(kKeepParents);
  for (const CopyRule& rule : kCopyRules) copy.CopyRows(rule.table, rule.condition);
  auto step = copy.Insert<storage::tables::kStep>();
  for (const analyzer::StepRange& range : program.work.steps) {
    const auto kept = plan.leaves.lower_bound(range.first);
    if (kept == plan.leaves.end() || *kept >= range.end) continue;
    AddRow(step, storage::Step{range.step, program.leaves[range.first].call.call_id,
                               program.leaves[range.end - 1].call.call_id, range.found_by});
  }
}

// `ids` are those of the calls in the new trace, by leaf.
void AddInputs(storage::TraceCopy& copy, const Program& program, const TrimPlan& plan,
               const std::map<int64_t, int64_t>& ids, AddedLayouts& layouts, TrimReport& report) {
  RecordedContent recorded(program);
  auto add = copy.Insert<storage::tables::kSnapshot>();
  storage::Statement add_buffer(copy.database(),
                                "INSERT OR IGNORE INTO main.buffer_row(buffer_id, address, bytes, "
                                "alloc_call, free_call, flags, alloc_ns, life_ns) "
                                "SELECT buffer_id, address, bytes, alloc_call, free_call, flags, "
                                "alloc_ns, life_ns FROM source.buffer_row WHERE buffer_id = ?");
  std::set<int64_t> fed;
  for (const TrimPlan::Input& input : plan.inputs) {
    const std::vector<uint8_t> content =
        recorded.Before(input.buffer_id, {0, input.bytes}, input.leaf, input.needed);
    const std::string digest = copy.AddPayload(content.data(), content.size());
    storage::Snapshot snapshot;
    snapshot.call_id = ids.at(input.leaf);
    snapshot.tensor = {input.buffer_id, layouts.OfRange(0, input.bytes)};
    snapshot.digest = digest;
    snapshot.bytes = input.bytes;
    snapshot.changed = !fed.insert(input.buffer_id).second;
    AddRow(add, snapshot, nullptr);
    add_buffer.Bind(1, input.buffer_id);
    add_buffer.Run();
    ++report.inputs;
    report.input_bytes += input.bytes;
  }
}

// ---- Proof

// Counts of which kept calls the recording holds a result.
void CountResults(const Program& program, const TrimPlan& plan, TrimReport& report) {
  std::set<int64_t> left;  // executions of which a result is there
  for (const int64_t index : plan.leaves) {
    const Leaf& leaf = program.leaves[index];
    if (leaf.execution != 0 && !leaf.after.empty()) left.insert(leaf.execution);
  }
  for (const int64_t index : plan.leaves) {
    const Leaf& leaf = program.leaves[index];
    // Copies and fills of the interface are no operators and have no result in a recording.
    if (leaf.kind != analyzer::LeafKind::kKernel || leaf.op->dialect == "aclrt") continue;
    ++report.kernels;
    if (!leaf.after.empty()) {
      ++report.with_result;
    } else if (left.count(leaf.execution) != 0) {
      ++report.overwritten;
    }
  }
}

bool HoldsFailedWork(const Program& program) {
  return program.level == analyzer::Level::kAcl &&
         !analyzer::LoadAclProgram(*program.trace).task_errors.empty();
}

std::string Shown(const ReplayReport& report) {
  if (report.mismatches.empty()) return "";
  const Mismatch& first = report.mismatches.front();
  return fmt::format("first output {} of call {} {}", first.name, first.call_id, first.op);
}

// Empty if every call that differs here differs in the whole trace, too. `recorded` has the ids of
// the whole trace by those of the trimmed one.
std::string UnlikeOriginal(const storage::Reader& original, const ReplayReport& trimmed,
                           const std::map<int64_t, int64_t>& recorded,
                           const ReplayOptions& options) {
  const ReplayReport whole = acl_level::Replay(original, options, nullptr);
  for (const int64_t call : trimmed.differing_calls) {
    if (whole.differing_calls.count(recorded.at(call)) == 0) {
      return fmt::format("call {} differs in the trimmed trace only", call);
    }
  }
  return "";
}

// Replays the closed copy; sets the refusal of the report when it is not as recorded.
void Prove(const storage::Reader& original, const storage::Reader& trimmed,
           const std::map<int64_t, int64_t>& recorded, const TrimOptions& options,
           TrimReport& report) {
  ReplayOptions replay;
  replay.device_lib = options.device_lib;
  replay.mismatch_limit = 1;
  replay.progress = options.progress;
  // At the ACL level, as the trace was trimmed.
  replay.streams =
      analyzer::ChooseLevel(original) == analyzer::Level::kAcl ? Streams::kLeaves : replay.streams;
  for (const Mode mode : {Mode::kEager, Mode::kCaptured}) {
    replay.mode = mode;
    const ReplayReport done = acl_level::Replay(trimmed, replay, nullptr);
    if (mode == Mode::kCaptured && !done.refusal.empty()) {
      report.captured_note = done.refusal;
      return;
    }
    report.captured = mode == Mode::kCaptured;
    if (mode == Mode::kEager) {
      report.compared = done.compared;
      report.differing = done.differing;
      report.substituted = done.substituted;
    } else {
      report.captured_compared = done.compared;
    }
    if (done.differing == 0) continue;
    const std::string unlike =
        options.accept_different
            ? UnlikeOriginal(original, done, recorded, replay)
            : "@accept-different keeps what differs in the whole trace too"_cli;
    if (options.accept_different && unlike.empty()) continue;
    report.refusal = fmt::format(
        "the trimmed calls do not give their recorded results when replayed {} ({} of {} outputs "
        "differ, {}): {}; nothing was written",
        mode == Mode::kEager ? "eagerly" : "captured", done.differing, done.compared, Shown(done),
        unlike);
    return;
  }
}

}  // namespace

TrimPlan PlanTrim(const Program& program, const TrimOptions& options) {
  TrimPlan plan;
  plan.leaves = LeavesOfCalls(program, options.calls);
  if (!options.steps.empty()) AddSteps(program, options.steps, plan.leaves);
  AddProducers(program, options.producers, plan.leaves);
  if (program.level == analyzer::Level::kAcl) RefuseLostRandomNumbers(program, plan.leaves);
  InputFinder(program, plan).Run();
  return plan;
}

TrimReport Trim(const storage::Reader& reader, const TrimOptions& options) {
  Program program = analyzer::LoadProgram(reader);
  const TrimPlan plan = PlanTrim(program, options);

  TrimReport report;
  report.calls = static_cast<int64_t>(plan.leaves.size());
  report.calls_before = static_cast<int64_t>(program.leaves.size());
  std::set<int64_t> steps;
  for (const int64_t leaf : plan.leaves) steps.insert(program.leaves[leaf].step_index);
  steps.erase(-1);
  report.steps = static_cast<int64_t>(steps.size());

  CountResults(program, plan, report);

  std::map<int64_t, int64_t> ids;
  storage::TraceCopy copy(reader, options.output, options.overwrite);
  AddedLayouts layouts(copy);
  copy.CopyRows("meta", "key <> 'schema_version'");
  if (program.level == analyzer::Level::kAcl) {
    const AclNumbers numbers = NumberAclLeaves(program, plan);
    CopyAclLeaves(copy, program, plan, numbers, layouts);
    ids = numbers.ids;
  } else {
    for (const int64_t leaf : plan.leaves) ids[leaf] = program.leaves[leaf].call.call_id;
    CopyKept(copy, program, plan);
  }
  try {
    AddInputs(copy, program, plan, ids, layouts, report);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kTrace) throw;
    throw Error(
        ErrorKind::kTrace,
        std::string(error.what()) + ", or keep the calls that lead to it with @with-producers"_cli);
  }
  copy.database().Execute(
      "UPDATE main.buffer_row SET block = NULL WHERE block NOT IN (SELECT buffer_id FROM "
      "main.buffer_row)");
  // The call that says so may be none of those that are kept.
  if (RecordedSaturation(reader)) copy.SetMeta("results_saturate", "1");
  copy.SetMeta("trimmed_from", reader.path());
  copy.SetMeta("trimmed_selection", options.selection);
  copy.SetMeta("trimmed_calls", fmt::format("{} of {}", report.calls, report.calls_before));
  std::map<int64_t, int64_t> recorded;
  for (const auto& [leaf, id] : ids) recorded.emplace(id, program.leaves[leaf].call.call_id);
  report.renumbered = std::any_of(recorded.begin(), recorded.end(),
                                  [](const auto& pair) { return pair.first != pair.second; });
  if (report.renumbered) {
    std::vector<int64_t> calls;
    for (const auto& [id, call] : recorded) calls.push_back(call);
    copy.SetMeta("trimmed_ids", storage::IntegersText(calls));
  }
  copy.Close();
  std::unique_ptr<storage::Reader> trimmed = copy.ReadBack([](const storage::Reader& trace) {
    analyzer::LoadProgram(trace);
    static_cast<void>(trace.Snapshots());
  });
  try {
    Prove(reader, *trimmed, recorded, options, report);
  } catch (const Error& error) {
    // Work that failed in the recording fails again.
    if (error.kind() != ErrorKind::kDevice || !HoldsFailedWork(program)) throw;
    throw Error(ErrorKind::kUsage, fmt::format("these calls of {} cannot be trimmed: their work "
                                               "fails as it did in the recording ({})",
                                               reader.path(), error.what()));
  }
  trimmed.reset();
  if (!report.refusal.empty()) return report;
  report.bytes = static_cast<int64_t>(std::filesystem::file_size(copy.partial_path()));
  report.bytes_before = static_cast<int64_t>(std::filesystem::file_size(reader.path()));
  copy.Accept();
  return report;
}

}  // namespace acltape::replayer::reproducer
