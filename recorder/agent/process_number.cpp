// Learns the number by which the collector knows this process.
#include "recorder/wire/process_number.h"

#include <errno.h>
#include <unistd.h>

#include "recorder/agent/arena_request.h"
#include "recorder/agent/process.h"

namespace acltape::agent {
namespace {

uint32_t AskForNumber(const char* socket) {
  const ArenaOffer offer = AskForArena(socket);
  if (offer.fd >= 0) close(offer.fd);
  return offer.pid;
}

uint32_t Learn(Process& process) {
  if (process.sandboxed.load()) return 0;  // every way to learn it asks the system
  const wire::ArenaHeader& arena = *process.arena;
  const bool here = arena.pid_namespace != 0 && wire::PidNamespace() == arena.pid_namespace;
  process.elsewhere.store(!here);
  if (here) return static_cast<uint32_t>(getpid());
  if (process.offered_number != 0) return process.offered_number;
  const bool same_proc = arena.proc_device != 0 && wire::ProcDevice() == arena.proc_device;
  const uint32_t read = same_proc ? wire::NumberInProc() : 0;
  return read != 0 ? read : AskForNumber(arena.socket);
}

}  // namespace

uint32_t ProcessNumber() {
  Process& process = ThisProcess();
  uint32_t number = process.number.load();
  if (number != 0) return number;
  // Calls of the system may fail here, of which the program must not see anything.
  const int error = errno;
  number = Learn(process);
  errno = error;
  if (number == 0) number = kNoNumber;
  // Several threads may have learnt it at the same time; one of them counts the failure.
  if (process.number.exchange(number) == 0 && number == kNoNumber) {
    process.arena->processes_without_number.fetch_add(1);
  }
  return number;
}

}  // namespace acltape::agent
