#include "recorder/collector/group_witness.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "recorder/wire/clock.h"

namespace acltape::collector {
namespace {

constexpr int kReported[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
// A busy system may run the witness late.
constexpr int kMostWaitMs = 100;
// An older report belongs to a signal that nobody asked about.
constexpr uint64_t kFreshNs = 1'000'000'000;

struct Report {
  int number;
  uint64_t at_ns;
};

// Runs in the process of the witness, and ends with it. Calls nothing that could wait for a lock
// which another thread held at the fork.
[[noreturn]] void Watch(int pipe, pid_t parent) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);  // it was killed before
  dup2(pipe, 0);
  close_range(1, ~0U, 0);
  sigset_t reported;
  sigemptyset(&reported);
  for (const int number : kReported) sigaddset(&reported, number);
  for (;;) {
    const int number = sigwaitinfo(&reported, nullptr);
    if (number <= 0) continue;
    const Report report{number, wire::MonotonicNs()};
    static_cast<void>(write(0, &report, sizeof(report)));
  }
}

}  // namespace

GroupWitness::GroupWitness() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
  // The handlers of this process are not for the witness, so it begins with all signals blocked.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0) Watch(ends[1], parent);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  close(ends[1]);
  reports_ = ends[0];
}

GroupWitness::~GroupWitness() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (reports_ >= 0) close(reports_);
}

bool GroupWitness::Saw(int number) {
  if (process_ <= 0) return false;
  const uint64_t now = wire::MonotonicNs();
  for (;;) {
    TakeReports();
    const uint64_t seen_at = std::exchange(seen_at_[static_cast<size_t>(number)], 0);
    if (seen_at != 0 && seen_at + kFreshNs > now) return true;
    const auto waited_ms = static_cast<int>((wire::MonotonicNs() - now) / 1'000'000);
    pollfd wait{reports_, POLLIN, 0};
    if (waited_ms >= kMostWaitMs || poll(&wait, 1, kMostWaitMs - waited_ms) == 0) return false;
    if ((wait.revents & (POLLHUP | POLLERR)) != 0) return false;  // the witness has ended
  }
}

void GroupWitness::TakeReports() {
  for (Report report{}; read(reports_, &report, sizeof(report)) == sizeof(report);) {
    if (report.number > 0 && report.number < _NSIG) {
      seen_at_[static_cast<size_t>(report.number)] = report.at_ns;
    }
  }
}

}  // namespace acltape::collector
