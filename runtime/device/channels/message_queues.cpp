#include "runtime/device/channels/message_queues.h"

#include <algorithm>

#include "runtime/device/channels/timed_wait.h"

namespace acltape::device {

MessageQueues& MessageQueues::Get() {
  static MessageQueues& queues = *new MessageQueues;
  return queues;
}

MessageQueues::Queue* MessageQueues::Find(uint32_t id) {
  const auto found = queues_.find(id);
  return found == queues_.end() ? nullptr : &found->second;
}

bool MessageQueues::Create(const std::string& name, uint32_t depth, uint32_t* id) {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, queue] : queues_) {
    if (!name.empty() && queue.name == name) return false;
  }
  *id = newest_++;
  queues_[*id] = {name, depth, {}};
  return true;
}

bool MessageQueues::Destroy(uint32_t id) {
  const std::lock_guard lock(mutex_);
  if (queues_.erase(id) == 0) return false;
  std::erase_if(routes_,
                [id](const QueueRoute& route) { return route.first == id || route.second == id; });
  MoveAlongRoutes();
  changed_.notify_all();
  return true;
}

QueueOutcome MessageQueues::Send(uint32_t id, QueueMessage&& message, int32_t timeout_ms) {
  std::unique_lock lock(mutex_);
  Queue* queue = nullptr;
  WaitUntil(changed_, lock, timeout_ms, [&] {
    queue = Find(id);
    return queue == nullptr || queue->messages.size() < queue->depth;
  });
  if (queue == nullptr) return QueueOutcome::kNoQueue;
  if (queue->messages.size() >= queue->depth) return QueueOutcome::kFull;
  queue->messages.push_back(std::make_shared<const QueueMessage>(std::move(message)));
  MoveAlongRoutes();
  changed_.notify_all();
  return QueueOutcome::kDone;
}

QueueOutcome MessageQueues::Receive(uint32_t id, size_t room, int32_t timeout_ms,
                                    std::shared_ptr<const QueueMessage>* message, size_t* bytes) {
  std::unique_lock lock(mutex_);
  Queue* queue = nullptr;
  WaitUntil(changed_, lock, timeout_ms, [&] {
    queue = Find(id);
    return queue == nullptr || !queue->messages.empty();
  });
  if (queue == nullptr) return QueueOutcome::kNoQueue;
  if (queue->messages.empty()) return QueueOutcome::kEmpty;
  *bytes = queue->messages.front()->data.size();
  if (*bytes > room) return QueueOutcome::kTooLong;
  *message = std::move(queue->messages.front());
  queue->messages.pop_front();
  MoveAlongRoutes();
  changed_.notify_all();
  return QueueOutcome::kDone;
}

std::vector<const char*> MessageQueues::Bind(const std::vector<QueueRoute>& routes) {
  const std::lock_guard lock(mutex_);
  std::vector<const char*> wrong;
  for (const QueueRoute& route : routes) wrong.push_back(BindOne(route));
  MoveAlongRoutes();
  changed_.notify_all();
  return wrong;
}

const char* MessageQueues::BindOne(const QueueRoute& route) {
  if (Find(route.first) == nullptr || Find(route.second) == nullptr) {
    return "one of its queues does not exist";
  }
  if (routes_.count(route) != 0) return "it is bound already";
  if (Reaches(route.second, route.first)) return "it would close a circle of routes";
  routes_.insert(route);
  return nullptr;
}

bool MessageQueues::Unbind(const QueueRoute& route) {
  const std::lock_guard lock(mutex_);
  return routes_.erase(route) != 0;
}

std::vector<QueueRoute> MessageQueues::Routes() const {
  const std::lock_guard lock(mutex_);
  return {routes_.begin(), routes_.end()};
}

bool MessageQueues::Reaches(uint32_t from, uint32_t to) const {
  if (from == to) return true;
  return std::any_of(routes_.begin(), routes_.end(), [&](const QueueRoute& route) {
    return route.first == from && Reaches(route.second, to);
  });
}

std::vector<MessageQueues::Queue*> MessageQueues::Destinations(uint32_t source) {
  std::vector<Queue*> found;
  for (const QueueRoute& route : routes_) {
    if (route.first == source) found.push_back(Find(route.second));
  }
  return found;
}

void MessageQueues::MoveAlongRoutes() {
  const auto has_room = [](const Queue* queue) { return queue->messages.size() < queue->depth; };
  for (bool moved = true; moved;) {
    moved = false;
    for (auto& [id, source] : queues_) {
      const std::vector<Queue*> destinations = Destinations(id);
      if (destinations.empty()) continue;
      while (!source.messages.empty() &&
             std::all_of(destinations.begin(), destinations.end(), has_room)) {
        for (Queue* destination : destinations) {
          destination->messages.push_back(source.messages.front());
        }
        source.messages.pop_front();
        moved = true;
      }
    }
  }
}

}  // namespace acltape::device
