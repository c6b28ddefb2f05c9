#include "analyzer/acl/acl_program.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "generated/meaning/parameter_positions.h"
#include "meaning/acl_operators.h"
#include "meaning/dialects.h"
#include "storage/error.h"
#include "storage/process_choice.h"

namespace acltape::analyzer {
namespace {

using storage::Argument;

void FindUses(const storage::Reader& trace, AclCall& call) {
  for (const ArgumentUse& use : UsesOfAclCall(call.op->name, call.arguments)) {
    if (use.workspace) continue;
    const storage::TensorRef& tensor = call.arguments[use.argument].tensors[use.element];
    (use.write ? call.writes : call.reads)
        .push_back({use.argument, use.element, tensor, &trace.GetLayout(tensor.layout_id)});
  }
}

std::string FormText(const AclCall& call) {
  std::string text = std::to_string(call.call.op_id);
  for (const Argument& argument : call.arguments) {
    if (IsIncidental(argument)) continue;
    text += "|" + std::to_string(static_cast<int>(argument.kind)) + "," +
            std::to_string(argument.integer) + "," + argument.text;
    text.append(reinterpret_cast<const char*>(&argument.real), sizeof argument.real);
    for (const int64_t integer : argument.integers) text += "," + std::to_string(integer);
    for (const double real : argument.reals) {
      text.append(reinterpret_cast<const char*>(&real), sizeof real);
    }
    for (const storage::TensorRef& tensor : argument.tensors) {
      text += "t" + std::to_string(tensor.layout_id);
    }
  }
  return text;
}

// Sorts calls so that one thread can replay the calls of several: a wait moves after the calls that
// began before it ended.
void SortForOneThread(std::vector<AclCall>& calls) {
  std::vector<int64_t> begins;
  begins.reserve(calls.size());
  for (const AclCall& call : calls) begins.push_back(call.call.begin_ns);
  if (!std::is_sorted(begins.begin(), begins.end())) return;  // no common clock: by call_id
  std::vector<std::pair<int64_t, size_t>> keys(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    auto place = static_cast<int64_t>(i);
    if (WaitsOnHost(calls[i].kind()) || calls[i].IsPageableCopy()) {
      const auto later = std::lower_bound(begins.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                          begins.end(), calls[i].call.end_ns);
      place = std::max<int64_t>(place, later - begins.begin() - 1);
    }
    keys[i] = {place, i};
  }
  // At an equal place a wait moves after the call that stays, because the wait ended after that
  // call had begun.
  std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first < b.first;
    const bool a_stays = a.first == static_cast<int64_t>(a.second);
    const bool b_stays = b.first == static_cast<int64_t>(b.second);
    return a_stays > b_stays;
  });
  std::vector<AclCall> sorted;
  sorted.reserve(calls.size());
  for (const auto& [place, i] : keys) sorted.push_back(std::move(calls[i]));
  calls = std::move(sorted);
}

// Sorts calls into captures, task groups and updates, and marks those that had no effect.
class GraphFinder {
 public:
  explicit GraphFinder(AclProgram& program) : program_(program) {}

  void Find() {
    FindModels();
    for (const AclCall& call : program_.calls) NoteSharedNotify(call);
    for (AclCall& call : program_.calls) Place(call);
    for (const auto& [stream, begin] : updates_) Abandon(begin.calls);
    for (const auto& [stream, begin] : captures_) Abandon({begin});
  }

 private:
  struct Update {
    std::vector<int64_t> calls;
  };

  // Finds the graphs that were captured or built well. A sub-graph lives and dies with its parent.
  void FindModels() {
    std::map<int64_t, int64_t> sub_graph_of;  // by stream that captures into one
    std::map<int64_t, std::vector<int64_t>> sub_graphs;
    for (const AclCall& call : program_.calls) {
      if (call.call.status != 0) continue;
      const int64_t object = call.Integer(call.function->object);
      switch (call.kind()) {
        case AclCallKind::kCaptureBegin:
          sub_graph_of[call.stream()] = object;
          break;
        case AclCallKind::kCaptureEnd: {
          // The end of a capture into a sub-graph need not name it (rule COND-10).
          const int64_t sub_graph = sub_graph_of[call.stream()];
          const int64_t id = sub_graph != 0 ? sub_graph : object;
          program_.models[id].model_id = id;
          program_.models[id].origin = call.stream();
          break;
        }
        case AclCallKind::kBuildEnd:
          program_.models[object].model_id = object;
          break;
        case AclCallKind::kConditionTask: {
          if (call.arguments.empty()) break;
          const std::vector<int64_t>& numbers = call.arguments[0].integers;
          for (size_t i = kFirstSubGraph; i < numbers.size(); ++i) {
            sub_graphs[call.call.model_id].push_back(numbers[i]);
          }
          break;
        }
        default:
          break;
      }
    }
    for (const auto& [parent, graphs] : sub_graphs) {
      for (const int64_t graph : graphs) {
        if (const auto found = program_.models.find(graph); found != program_.models.end()) {
          found->second.parent = parent;
        }
      }
    }
    for (bool changed = true; changed;) {
      changed =
          std::erase_if(program_.models, [&](const auto& entry) {
            return entry.second.parent != 0 && program_.models.count(entry.second.parent) == 0;
          }) != 0;
    }
    for (const auto& [parent, graphs] : sub_graphs) {
      if (program_.models.count(parent) != 0) program_.models[parent].sub_graphs = graphs;
    }
  }

  // True if the call begins a capture into a sub-graph whose parent did not end well.
  bool IsOfLostGraph(const AclCall& call) const {
    return call.kind() == AclCallKind::kCaptureBegin &&
           call.function->variant == AclVariant::kSubGraph &&
           program_.models.count(call.Integer(call.function->object)) == 0;
  }

  void Abandon(const std::vector<int64_t>& calls) {
    for (const int64_t index : calls) program_.calls[index].fate = AclFate::kAbandoned;
  }

  void Place(AclCall& call) {
    if (WaitedForFailedWork(call.kind(), call.call.status)) {
      program_.task_errors.insert(call.call.status);
      for (const auto& [stream, calls] : unseen_) {
        if (call.stream() != 0 && stream != call.stream()) continue;
        for (const int64_t index : calls) program_.calls[index].suspect = true;
      }
      return;
    }
    if (call.call.status != 0) {
      call.fate = AclFate::kFailed;
      // A failed end has ended the capture all the same (rule CAP-20). An end on a stream that did
      // not begin the capture has not (rule CAP-14), and the capture stays open here.
      if (call.kind() == AclCallKind::kCaptureEnd) CloseCapture(call.stream(), false);
      if (call.kind() == AclCallKind::kUpdateEnd) CloseUpdate(call, false);
      return;
    }
    if (IsOfLostGraph(call)) {
      call.fate = AclFate::kAbandoned;
      lost_captures_.insert(call.stream());
      return;
    }
    if (call.kind() == AclCallKind::kCaptureEnd && lost_captures_.erase(call.stream()) != 0) {
      call.fate = AclFate::kAbandoned;
      return;
    }
    const int64_t model = call.call.model_id;
    const bool stored = model != 0 && call.kind() != AclCallKind::kCaptureBegin &&
                        call.kind() != AclCallKind::kCaptureEnd;
    if (stored && program_.models.count(model) == 0) {
      call.fate = AclFate::kAbandoned;
      return;
    }
    if (WaitsForAnotherProcess(call)) {
      call.fate = AclFate::kForeign;
      return;
    }
    if (stored) program_.models[model].calls.push_back(call.index);
    NoteUnseen(call);
    PlaceByKind(call);
  }

  // True for a wait for a notify that other processes have too, when no record of this process is
  // there for it: another process recorded it.
  bool WaitsForAnotherProcess(const AclCall& call) {
    if (call.kind() == AclCallKind::kNotifyRecord) {
      records_[call.Integer(call.function->object)] = true;
    } else if (call.kind() == AclCallKind::kNotifyWait) {
      const int64_t notify = call.Integer(call.function->object);
      return !std::exchange(records_[notify], false) && shared_notifies_.count(notify) != 0;
    }
    return false;
  }

  void NoteSharedNotify(const AclCall& call) {
    const bool imported = call.function->variant == AclVariant::kOpenedNotify;
    if (call.call.status != 0 || (!imported && call.op->name != "aclrtNotifyGetExportKey")) return;
    shared_notifies_.insert(call.Integer(imported ? call.function->object : 0));
  }

  // Notes work whose end the host has not seen yet.
  void NoteUnseen(const AclCall& call) {
    if (call.kind() == AclCallKind::kDeviceSync) unseen_.clear();
    if (call.kind() == AclCallKind::kStreamSync) unseen_.erase(call.stream());
    const bool work = IsDeviceWork(call.kind()) && call.call.model_id == 0;
    if (work || IsExecution(call.kind())) {
      unseen_[call.stream()].push_back(call.index);
    }
  }

  void PlaceByKind(AclCall& call) {
    switch (call.kind()) {
      case AclCallKind::kCaptureBegin:
        captures_[call.stream()] = call.index;
        return;
      case AclCallKind::kCaptureEnd:
        CloseCapture(call.stream(), true);
        return;
      case AclCallKind::kGroupBegin:
        call.group = static_cast<int64_t>(program_.groups.size());
        open_groups_[call.stream()] = call.group;
        program_.groups.push_back({call.call.model_id, {}});
        return;
      case AclCallKind::kGroupEnd: {
        const auto open = open_groups_.find(call.stream());
        if (open == open_groups_.end()) return;
        call.group = open->second;
        if (program_.groups[call.group].model_id == 0) {
          program_.groups[call.group].model_id = call.call.model_id;
        }
        group_of_handle_[call.Integer(call.function->object)] = open->second;
        open_groups_.erase(open);
        return;
      }
      case AclCallKind::kUpdateBegin: {
        const auto group = group_of_handle_.find(call.Integer(call.function->object));
        if (group != group_of_handle_.end()) call.group = group->second;
        updates_[call.stream()].calls = {call.index};
        return;
      }
      case AclCallKind::kUpdateEnd:
        CloseUpdate(call, true);
        return;
      case AclCallKind::kConditionCreate: {
        constexpr size_t kCell = meaning::position::aclmdlRICondHandleCreate::kCell;
        if (call.arguments.size() > kCell && !call.arguments[kCell].tensors.empty()) {
          program_.cells[call.arguments[kCell].tensors[0].buffer_id] = call.index;
        }
        return;
      }
      case AclCallKind::kStreamBind:
        program_.bound_streams.insert(call.stream());
        return;
      case AclCallKind::kConditionTask:
      case AclCallKind::kModelBranch:
        MarkBranches(call.call.model_id);
        return;
      case AclCallKind::kExecute:
      case AclCallKind::kExecuteNow: {
        const auto model = program_.models.find(call.Integer(call.function->object));
        if (model != program_.models.end()) ++model->second.executions;
        return;
      }
      default:
        break;
    }
    const auto group = open_groups_.find(call.stream());
    if (group != open_groups_.end() && call.kind() == AclCallKind::kOperator) {
      call.group = group->second;
      program_.groups[group->second].calls.push_back(call.index);
    }
    const auto update = updates_.find(call.stream());
    if (update != updates_.end() && call.kind() == AclCallKind::kOperator) {
      call.group = program_.calls[update->second.calls.front()].group;
      update->second.calls.push_back(call.index);
    }
  }

  void MarkBranches(int64_t model_id) {
    while (program_.models.count(model_id) != 0) {
      program_.models[model_id].branches = true;
      model_id = program_.models[model_id].parent;
    }
  }

  void CloseCapture(int64_t stream, bool good) {
    const auto open = captures_.find(stream);
    if (open == captures_.end()) return;
    if (!good) {
      Abandon({open->second});
      AbandonStored(program_.calls[open->second]);
    }
    captures_.erase(open);
  }

  // A capture into a sub-graph that failed can be repeated (rule COND-10). What the failed one
  // stored is no part of the graph.
  void AbandonStored(const AclCall& begin) {
    if (begin.function->variant != AclVariant::kSubGraph) return;
    const auto graph = program_.models.find(begin.Integer(begin.function->object));
    if (graph == program_.models.end()) return;
    std::erase_if(graph->second.calls, [&](int64_t stored) {
      if (stored < begin.index) return false;
      program_.calls[stored].fate = AclFate::kAbandoned;
      return true;
    });
  }

  void CloseUpdate(AclCall& call, bool good) {
    const auto open = updates_.find(call.stream());
    if (open == updates_.end()) return;
    call.group = program_.calls[open->second.calls.front()].group;
    if (!good || call.group < 0) Abandon(open->second.calls);
    if (call.group < 0) Abandon({call.index});
    updates_.erase(open);
  }

  AclProgram& program_;
  std::unordered_map<int64_t, std::vector<int64_t>> unseen_;  // by stream
  std::map<int64_t, int64_t> captures_;     // stream to the call that began its capture
  std::map<int64_t, int64_t> open_groups_;  // stream to group
  std::set<int64_t> shared_notifies_;       // by recorded address
  std::map<int64_t, bool> records_;    // notifies that this process recorded and did not wait for
  std::map<int64_t, Update> updates_;  // stream to the calls of its open update
  std::map<int64_t, int64_t> group_of_handle_;
  std::set<int64_t> lost_captures_;  // streams of open captures into lost sub-graphs
};

void FindBuffers(AclProgram& program) {
  const auto note = [&](const AclCall& call, int64_t index) {
    for (const Argument& argument : call.arguments) {
      for (const storage::TensorRef& tensor : argument.tensors) {
        if (tensor.buffer_id == 0) continue;
        AclBuffer& buffer = program.buffers[tensor.buffer_id];
        const storage::Buffer& row = program.trace->GetBuffer(tensor.buffer_id);
        buffer.bytes = std::max(
            {buffer.bytes, row.bytes, program.trace->GetLayout(tensor.layout_id).EndByte()});
        const storage::Layout& layout = program.trace->GetLayout(tensor.layout_id);
        buffer.touched.Add(layout.FirstByte(), layout.EndByte());
        buffer.host = row.device == 0 && program.trace->HasBuffer(tensor.buffer_id);
        if (buffer.uses.empty() || buffer.uses.back() != index) buffer.uses.push_back(index);
      }
    }
  };
  for (const AclCall& call : program.calls) {
    if (call.fate != AclFate::kIssued) continue;
    if (IsDeviceWork(call.kind())) note(call, call.index);
    if (!IsExecution(call.kind())) continue;
    const int64_t model = call.Integer(call.function->object);
    for (const int64_t stored : program.StoredCalls(model)) {
      note(program.calls[stored], call.index);
    }
    for (const AclGroup& group : program.groups) {
      if (group.model_id != model) continue;
      for (const int64_t stored : group.calls) note(program.calls[stored], call.index);
    }
  }
  // Contents may reach over several uses, and over the bytes between them.
  for (const AclCall& call : program.calls) {
    for (const auto* snapshots : {&call.before, &call.after}) {
      for (const storage::Snapshot& snapshot : *snapshots) {
        const auto buffer = program.buffers.find(snapshot.tensor.buffer_id);
        if (buffer == program.buffers.end()) continue;
        const storage::Layout& layout = program.trace->GetLayout(snapshot.tensor.layout_id);
        buffer->second.touched.Add(layout.FirstByte(), layout.EndByte());
      }
    }
  }
  // An update's launches run where the graph runs. Their buffers live until its last execution.
  std::map<int64_t, int64_t> last_execution;  // by model
  for (const AclCall& call : program.calls) {
    if (!IsExecution(call.kind())) continue;
    last_execution[call.Integer(call.function->object)] = call.index;
  }
  for (const AclCall& call : program.calls) {
    if (call.group < 0 || call.fate != AclFate::kIssued || call.call.model_id != 0 ||
        call.kind() != AclCallKind::kOperator) {
      continue;
    }
    note(call, std::max(call.index, last_execution[program.groups[call.group].model_id]));
  }
}

// Finds waits for a value in memory that no recorded call writes: the host writes it, or a kernel
// or a process that the trace does not know, or it held the value from the start.
void FindUnreleasedWaits(AclProgram& program) {
  std::map<int64_t, ByteSet> written;  // by buffer
  for (const AclCall& call : program.calls) {
    if (call.fate != AclFate::kIssued) continue;
    for (const TensorUse& use : call.writes) {
      written[use.tensor.buffer_id].Add(use.layout->FirstByte(), use.layout->EndByte());
    }
  }
  for (const AclCall& call : program.calls) {
    if (call.fate != AclFate::kIssued || call.kind() != AclCallKind::kValueWait) continue;
    const TensorUse* word = call.Use(meaning::position::aclrtValueWait::kDevAddr);
    const bool released =
        word != nullptr && !written[word->tensor.buffer_id]
                                .Within(word->layout->FirstByte(), word->layout->EndByte())
                                .empty();
    if (!released) program.unreleased_waits.insert(call.index);
  }
}

bool WaitsForLaterWork(const AclProgram& program) {
  for (const AclCall& call : program.calls) {
    if (call.fate != AclFate::kIssued || program.unreleased_waits.count(call.index) != 0) continue;
    if (call.kind() == AclCallKind::kValueWait || call.kind() == AclCallKind::kNotifyWait) {
      return true;
    }
    if (call.kind() != AclCallKind::kEventWait) continue;
    if (program.IsExternal(call)) return true;
  }
  return false;
}

// The step of a call, found in logarithmic time. Ranges of several threads may lie in each other;
// then it is the last one that begins before the call and holds it.
class StepsByCall {
 public:
  explicit StepsByCall(std::vector<storage::Step> steps) : steps_(std::move(steps)) {
    std::stable_sort(steps_.begin(), steps_.end(),
                     [](const auto& a, const auto& b) { return a.first_call < b.first_call; });
    int64_t latest = 0;
    for (const storage::Step& step : steps_) {
      latest = std::max(latest, step.last_call);
      latest_end_.push_back(latest);
    }
  }

  std::optional<int64_t> Of(int64_t call) const {
    const auto later = std::upper_bound(
        steps_.begin(), steps_.end(), call,
        [](int64_t id, const storage::Step& step) { return id < step.first_call; });
    for (auto i = later - steps_.begin(); i-- > 0 && latest_end_[i] >= call;) {
      if (steps_[i].last_call >= call) return steps_[i].step;
    }
    return std::nullopt;
  }

 private:
  std::vector<storage::Step> steps_;  // by first call
  std::vector<int64_t> latest_end_;   // latest end of all steps up to this one
};

}  // namespace

bool AclCall::RunsOnItsStream() const {
  if (kind() == AclCallKind::kExecute) return true;
  return call.model_id == 0 && group < 0 && ChangesMemory(kind()) && !WaitsOnHost(kind());
}

bool AclCall::IsPageableCopy() const { return analyzer::IsPageableCopy(*function, arguments); }

int64_t AclCall::Integer(int position) const {
  if (position < 0 || position >= static_cast<int>(arguments.size())) return 0;
  return arguments[position].integer;
}

const TensorUse* AclCall::Use(int position, int element) const {
  for (const std::vector<TensorUse>* uses : {&reads, &writes}) {
    for (const TensorUse& use : *uses) {
      if (use.argument == position && use.element == element) return &use;
    }
  }
  return nullptr;
}

const storage::Snapshot* AclCall::Before(int position) const {
  for (const storage::Snapshot& snapshot : before) {
    if (snapshot.position == position) return &snapshot;
  }
  return nullptr;
}

std::vector<int64_t> AclProgram::StoredCalls(int64_t model_id) const {
  const auto model = models.find(model_id);
  if (model == models.end()) return {};
  std::vector<int64_t> stored = model->second.calls;
  for (const int64_t graph : model->second.sub_graphs) {
    const std::vector<int64_t> inside = StoredCalls(graph);
    stored.insert(stored.end(), inside.begin(), inside.end());
  }
  return stored;
}

std::vector<int64_t> AclProgram::CertainCalls(int64_t model_id) const {
  const auto model = models.find(model_id);
  if (model == models.end()) return {};
  std::vector<int64_t> certain;
  for (const int64_t stored : model->second.calls) {
    if (calls[stored].kind() == AclCallKind::kModelBranch) break;
    certain.push_back(stored);
  }
  return certain;
}

std::string AclProgram::Describe(const AclCall& call) const {
  return "call " + std::to_string(call.call.call_id) + " " + call.op->FullName();
}

bool AclProgram::HasExternalEvent(const AclCall& call) const {
  return event_kinds.IsExternal(call.Integer(call.function->object));
}

bool AclProgram::IsExternal(const AclCall& call) const {
  return IsExternalFlag(call.Integer(call.function->detail)) || HasExternalEvent(call);
}

AclProgram LoadAclProgram(const storage::Reader& trace) {
  AclProgram program;
  program.trace = &trace;
  const int64_t only = storage::DefaultProcess(trace);
  const std::set<int64_t> left_out = storage::ThreadsLeftOut(trace);
  for (const storage::Handle& stream : trace.Streams()) {
    if (only == 0 || stream.process_id == only) program.streams.emplace(stream.id, stream);
  }
  program.event_kinds = EventKinds(trace.Events());
  std::set<int64_t> acl_calls;
  std::set<int64_t> threads;
  std::unordered_map<const storage::Op*, bool> communicates;
  for (storage::Call& row : trace.Calls(/*leaves_only=*/false)) {
    const storage::Op& op = trace.GetOp(row.op_id);
    if (!meaning::IsAclDialect(op.dialect) || left_out.contains(row.thread_id)) continue;
    acl_calls.insert(row.call_id);
    // Calls that the library makes by itself are part of the program's call.
    if (acl_calls.count(row.parent_id) != 0) continue;
    AclCall call;
    call.op = &op;
    call.function = &FindAclFunction(op.name);
    const auto [known, is_new] = communicates.try_emplace(&op, false);
    if (is_new) known->second = meaning::Communicates(op.name);
    call.communicates = known->second;
    call.arguments = trace.Arguments(row);
    call.call = std::move(row);
    threads.insert(call.call.thread_id);
    program.calls.push_back(std::move(call));
  }
  if (program.calls.empty()) {
    throw Error(ErrorKind::kTrace, trace.path() + " holds no call of the ACL interface");
  }
  storage::RequireOneProcess(trace, threads);
  program.threads = static_cast<int64_t>(threads.size());
  if (threads.size() > 1) SortForOneThread(program.calls);

  std::unordered_map<int64_t, size_t> index_of;
  std::map<std::string, int64_t> forms;
  const StepsByCall steps(trace.Steps());
  for (size_t i = 0; i < program.calls.size(); ++i) {
    AclCall& call = program.calls[i];
    call.index = static_cast<int64_t>(i);
    if (call.call.stream_id == 0 && call.function->stream >= 0) {
      call.call.stream_id = call.Integer(call.function->stream);
    }
    index_of.emplace(call.call.call_id, i);
    if (call.kind() == AclCallKind::kEventCreate || call.kind() == AclCallKind::kEventReset) {
      if (call.call.status == 0) {
        program.event_kinds.Note(*call.function, call.Integer(call.function->object));
      }
    }
    FindUses(trace, call);
    call.form = forms.emplace(FormText(call), static_cast<int64_t>(forms.size())).first->second;
    call.step = steps.Of(call.call.call_id).value_or(call.step);
  }
  for (storage::Snapshot& snapshot : trace.Snapshots()) {
    const auto found = index_of.find(snapshot.call_id);
    if (found == index_of.end()) continue;
    AclCall& call = program.calls[found->second];
    program.has_results = program.has_results || snapshot.after;
    (snapshot.after ? call.after : call.before).push_back(std::move(snapshot));
  }
  GraphFinder(program).Find();
  FindBuffers(program);
  FindUnreleasedWaits(program);
  program.waits_for_later_work = WaitsForLaterWork(program);
  std::set<int64_t> devices;
  for (const auto& [id, stream] : program.streams) {
    devices.insert(stream.device);
  }
  program.devices = static_cast<int64_t>(devices.size());
  return program;
}

}  // namespace acltape::analyzer
