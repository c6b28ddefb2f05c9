// Gives the arena to processes that ask for it, because they cannot open its path
// (Note [Asking for the arena] in recorder/wire/arena_request.h). Counts in the arena's header
// those that did not wait for the answer, and those that could not map the arena.
#pragma once

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

  // The descriptor of the socket, -1 without one. Still the server's own.
  int socket() const { return socket_; }

  // Nobody is heard any more, and those that ask learn it at once.
  void Close();

 private:
  enum class Next { kNothingWaits, kServed, kStranger };
  Next ServeOne();

  ArenaOwner& arena_;
  const bool tells_numbers_;  // the kernel's numbers of processes are those of /proc
  int socket_ = -1;
  std::string address_;
};

}  // namespace acltape::collector
