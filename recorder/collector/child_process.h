// The recorded program as a child process: started as execvp would, with the collector's standard
// streams, and waited for. While one exists, signals that would end the collector are held off and
// passed on (see record.h).
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "recorder/collector/group_witness.h"
#include "storage/error.h"

namespace acltape::collector {

// The file that execvp would run. Error kUsage when there is none or it cannot be executed.
std::string FindProgram(const std::string& name);

class ChildProcess {
 public:
  // `environment` ("NAME=value") is added to this process's, replacing equal names.
  // `before_exec` is called with the child's number while the child waits to become the program; it
  // throws nothing. Error kUsage when the program cannot be run.
  ChildProcess(const std::vector<std::string>& command, const std::vector<std::string>& environment,
               const std::function<void(pid_t)>& before_exec);
  // Restores the signals. The child must have ended.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // How often SIGUSR1 has come since the last call; it is kept from the program.
  static int TakeToggles();

  // Passes signals on and, without waiting, looks whether the child has ended.
  bool HasEnded();

  pid_t pid() const { return pid_; }
  int exit_code() const { return exit_code_; }  // once ended, when signal() is 0
  int signal() const { return signal_; }        // the signal that killed it, else 0

 private:
  // True if the program has a signal without us: it, or a terminal, sent it to the process group.
  bool HasAlready(int number, pid_t sender);

  pid_t pid_ = -1;
  std::optional<GroupWitness> witness_;  // a child that comes after all others
  bool ended_ = false;
  int exit_code_ = 0;
  int signal_ = 0;
};

}  // namespace acltape::collector
