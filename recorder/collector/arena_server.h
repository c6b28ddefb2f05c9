// Gives the arena to processes that ask for it, because they cannot open its path
// (Note [Asking for the arena] in recorder/wire/arena_request.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "recorder/collector/arena_owner.h"

namespace acltape::collector {

class ArenaServer {
 public:
  // Without such a socket nobody can ask; the recording goes on.
  explicit ArenaServer(ArenaOwner& arena);
  ~ArenaServer();
  ArenaServer(const ArenaServer&) = delete;
  ArenaServer& operator=(const ArenaServer&) = delete;

  // The text of wire::kSocketVariable, empty without a socket.
  const std::string& address() const { return address_; }

  // Waits so long for requests, and answers those that came. For one thread.
  void Serve(int milliseconds);

  // Requests whose process did not wait for the answer.
  uint64_t unanswered() const { return unanswered_.load(); }

  // Processes that could not map the arena.
  uint64_t not_attached() const { return not_attached_.load(); }

  // Nobody is heard any more, and those that ask learn it at once.
  void Close();

 private:
  enum class Next { kNothingWaits, kServed, kStranger };
  Next ServeOne();

  const int arena_;
  const bool tells_numbers_;  // the kernel's numbers of processes are those of /proc
  int socket_ = -1;
  std::string address_;
  std::atomic<uint64_t> unanswered_{0};
  std::atomic<uint64_t> not_attached_{0};
};

}  // namespace acltape::collector
