// Queues of messages by number, and routes between them (QUE-01 to QUE-07).
//
// Note [Routes]
// A route moves each message of its source to its destination; a source with several routes gives
// each destination the message. Nothing of its own does this: every call that adds a message, takes
// one or binds a route moves what can be moved before it returns. A message leaves its source when
// all destinations have room, so that a full one holds back the others, and none loses a message.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace acltape::device {

// Destinations of a route share the bytes; nobody writes them.
struct QueueMessage {
  std::vector<char> data;
  std::vector<char> user;  // at most kMostUserBytes
};

inline constexpr size_t kMostUserBytes = 96;

enum class QueueOutcome {
  kDone,
  kNoQueue,  // there is none of this number, or it was destroyed meanwhile
  kFull,
  kEmpty,
  kTooLong,  // the message has more bytes than there is room for; it stays in the queue
};

using QueueRoute = std::pair<uint32_t, uint32_t>;  // source, destination

class MessageQueues {
 public:
  // The queues of the process; never destroyed.
  static MessageQueues& Get();

  // An empty name stands for one that no other queue has. False when the name is in use.
  bool Create(const std::string& name, uint32_t depth, uint32_t* id);
  // Its routes end with it, and who waits for it is woken.
  bool Destroy(uint32_t id);

  QueueOutcome Send(uint32_t id, QueueMessage&& message, int32_t timeout_ms);
  // Waits for a message. Takes it when it has at most `room` bytes; `bytes` tells how many it has.
  QueueOutcome Receive(uint32_t id, size_t room, int32_t timeout_ms,
                       std::shared_ptr<const QueueMessage>* message, size_t* bytes);

  // Says what keeps each route from being bound; null: it is bound. Messages move when all are.
  std::vector<const char*> Bind(const std::vector<QueueRoute>& routes);
  // False when it is not bound.
  bool Unbind(const QueueRoute& route);
  std::vector<QueueRoute> Routes() const;

 private:
  struct Queue {
    std::string name;
    size_t depth;
    std::deque<std::shared_ptr<const QueueMessage>> messages;
  };

  Queue* Find(uint32_t id);
  const char* BindOne(const QueueRoute& route);
  bool Reaches(uint32_t from, uint32_t to) const;
  std::vector<Queue*> Destinations(uint32_t source);
  // Note [Routes].
  void MoveAlongRoutes();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t newest_ = 0;
  std::map<uint32_t, Queue> queues_;
  std::set<QueueRoute> routes_;
};

}  // namespace acltape::device
