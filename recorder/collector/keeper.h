// A second process that outlives the collector and the recorded program.
//
// Note [What lies in the rings is kept]. Between two looks of the collector records lie in the
// rings alone, in shared memory that ends with its last holder. When program and collector are
// killed at the same moment, also with their whole process group, nobody else would hold it. So a
// keeper does: a child of the collector in a session of its own, which sleeps until the collector
// closes its end of a socket, as the kernel does for it whatever killed it. Then the keeper empties
// the rings into the spool and goes on doing so until the program has ended (takeover.h). The next
// command that opens the trace takes the spool in (fold.h).
//
// A file in place of the shared memory would outlive every process. But a mapped file can be cut by
// whoever may write it, and its disk can fail to give a page back: both end the recorded program
// with SIGBUS. Memory that is sealed cannot be cut. The program's stores would also wait for a disk
// that is slow, because the kernel stops writes to a page that it is writing back.
//
// The keeper holds the shared memory, the spool, the claim of the trace (storage/file_claim.h), so
// that no command takes the spool in too early, and the socket at which processes ask for the
// shared memory. It holds no terminal, no pipe and no folder. It costs a sleeping process and what
// the collector had in memory when it began. Where the system starts no process for it the
// recording goes on, and the ledger says what is missing.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "recorder/collector/takeover.h"

namespace acltape::collector {

class Keeper {
 public:
  Keeper() = default;
  ~Keeper() { End(); }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // Starts the keeper; 0, or the number of the error for which there is none. `claim`: the
  // descriptor that claims the trace. When this returns, a kill of the process group does not reach
  // the keeper.
  int Start(const Takeover& job, int claim) noexcept;
  // Ends the keeper and waits for it: nothing lies in the rings that the trace needs.
  void End() noexcept;

 private:
  pid_t pid_ = -1;
  int socket_ = -1;  // closed by the kernel when the collector dies
};

}  // namespace acltape::collector
