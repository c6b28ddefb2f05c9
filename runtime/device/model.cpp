#include "runtime/device/model.h"

#include <algorithm>

#include "runtime/device/capture/task_group.h"
#include "runtime/device/changes.h"
#include "runtime/device/control.h"
#include "runtime/device/error.h"
#include "runtime/device/futex.h"
#include "runtime/device/memory.h"

namespace acltape::device {
namespace {

std::atomic<uint32_t> newest_model_id{0};

}  // namespace

Model::Node::Node(Model* of_model, const Task& what, uint32_t of_member, uint32_t of_stream)
    : model(of_model), task(what), member(of_member), hidden(of_stream) {}

Model::Node::~Node() {
  if (handle != nullptr) WipeHandle(handle);
  if (control != nullptr) {
    for (Model* sub_graph : control->SubGraphs()) delete sub_graph;
  }
  task.Drop();
}

Model::Model(Context& context, Kind kind, uint32_t number)
    : context_(context),
      kind_(kind),
      handle_(AllocateHandle(HandleKind::kModel, this)),
      number_(number),
      id_(newest_model_id.fetch_add(1) + 1),
      state_(kind == Kind::kSubGraph ? State::kEmpty : State::kCapturing) {}

aclError Model::Create(Context& context, Kind kind, const char* call, Model** model) {
  std::optional<uint32_t> number = context.device().model_numbers.Take();
  if (!number) {
    return Fail(ACL_ERROR_RT_NO_MODEL_RESOURCE, "%s: all %u models of device %d are alive", call,
                GetProfile().models, context.device().id);
  }
  *model = new Model(context, kind, *number);
  if ((*model)->handle() != nullptr) return ACL_SUCCESS;
  delete *model;
  *model = nullptr;
  return Fail(ACL_ERROR_RT_NO_MODEL_RESOURCE, "%s: no handle left for a model", call);
}

Model::~Model() {
  if (handle_ != nullptr) WipeHandle(handle_);
  context_.device().queues.Release(*this);
  Clear();
  context_.device().model_numbers.Release(number_);
}

void Model::Clear() {
  open_group = nullptr;
  groups.clear();
  steps_.clear();
  step_nodes_.clear();
  nodes.clear();
  changed.clear();
  for (Task& task : replaced) task.Drop();
  replaced.clear();
  for (Condition& condition : conditions) {
    WipeHandle(condition.handle);
    FreeMemory(condition.cell, MemoryKind::kDevice);
  }
  conditions.clear();
  for (LiveFlag* live : live_events) live->Release();
  live_events.clear();
  externals.clear();
  for (const HiddenStream& hidden : hidden_streams) {
    if (hidden.handle != nullptr) WipeHandle(hidden.handle);
    if (hidden.owns_number) context_.device().stream_numbers.Release(hidden.number);
  }
  hidden_streams.clear();
  members.clear();
  invalidated = false;
}

bool Model::AddMember(Stream& stream) {
  std::optional<uint32_t> number = context_.device().stream_numbers.Take();
  if (!number) return false;
  hidden_streams.push_back({this, *number, true, {}});
  members.push_back({&stream, static_cast<uint32_t>(hidden_streams.size() - 1),
                     GetProfile().queue_depth, kNoNode});
  return true;
}

void Model::BindMember(Stream& stream, bool head) {
  hidden_streams.push_back({this, stream.id(), false, {}});
  members.push_back(
      {&stream, static_cast<uint32_t>(hidden_streams.size() - 1), UINT32_MAX, kNoNode, head});
}

Model::Node& Model::Store(uint32_t member_index, const Task& task) {
  Member& member = members[member_index];
  --member.room;
  hidden_streams[member.newest_hidden].nodes.push_back(static_cast<uint32_t>(nodes.size()));
  Node& node = nodes.emplace_back(this, task, member_index, member.newest_hidden);
  node.sequence = static_cast<uint32_t>(nodes.size() - 1);
  return node;
}

// The last place of a full hidden stream links it to the next one (CAP-04).
bool Model::Cascade(Member& member, uint32_t member_index) {
  std::optional<uint32_t> number = context_.device().stream_numbers.Take();
  if (!number) return false;
  Task link;
  link.kind = TaskKind::kInternal;
  link.name = "STREAM_ACTIVE";
  Node& node = Store(member_index, link);
  node.internal = true;
  node.next_stream = *number;
  hidden_streams.push_back({this, *number, true, {}});
  member.newest_hidden = static_cast<uint32_t>(hidden_streams.size() - 1);
  member.room = GetProfile().queue_depth;
  return true;
}

Model::Node* Model::Append(uint32_t member_index, const Task& task, int64_t record) {
  Member& member = members[member_index];
  if (member.room == 1 && !Cascade(member, member_index)) return nullptr;
  member.last_node = static_cast<int64_t>(nodes.size());
  Node& node = Store(member_index, task);
  node.record = record;
  return &node;
}

int64_t Model::UnjoinedMember() const {
  // A member is joined when another joined member waits on the record that is its last task; the
  // origin is joined by definition. Waits are tasks themselves, so a chain of waits leads on by the
  // last task of each member.
  std::vector<std::vector<uint32_t>> waiters(members.size());
  for (const Node& node : nodes) {
    if (node.record == kNoNode) continue;
    uint32_t recorder = nodes[static_cast<size_t>(node.record)].member;
    if (recorder != node.member && members[recorder].last_node == node.record) {
      waiters[node.member].push_back(recorder);
    }
  }
  std::vector<bool> joined(members.size(), false);
  std::vector<uint32_t> pending = {0};
  joined[0] = true;
  while (!pending.empty()) {
    uint32_t member = pending.back();
    pending.pop_back();
    for (uint32_t recorder : waiters[member]) {
      if (joined[recorder]) continue;
      joined[recorder] = true;
      pending.push_back(recorder);
    }
  }
  auto unjoined = std::find(joined.begin(), joined.end(), false);
  return unjoined == joined.end() ? -1 : unjoined - joined.begin();
}

bool Model::Close() {
  for (size_t i = 0, captured = nodes.size(); i < captured; ++i) {
    const Node& node = nodes[i];
    if (node.task.kind != TaskKind::kEventRecord || node.task.run != nullptr) continue;
    Task reset;
    reset.kind = TaskKind::kInternal;
    reset.name = "EVENT_RESET";
    reset.object_id = node.task.object_id;
    Node* appended = Append(0, reset);
    if (appended == nullptr) return false;
    appended->internal = true;
  }
  for (Member& member : members) member.stream = nullptr;  // may be destroyed from now on
  LayOut();
  set_state(State::kReady);
  return true;
}

bool Model::Enqueue(uint64_t* ticket) {
  std::lock_guard lock(turn_mutex_);
  if (state() != State::kReady) return false;
  tickets_.push_back(next_ticket_);
  *ticket = next_ticket_++;
  return true;
}

bool Model::BeginChange(State* former) {
  std::lock_guard lock(turn_mutex_);
  *former = state();
  if (!tickets_.empty() || (*former != State::kReady && *former != State::kUpdating)) return false;
  set_state(State::kUpdating);
  return true;
}

void Model::Refuse() {
  std::lock_guard lock(turn_mutex_);
  set_state(State::kFault);
}

bool Model::Running() const {
  std::lock_guard lock(turn_mutex_);
  return !tickets_.empty();
}

void Model::Abort() {
  std::lock_guard lock(turn_mutex_);
  if (replaying_) aborted_.store(true);
}

void Model::Retire(uint64_t ticket) {
  std::lock_guard lock(turn_mutex_);
  tickets_.erase(std::find(tickets_.begin(), tickets_.end(), ticket));
  turn_.fetch_add(1);
  // Under the lock: a destroyer that finds no ticket may delete this object.
  if (!tickets_.empty()) FutexWakeAll(turn_);
}

}  // namespace acltape::device
