#include "recorder/collector/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "storage/pointers.h"

extern char** environ;

namespace acltape::collector {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// Signals that arrived and are to be passed on, one bit each, and who sent them.
std::atomic<unsigned> g_pending{0};
std::atomic<pid_t> g_senders[std::size(kSignals)];
std::atomic<int> g_toggles{0};  // SIGUSR1 that arrived
struct sigaction g_before[std::size(kSignals)];
struct sigaction g_before_toggle;
struct sigaction g_before_child;       // SIGCHLD
struct sigaction g_before_own[_NSIG];  // by number, for OwnSignals

constexpr pid_t kTerminal = -1;  // a sender

void OnSignal(int number, siginfo_t* info, void*) {
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    if (kSignals[i] != number) continue;
    g_senders[i].store(info == nullptr ? 0 : info->si_code == SI_KERNEL ? kTerminal : info->si_pid);
    g_pending.fetch_or(1u << i);
  }
}

// Signals that a program may send to its process group for itself: they end nobody else.
std::vector<int> OwnSignals() {
  std::vector<int> numbers = {SIGUSR2, SIGALRM, SIGPROF, SIGVTALRM, SIGIO, SIGPIPE};
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) numbers.push_back(number);
  return numbers;
}

void OnOwnSignal(int number, siginfo_t* info, void*) {
  // This process wrote to a closed pipe itself.
  if (number != SIGPIPE || info == nullptr || info->si_pid != getpid()) return;
  signal(SIGPIPE, SIG_DFL);
  raise(SIGPIPE);
}

// True when the process is the other one, or was started by it or by what it started.
bool DescendsFrom(pid_t process, pid_t ancestor) {
  for (int generation = 0; process > 1 && generation < 64; ++generation) {
    if (process == ancestor) return true;
    std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
    std::string line;
    std::getline(stat, line);
    const size_t name_end = line.rfind(')');
    if (name_end == std::string::npos || name_end + 4 > line.size()) return false;
    process = std::atoi(line.c_str() + name_end + 4);
  }
  return false;
}

void OnToggle(int) { g_toggles.fetch_add(1); }

// Sets the signals back as they were before.
void RestoreSignals() {
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &g_before[i], nullptr);
  sigaction(SIGUSR1, &g_before_toggle, nullptr);
  sigaction(SIGCHLD, &g_before_child, nullptr);
  for (const int number : OwnSignals()) sigaction(number, &g_before_own[number], nullptr);
}

// If SIGCHLD is ignored, the system forgets how a child has ended. Some launchers pass that on.
void KeepEndsOfChildren() {
  sigaction(SIGCHLD, nullptr, &g_before_child);
  const bool ignored =
      (g_before_child.sa_flags & SA_SIGINFO) == 0 && g_before_child.sa_handler == SIG_IGN;
  if (!ignored && (g_before_child.sa_flags & SA_NOCLDWAIT) == 0) return;
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigemptyset(&action.sa_mask);
  sigaction(SIGCHLD, &action, nullptr);
}

[[noreturn]] void CannotRun(const std::string& name, int number) {
  throw Error(ErrorKind::kUsage,
              fmt::format("cannot run '{}' ({})", name,
                          number == ENOENT ? "no such program" : std::strerror(number)));
}

int WhyNotExecutable(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

std::string_view NameOf(std::string_view assignment) {
  return assignment.substr(0, assignment.find('='));
}

// Receives one object; false when the other end was closed instead.
template <typename T>
bool Receive(int socket, T* object) {
  ssize_t bytes = 0;
  do {
    bytes = recv(socket, object, sizeof(*object), 0);
  } while (bytes < 0 && errno == EINTR);
  return bytes == sizeof(*object);
}
template <typename T>
void Send(int socket, const T& object) {
  static_cast<void>(send(socket, &object, sizeof(object), MSG_NOSIGNAL));
}

}  // namespace

std::string FindProgram(const std::string& name) {
  if (name.empty()) CannotRun(name, ENOENT);
  if (name.find('/') != std::string::npos) {
    const int number = WhyNotExecutable(name);
    if (number != 0) CannotRun(name, number);
    return name;
  }
  const char* variable = std::getenv("PATH");
  const std::string path = variable == nullptr ? "/usr/local/bin:/usr/bin:/bin" : variable;
  int reason = ENOENT;
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = path.find(':', begin);
    if (end == std::string::npos) end = path.size();
    const std::string folder = end == begin ? "." : path.substr(begin, end - begin);
    std::string file = folder + "/" + name;
    const int number = WhyNotExecutable(file);
    if (number == 0) return file;
    if (number == EACCES) reason = EACCES;
    begin = end + 1;
  }
  CannotRun(name, reason);
}

ChildProcess::ChildProcess(const std::vector<std::string>& command,
                           const std::vector<std::string>& environment,
                           const std::function<void(pid_t)>& before_exec) {
  // Everything that allocates happens before the fork.
  const std::vector<char*> arguments = storage::PointersTo(command);
  std::vector<char*> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool replaced = false;
    for (const std::string& added : environment) replaced |= NameOf(added) == NameOf(*entry);
    if (!replaced) variables.push_back(*entry);
  }
  for (const std::string& added : environment) {
    variables.push_back(const_cast<char*>(added.c_str()));
  }
  variables.push_back(nullptr);

  // The child waits for a word at its end, and reports a failed exec; a successful one closes it.
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error(ErrorKind::kDevice,
                fmt::format("cannot start a program ({})", std::strerror(errno)));
  }
  g_pending.store(0);
  struct sigaction action = {};
  action.sa_sigaction = OnSignal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &g_before[i]);
    // A signal that nohup or a shell had ignored stays ignored.
    if (g_before[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }

  action.sa_sigaction = OnOwnSignal;
  for (const int number : OwnSignals()) {
    sigaction(number, nullptr, &g_before_own[number]);
    if (g_before_own[number].sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }

  g_toggles.store(0);
  struct sigaction toggle = {};
  toggle.sa_handler = OnToggle;
  toggle.sa_flags = SA_RESTART;
  sigemptyset(&toggle.sa_mask);
  sigaction(SIGUSR1, &toggle, &g_before_toggle);

  KeepEndsOfChildren();
  pid_ = fork();
  if (pid_ == 0) {
    // exec resets handlers to the default and keeps ignored signals ignored: as it was before.
    if (g_before_toggle.sa_handler == SIG_IGN) sigaction(SIGUSR1, &g_before_toggle, nullptr);
    if (g_before_child.sa_handler == SIG_IGN) sigaction(SIGCHLD, &g_before_child, nullptr);
    close(ends[0]);
    char begin;
    if (!Receive(ends[1], &begin)) _exit(127);  // the recorder was killed
    execvpe(arguments[0], arguments.data(), variables.data());
    Send(ends[1], errno);
    _exit(127);
  }
  const int fork_error = errno;
  close(ends[1]);
  int number = 0;
  bool failed = pid_ < 0;
  if (!failed) {
    before_exec(pid_);
    witness_.emplace();
    constexpr char kBegin = 1;
    Send(ends[0], kBegin);
    failed = Receive(ends[0], &number);
  }
  close(ends[0]);
  if (!failed) return;

  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  RestoreSignals();
  if (pid_ > 0) CannotRun(command[0], number);
  throw Error(ErrorKind::kDevice,
              fmt::format("cannot start a process ({})", std::strerror(fork_error)));
}

ChildProcess::~ChildProcess() { RestoreSignals(); }

int ChildProcess::TakeToggles() { return g_toggles.exchange(0); }

bool ChildProcess::HasAlready(int number, pid_t sender) {
  // The witness is asked in each case, so that it keeps no report for a later signal.
  const bool of_group = witness_.has_value() && witness_->Saw(number);
  // A terminal sends its signals to the whole group.
  if (sender == kTerminal || DescendsFrom(sender, pid_)) return true;
  return of_group && getpgid(pid_) == getpgrp();
}

bool ChildProcess::HasEnded() {
  if (ended_) return true;
  const unsigned pending = g_pending.exchange(0);
  for (size_t i = 0; pending != 0 && i < std::size(kSignals); ++i) {
    if ((pending & (1u << i)) == 0) continue;
    if (!HasAlready(kSignals[i], g_senders[i].load())) kill(pid_, kSignals[i]);
  }
  int status = 0;
  const pid_t waited = waitpid(pid_, &status, WNOHANG);
  if (waited == 0 || (waited < 0 && errno == EINTR)) return false;
  ended_ = true;
  if (waited < 0) return true;  // someone else reaped it; its code is unknown
  if (WIFSIGNALED(status)) {
    signal_ = WTERMSIG(status);
  } else {
    exit_code_ = WEXITSTATUS(status);
  }
  return true;
}

}  // namespace acltape::collector
