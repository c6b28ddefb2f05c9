// Tells signals to the whole process group from signals to this process alone. What the group gets
// the recorded program has already, so it is not passed on. The system does not say which of both a
// signal is, so a small process of the group takes signals and reports them.
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <cstdint>

namespace acltape::collector {

class GroupWitness {
 public:
  // Starts the process. It ends with this one, also when this one is killed. Without it, as where
  // no process can be started, no signal counts as one of the group.
  GroupWitness();
  ~GroupWitness();
  GroupWitness(const GroupWitness&) = delete;
  GroupWitness& operator=(const GroupWitness&) = delete;

  // True if the group got this signal now: call it when this process got it. Waits for the report
  // for a moment. SIGINT, SIGTERM, SIGHUP and SIGQUIT are reported.
  bool Saw(int number);

 private:
  // Takes what the process has reported.
  void TakeReports();

  pid_t process_ = -1;
  int reports_ = -1;                          // a pipe
  std::array<uint64_t, _NSIG> seen_at_ = {};  // the newest report of each signal; 0: none
};

}  // namespace acltape::collector
