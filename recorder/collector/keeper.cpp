#include "recorder/collector/keeper.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "recorder/collector/spool.h"

namespace acltape::collector {
namespace {

constexpr char kName[] = "acltape keeper";

std::atomic<bool> g_asked_to_end{false};

void OnTerminate(int) { g_asked_to_end.store(true); }

// Who wants to end a keeper that has taken over sends SIGTERM or SIGINT. All else is for others: a
// terminal that is closed, a window of the recording, a limit on the size of files.
void SetSignals() {
  struct sigaction action = {};
  sigemptyset(&action.sa_mask);
  action.sa_handler = SIG_IGN;
  for (const int number : {SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGXFSZ, SIGTSTP, SIGALRM,
                           SIGPROF, SIGVTALRM, SIGIO}) {
    sigaction(number, &action, nullptr);
  }
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) sigaction(number, &action, nullptr);
  for (const int number : {SIGTERM, SIGINT}) {
    action.sa_handler = OnTerminate;
    sigaction(number, &action, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Closes every descriptor but these, which are sorted.
void CloseAllBut(const int* kept, size_t count) {
  int first = 0;
  for (size_t i = 0; i <= count; ++i) {
    const int end = i < count ? kept[i] : INT_MAX;
    if (first < end &&
        close_range(static_cast<unsigned>(first), static_cast<unsigned>(end) - 1, 0) != 0) {
      // Before Linux 5.9, or in a sandbox.
      const long most = std::min<long>(sysconf(_SC_OPEN_MAX), 65536);
      for (int fd = first; fd < end && fd < most; ++fd) close(fd);
    }
    first = std::max(first, end == INT_MAX ? end : end + 1);
  }
}

// The standard streams are those of the user's terminal or pipes, where somebody may wait for their
// end.
void OpenNothing() {
  for (int number = open("/dev/null", O_RDWR); number >= 0 && number < STDERR_FILENO;) {
    number = dup(number);
  }
}

// Lists of processes show the keeper's own name in place of the collector's command line, which
// lies where /proc says.
void ShowName() {
  prctl(PR_SET_NAME, kName);
  char text[1024];
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t bytes = read(file, text, sizeof(text) - 1);
  close(file);
  if (bytes <= 0) return;
  text[bytes] = '\0';
  const char* field_text = std::strrchr(text, ')');
  constexpr int kArgumentsBegin = 48;  // the field's number in proc(5)
  for (int field = 2; field_text != nullptr && field < kArgumentsBegin; ++field) {
    field_text = std::strchr(field_text + 1, ' ');
  }
  unsigned long begin = 0;
  unsigned long end = 0;
  if (field_text == nullptr || std::sscanf(field_text, "%lu %lu", &begin, &end) != 2) return;
  if (begin == 0 || end <= begin + sizeof(kName)) return;
  auto* arguments = reinterpret_cast<char*>(begin);
  std::memset(arguments, 0, end - begin);
  std::memcpy(arguments, kName, sizeof(kName));
}

// Waits until the other end of the socket is closed.
void WaitForDeath(int socket) {
  char nothing;
  for (;;) {
    const ssize_t bytes = recv(socket, &nothing, 1, 0);
    if (bytes == 0 || (bytes < 0 && errno != EINTR)) return;
  }
}

// The life of the keeper.
void Keep(const Takeover& job, int socket) {
  setsid();
  SetSignals();
  ShowName();
  if (chdir("/") != 0) return;
  const char ready = 1;
  if (send(socket, &ready, 1, MSG_NOSIGNAL) != 1) return;
  WaitForDeath(socket);
  g_asked_to_end.store(false);
  SpoolHeader header;
  if (pread(job.spool, &header, sizeof(header), 0) != sizeof(header) || header.whole == 0) return;
  TakeOver(job, g_asked_to_end);
}

}  // namespace

int Keeper::Start(const Takeover& job, int claim) noexcept {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno;
  const pid_t pid = fork();
  if (pid == 0) {
    int kept[] = {job.arena.fd(), job.server.socket(), job.spool, claim, ends[1]};
    std::sort(std::begin(kept), std::end(kept));
    const auto first =
        std::find_if(std::begin(kept), std::end(kept), [](int fd) { return fd >= 0; });
    CloseAllBut(first, static_cast<size_t>(std::end(kept) - first));
    OpenNothing();
    try {
      Keep(job, ends[1]);
    } catch (const std::exception&) {
      // The spool is not closed, and the ledger will say what that means.
    }
    _exit(0);
  }
  const int error = errno;
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return error;
  }
  pid_ = pid;
  socket_ = ends[0];
  char ready;
  ssize_t bytes = 0;
  do {
    bytes = recv(socket_, &ready, 1, 0);
  } while (bytes < 0 && errno == EINTR);
  if (bytes == 1) return 0;
  End();
  return ECHILD;
}

void Keeper::End() noexcept {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  close(socket_);
  pid_ = -1;
  socket_ = -1;
}

}  // namespace acltape::collector
