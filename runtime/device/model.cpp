#include "runtime/device/model.h"

#include <time.h>

#include <algorithm>
#include <random>

#include "runtime/device/error.h"
#include "runtime/device/futex.h"

namespace acltape::device {
namespace {

std::atomic<uint32_t> newest_model_id{0};

}  // namespace

Model::Model(Context& context, uint32_t number, uint32_t capture_mode, uint64_t begin_thread)
    : mode(capture_mode),
      thread(begin_thread),
      context_(context),
      handle_(AllocateHandle(HandleKind::kModel, this)),
      number_(number),
      id_(newest_model_id.fetch_add(1) + 1) {}

Model::~Model() {
  if (handle_ != nullptr) WipeHandle(handle_);
  context_.device().model_numbers.Release(number_);
  for (Node& node : nodes) node.task.Drop();
  for (const Member& member : members) {
    for (uint32_t number : member.hidden_streams) {
      context_.device().stream_numbers.Release(number);
    }
  }
}

bool Model::AddMember(Stream& stream) {
  std::optional<uint32_t> number = context_.device().stream_numbers.Take();
  if (!number) return false;
  members.push_back({&stream, {*number}, GetProfile().queue_depth, kNoNode});
  return true;
}

bool Model::Append(uint32_t member_index, Task& task, int64_t record) {
  Member& member = members[member_index];
  // The last place of a full hidden stream links it to the next one (CAP-04).
  if (member.room == 1) {
    std::optional<uint32_t> number = context_.device().stream_numbers.Take();
    if (!number) return false;
    member.hidden_streams.push_back(*number);
    member.room = GetProfile().queue_depth;
  }
  --member.room;
  member.last_node = static_cast<int64_t>(nodes.size());
  nodes.push_back({task, member_index, record});
  return true;
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

void Model::Close() {
  bool blocks = false;
  for (size_t i = 0; i < nodes.size(); ++i) {
    Task& task = nodes[i].task;
    if (task.run == nullptr) continue;
    blocks |= task.ready != nullptr;
    steps_.push_back({task.run, task.Argument()});
    step_nodes_.push_back(static_cast<uint32_t>(i));
  }
  interleaved_ = members.size() > 1 && (blocks || GetProfile().jitter_seed != 0);
  for (Member& member : members) member.stream = nullptr;  // may be destroyed from now on
  state_.store(State::kReady, std::memory_order_release);
}

uint64_t Model::Enqueue() {
  std::lock_guard lock(turn_mutex_);
  tickets_.push_back(next_ticket_);
  return next_ticket_++;
}

bool Model::Running() const {
  std::lock_guard lock(turn_mutex_);
  return !tickets_.empty();
}

void Model::Retire(uint64_t ticket) {
  std::lock_guard lock(turn_mutex_);
  tickets_.erase(std::find(tickets_.begin(), tickets_.end(), ticket));
  turn_.fetch_add(1);
  // Under the lock: a destroyer that finds no ticket may delete this object.
  if (!tickets_.empty()) FutexWakeAll(turn_);
}

aclError Model::Replay(uint64_t ticket) {
  Runner& runner = *Runner::Current();
  while (true) {
    uint32_t turn = turn_.load();
    {
      std::lock_guard lock(turn_mutex_);
      if (tickets_.front() == ticket) break;
    }
    if (runner.Interrupted()) return ACL_ERROR_RT_STREAM_ABORT;
    FutexWait(turn_, turn, 10000000);
  }
  if (!interleaved_) return RunInOrder(runner);
  uint64_t seed = GetProfile().jitter_seed;
  return RunInterleaved(runner, seed == 0 ? 0 : seed + ticket);
}

aclError Model::RunInOrder(Runner& runner) {
  aclError result = ACL_SUCCESS;
  for (const Step& step : steps_) {
    if (runner.Interrupted()) [[unlikely]]
      break;
    aclError code = step.run(step.argument);
    if (code != ACL_SUCCESS) [[unlikely]] {
      if (runner.Interrupted()) break;  // the abort made the task return
      result = code;
      auto index = static_cast<size_t>(&step - steps_.data());
      NoteFailure(runner, code, nodes[step_nodes_[index]].task.name);
      if (context_.Stopped()) break;
    }
  }
  return result;
}

aclError Model::RunInterleaved(Runner& runner, uint64_t seed) {
  std::vector<std::vector<uint32_t>> queues(members.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    queues[nodes[i].member].push_back(static_cast<uint32_t>(i));
  }
  std::vector<size_t> heads(members.size(), 0);
  std::vector<bool> ended(nodes.size(), false);
  std::mt19937_64 random(seed);
  std::vector<uint32_t> order(members.size());
  aclError result = ACL_SUCCESS;
  size_t left = nodes.size();
  while (left > 0) {
    if (runner.Interrupted()) break;
    // Without a seed the runnable task that was captured first goes first.
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    auto head_node = [&](uint32_t member) {
      return heads[member] < queues[member].size() ? queues[member][heads[member]] : UINT32_MAX;
    };
    if (seed != 0) {
      std::shuffle(order.begin(), order.end(), random);
    } else {
      std::sort(order.begin(), order.end(),
                [&](uint32_t a, uint32_t b) { return head_node(a) < head_node(b); });
    }
    bool progressed = false;
    for (uint32_t member : order) {
      uint32_t index = head_node(member);
      if (index == UINT32_MAX) continue;
      Node& node = nodes[index];
      if (node.record != kNoNode && !ended[static_cast<size_t>(node.record)]) continue;
      if (node.task.ready != nullptr && !node.task.ready(node.task.Argument())) continue;
      if (node.task.run != nullptr) {
        if (aclError code = node.task.Run(); code != ACL_SUCCESS) {
          if (runner.Interrupted()) return result;
          result = code;
          NoteFailure(runner, code, node.task.name);
          if (context_.Stopped()) return result;
        }
      }
      ended[index] = true;
      ++heads[member];
      --left;
      progressed = true;
      break;
    }
    if (!progressed) {
      timespec nap{0, 20000};
      nanosleep(&nap, nullptr);
    }
  }
  return result;
}

void Model::NoteFailure(Runner& runner, aclError code, const char* task_name) {
  const char* message = TakeMessage();
  std::string text = "in a replay of model " + std::to_string(id_) +
                     (message != nullptr ? std::string("; ") + message : "");
  runner.stream()->NoteFailure(code, task_name, text.c_str());
}

}  // namespace acltape::device
