#include "runtime/device/replay.h"

#include <time.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/device/control.h"
#include "runtime/device/error.h"
#include "runtime/device/futex.h"
#include "runtime/device/profiling_session.h"
#include "runtime/device/standstill.h"

namespace acltape::device {
namespace {

struct ReplayPayload {
  Launch* launch;
};

aclError RunReplay(void* argument) {
  Launch& launch = *static_cast<ReplayPayload*>(argument)->launch;
  return launch.model->Replay(launch);
}

void DropReplay(void* argument) {
  Launch* launch = static_cast<ReplayPayload*>(argument)->launch;
  for (const Launch::Binding& binding : launch->bindings) {
    if (binding.point == nullptr) continue;
    // A record that was not reached must still let its waiters pass.
    if (binding.record) binding.point->Complete();
    if (binding.former != nullptr) binding.former->Release();
    binding.point->Release();
  }
  launch->model->Retire(launch->ticket);
  delete launch;
}

// COND-03, COND-04: a host write during the launch call.
void AssignDefaults(Model& model) {
  for (const Model::Condition& condition : model.conditions) {
    if (condition.assign_default) {
      __atomic_store_n(condition.cell, condition.default_value, __ATOMIC_RELEASE);
    }
  }
  if (model.conditions.empty()) return;
  for (const Model::Node& node : model.nodes) {
    if (node.control == nullptr) continue;
    for (Model* sub_graph : node.control->SubGraphs()) AssignDefaults(*sub_graph);
  }
}

// EXT-04, EXT-05: waits first refer to what is recorded before this launch.
void BindExternals(Model& model, Launch& launch) {
  launch.bindings.resize(model.externals.size());
  for (size_t i = 0; i < model.externals.size(); ++i) {
    const Model::External& external = model.externals[i];
    auto* event = external.event.Get<Event>(HandleKind::kEvent);
    if (event == nullptr) continue;  // destroyed: a client error (CAP-23)
    Launch::Binding& binding = launch.bindings[i];
    binding.record = external.record;
    if (external.record) {
      binding.point = new EventPoint;
      binding.former = event->Publish(binding.point);
    } else {
      binding.point = event->NewestPoint();
    }
  }
}

// EXT-06.
void RollBack(const Model& model, Launch& launch) {
  for (size_t i = 0; i < launch.bindings.size(); ++i) {
    const Launch::Binding& binding = launch.bindings[i];
    if (!binding.record || binding.point == nullptr) continue;
    auto* event = model.externals[i].event.Get<Event>(HandleKind::kEvent);
    if (event != nullptr) event->Retract(binding.point, binding.former);
  }
}

}  // namespace

aclError LaunchModel(Model& model, Stream& stream, const char* call) {
  // The order of the stream is not enough for a model with external events. A launch that is
  // refused has to take back what it published, before the task that carries it is dropped.
  std::unique_lock launch_lock(model.launch_mutex, std::defer_lock);
  if (!model.externals.empty()) launch_lock.lock();
  uint64_t ticket = 0;
  if (!model.Enqueue(&ticket)) {
    return Fail(ACL_ERROR_RT_MODEL_EXECUTE,
                "%s: model %u is not ready: it is being updated, faulty or not completed", call,
                model.id());
  }
  if (aclError code = model.context().device().queues.Bind(model, call); code != ACL_SUCCESS) {
    model.Retire(ticket);
    return code;
  }
  auto* launch = new Launch{&model, ticket, Interleaving::OfLaunch(model, ticket), {}};
  BindExternals(model, *launch);
  Task task = MakeTask(TaskKind::kModel, "MODEL_EXECUTE", ReplayPayload{launch}, RunReplay);
  task.drop = DropReplay;
  if (aclError refusal = stream.context().Refusal(); refusal != ACL_SUCCESS) {
    RollBack(model, *launch);
    task.Drop();
    return Fail(refusal, "%s: %s", call, stream.context().FirstFailure().c_str());
  }
  AssignDefaults(model);
  return stream.Submit(std::move(task));
}

aclError NoteReplayFailure(Runner& runner, const Model& model, aclError code,
                           const std::string& task) {
  const char* message = TakeOwnMessage();
  std::string text = "in a replay of model " + std::to_string(model.id());
  if (code == ACL_ERROR_RT_AICORE_EXCEPTION) {
    text = "its kernel failed with " + std::to_string(code) + " " + text;
    code = ACL_ERROR_RT_MODEL_EXECUTE;
  }
  if (message != nullptr) text += std::string("; ") + message;
  runner.stream()->NoteFailure(code, task, text.c_str());
  return code;
}

void Model::LayOut() {
  steps_.clear();
  step_nodes_.clear();
  may_block_ = false;
  for (size_t i = 0; i < nodes.size(); ++i) {
    Node& node = nodes[i];
    if (node.disabled) continue;
    if (node.control != nullptr) {
      for (const Model* sub_graph : node.control->SubGraphs()) may_block_ |= sub_graph->may_block_;
    } else if (node.task.run == nullptr) {
      continue;
    }
    may_block_ |= node.task.ready != nullptr;
    steps_.push_back({node.task.run, node.task.Argument()});
    step_nodes_.push_back(static_cast<uint32_t>(i));
  }
  interleaved_ = kind_ == Kind::kBuilt ||
                 (members.size() > 1 &&
                  (may_block_ || GetProfile().jitter_seed != 0 || GetProfile().order != 0));
}

Interleaving Interleaving::OfLaunch(const Model& model, uint64_t ticket) {
  const Profile& profile = GetProfile();
  if (profile.jitter_seed != 0) return {profile.jitter_seed + ticket, kNone};
  const size_t streams = model.members.size();
  if (profile.order == 0 || streams < 2) return {};
  static std::mutex mutex;
  static auto& launches = *new std::map<std::pair<size_t, size_t>, uint64_t>();
  std::lock_guard lock(mutex);
  const uint64_t number = launches[{model.nodes.size(), streams}]++;
  return {0, static_cast<uint32_t>(number % profile.order % streams)};
}

aclError Model::Replay(Launch& launch) {
  Runner& runner = *Runner::Current();
  std::optional<Standstill::Wait> waits_for_turn;
  while (true) {
    uint32_t turn = turn_.load();
    {
      std::lock_guard lock(turn_mutex_);
      if (tickets_.front() == launch.ticket) {
        replaying_ = true;
        aborted_.store(false);
        break;
      }
    }
    if (runner.Interrupted()) return ACL_ERROR_RT_STREAM_ABORT;
    if (!waits_for_turn) waits_for_turn.emplace();
    FutexWait(turn_, turn, 10000000);
  }
  waits_for_turn.reset();
  current_launch_ = &launch;
  runner.set_model_abort(&aborted_);
  for (LiveFlag* live : live_events) live->set.store(0, std::memory_order_release);
  aclError result = RunOnce(runner, launch.interleaving);
  runner.set_model_abort(nullptr);
  current_launch_ = nullptr;
  bool aborted = false;
  {
    std::lock_guard lock(turn_mutex_);
    replaying_ = false;
    aborted = aborted_.load();
  }
  if (!aborted) return result;
  SetMessage("aclmdlRIAbort stopped it");
  NoteReplayFailure(runner, *this, ACL_ERROR_RT_MODEL_ABORT_NORMAL, "MODEL_EXECUTE");
  return ACL_ERROR_RT_MODEL_ABORT_NORMAL;
}

aclError Model::RunOnce(Runner& runner, const Interleaving& interleaving) {
  return interleaved_ ? GraphRun(*this, runner, interleaving).Run()
                      : RunInOrder(runner, interleaving);
}

aclError Model::RunInOrder(Runner& runner, const Interleaving& interleaving) {
  aclError result = ACL_SUCCESS;
  const bool guarded = GetProfile().poison || ProfilingSession::On();
  for (const Step& step : steps_) {
    if (runner.Interrupted()) [[unlikely]] {
      break;
    }
    auto node = [&]() -> Node& {
      return nodes[step_nodes_[static_cast<size_t>(&step - steps_.data())]];
    };
    if (step.run == nullptr) [[unlikely]] {
      Control& control = *node().control;
      // Failures inside have been reported there.
      uint32_t rounds = 0;
      while (Model* sub_graph = control.Choose(rounds++)) {
        aclError code = sub_graph->RunOnce(runner, interleaving);
        if (code != ACL_SUCCESS) result = code;
        if (runner.Interrupted() || context_.Stopped()) return result;
      }
      continue;
    }
    aclError code = guarded ? node().task.RunGuarded() : step.run(step.argument);
    if (code != ACL_SUCCESS) [[unlikely]] {
      if (runner.Interrupted()) break;  // the abort made the task return
      result = NoteReplayFailure(runner, *this, code, DescribeTask(node().task));
      if (context_.Stopped()) break;
    }
  }
  return result;
}

GraphRun::GraphRun(Model& model, Runner& runner, Interleaving interleaving)
    : model_(model),
      runner_(runner),
      random_(interleaving.seed),
      interleaving_(interleaving),
      lanes_(model.members.size()),
      ended_(model.nodes.size(), false),
      order_(model.members.size()) {
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    lanes_[model.nodes[i].member].queue.push_back(static_cast<uint32_t>(i));
  }
  for (size_t i = 0; i < lanes_.size(); ++i) lanes_[i].active = model.members[i].head;
  CheckFinished();
}

aclError GraphRun::Run() {
  // Naps grow while nothing can run, so that a graph that waits for long next to never computes:
  // others tell by that whether a device has stopped.
  constexpr long kShortestNs = 20'000, kLongestNs = 1'000'000;
  timespec nap{0, kShortestNs};
  while (!done()) {
    if (Advance() || done()) {
      nap.tv_nsec = kShortestNs;
      continue;
    }
    if (runner_.Interrupted()) break;
    if (!runner_.stands) runner_.stands.emplace();
    nanosleep(&nap, nullptr);
    nap.tv_nsec = std::min(kLongestNs, nap.tv_nsec + nap.tv_nsec / 8);
  }
  runner_.stands.reset();
  return result_;
}

void GraphRun::CheckFinished() {
  for (const Lane& lane : lanes_) {
    if (lane.active && lane.next < lane.queue.size()) return;
  }
  finished_ = true;
  if (model_.kind() != Model::Kind::kBuilt || end_reached_ || stopped_) return;
  SetMessage("no active stream of the model led to its end task");
  Note(ACL_ERROR_RT_MODEL_EXECUTE, "END_GRAPH");
}

bool GraphRun::Advance() {
  if (runner_.Interrupted()) {
    stopped_ = true;
    return false;
  }
  OrderLanes();
  for (uint32_t index : order_) {
    if (HeadNode(index) == UINT32_MAX || !TryLane(index)) continue;
    CheckFinished();
    return true;
  }
  return false;
}

void GraphRun::OrderLanes() {
  const auto lanes = static_cast<uint32_t>(lanes_.size());
  for (uint32_t i = 0; i < lanes; ++i) order_[i] = i;
  if (interleaving_.seed != 0) {
    std::shuffle(order_.begin(), order_.end(), random_);
  } else if (interleaving_.ahead != Interleaving::kNone) {
    for (uint32_t i = 0; i < lanes; ++i) {
      order_[i] = HeldUpBy((interleaving_.ahead + i) % lanes);
    }
  } else {
    std::sort(order_.begin(), order_.end(),
              [&](uint32_t a, uint32_t b) { return HeadNode(a) < HeadNode(b); });
  }
}

uint32_t GraphRun::HeadNode(uint32_t index) const {
  const Lane& lane = lanes_[index];
  return lane.active && lane.next < lane.queue.size() ? lane.queue[lane.next] : UINT32_MAX;
}

uint32_t GraphRun::HeldUpBy(uint32_t index) const {
  // A chain of waits is no longer than there are lanes, unless they wait for each other.
  for (size_t hops = 0; hops < lanes_.size(); ++hops) {
    const uint32_t head = HeadNode(index);
    if (head == UINT32_MAX) break;
    const Model::Node& node = model_.nodes[head];
    if (node.disabled || node.record == Model::kNoNode) break;
    const auto record = static_cast<size_t>(node.record);
    if (ended_[record]) break;
    index = model_.nodes[record].member;
  }
  return index;
}

bool GraphRun::TryLane(uint32_t index) {
  Lane& lane = lanes_[index];
  uint32_t position = lane.queue[lane.next];
  Model::Node& node = model_.nodes[position];
  if (!node.disabled) {
    if (node.control != nullptr && node.control->conditional()) return AdvanceChild(lane, node);
    if (node.record != Model::kNoNode && !ended_[static_cast<size_t>(node.record)]) return false;
    if (node.task.ready != nullptr && !node.task.ready(node.task.Argument())) return false;
  }
  runner_.stands.reset();
  // Before it runs: a jump sets the lane's place itself.
  End(lane, position);
  if (!node.disabled) RunNode(node, index);
  return true;
}

bool GraphRun::AdvanceChild(Lane& lane, Model::Node& node) {
  if (lane.child == nullptr) {
    Model* sub_graph = node.control->Choose(lane.rounds++);
    if (sub_graph == nullptr) {
      lane.rounds = 0;
      End(lane, lane.queue[lane.next]);
      return true;
    }
    lane.child = std::make_unique<GraphRun>(*sub_graph, runner_, interleaving_);
  }
  bool progressed = lane.child->Advance();
  if (!lane.child->done()) return progressed;
  if (lane.child->result() != ACL_SUCCESS) result_ = lane.child->result();
  if (lane.child->stopped_) stopped_ = true;
  lane.child.reset();
  return true;
}

void GraphRun::RunNode(Model::Node& node, uint32_t lane) {
  aclError code = ACL_SUCCESS;
  if (node.control != nullptr) {
    code = node.control->Act(*this, lane);
  } else if (node.task.run != nullptr) {
    code = node.task.RunGuarded();
  }
  if (code == ACL_SUCCESS) return;
  if (runner_.Interrupted()) {
    stopped_ = true;
    return;
  }
  Note(code, DescribeTask(node.task));
}

void GraphRun::Note(aclError code, const std::string& task) {
  result_ = NoteReplayFailure(runner_, model_, code, task);
  if (model_.context().Stopped()) stopped_ = true;
}

void GraphRun::End(Lane& lane, uint32_t node) {
  ended_[node] = true;
  ++lane.next;
}

void GraphRun::Activate(uint32_t index) {
  Lane& lane = lanes_[index];
  if (lane.active && lane.next < lane.queue.size()) return;  // it runs already
  lane.active = true;
  lane.next = 0;
}

void GraphRun::Jump(uint32_t from, uint32_t to, size_t position) {
  if (from != to) lanes_[from].next = lanes_[from].queue.size();
  lanes_[to].active = true;
  lanes_[to].next = position;
}

}  // namespace acltape::device
