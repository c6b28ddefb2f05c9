// A program over the real agent whose processes become another user's, or live in other namespaces.
//
//   namespaces_program CHANGES... [then WORK]
//
// makes the changes one after the other, a call recorded before each, and works:
//
//   user          setgid and setuid to nobody
//   process       unshare(CLONE_NEWPID) and a fork; the parent ends as its child does
//   proc          a /proc of its own PID namespace, in a private mount namespace
//   network       unshare(CLONE_NEWNET)
//   root          chroot to an empty folder of the name that follows
//   exec          replaces itself by the same program with the words that follow
//   strangers     starts a process that sends wrong requests to the collector for a second
//   stop          stops the collector; a child goes on, and when it has ended, the collector does
//   calls         two calls in each of: itself, two threads, a forked child, a thread of that
//   counted FILE  forks a child that records without an end, its count in FILE, and kills it
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "recorder/wire/arena_request.h"
#include "tests/recorder/agent_call.h"

namespace acltape::test {
namespace {

constexpr unsigned kNobody = 65534;

void Must(bool done) {
  if (!done) _exit(3);
}

// The pause between the calls is longer than the collector takes to look which threads live.
void RecordTwoCalls() {
  RecordOneCall();
  usleep(600000);
  RecordOneCall();
}

int ExitCodeOf(pid_t child) {
  int status = 0;
  Must(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

void BecomeNobody(char**) { Must(setgid(kNobody) == 0 && setuid(kNobody) == 0); }

void EnterNewProcesses(char**) {
  Must(unshare(CLONE_NEWPID) == 0);
  const pid_t child = fork();
  Must(child >= 0);
  if (child > 0) _exit(ExitCodeOf(child));
}

void MountProc(char**) {
  Must(unshare(CLONE_NEWNS) == 0 &&
       mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
       mount("proc", "/proc", "proc", 0, nullptr) == 0);
}

void EnterNewNetwork(char**) { Must(unshare(CLONE_NEWNET) == 0); }

void ChangeRoot(char** word) { Must(chroot(word[1]) == 0 && chdir("/") == 0); }

void Execute(char** word) {
  char* name = const_cast<char*>("namespaces_program");
  word[0] = name;
  execv("/proc/self/exe", word);
  Must(false);
}

void SendWrongRequests(char**) {
  if (fork() != 0) return;
  const wire::SocketAddress to = wire::AbstractAddress(getenv(wire::kSocketVariable));
  const int sender = socket(AF_UNIX, SOCK_DGRAM, 0);
  Must(connect(sender, reinterpret_cast<const sockaddr*>(&to.address), to.bytes) == 0);
  for (int i = 0; i < 1000; ++i) {
    static_cast<void>(send(sender, "open sesame", i % 12, MSG_DONTWAIT | MSG_NOSIGNAL));
    usleep(1000);
  }
  _exit(0);
}

bool IsStopped(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  return text.substr(text.rfind(')') + 2, 1) == "T";
}

// A child goes on while the collector does not answer.
void StopCollector(char**) {
  const pid_t collector = getppid();
  kill(collector, SIGSTOP);
  // One of its threads takes the signal, the others go on until then.
  while (!IsStopped(collector)) usleep(1000);
  usleep(50000);
  const pid_t child = fork();
  if (child == 0) return;
  const int code = ExitCodeOf(child);
  kill(collector, SIGCONT);
  usleep(200000);
  _exit(code);
}

void RecordCalls(char**) {
  std::thread one(RecordTwoCalls);
  std::thread other(RecordTwoCalls);
  const pid_t child = fork();
  Must(child >= 0);
  if (child == 0) {
    std::thread third(RecordTwoCalls);
    RecordTwoCalls();
    third.join();
    _exit(0);
  }
  RecordTwoCalls();
  one.join();
  other.join();
  Must(ExitCodeOf(child) == 0);
}

void KillCountingChild(char** word) {
  const int file = open(word[1], O_RDWR | O_CREAT, 0666);
  Must(file >= 0 && ftruncate(file, 8) == 0);
  auto* count = static_cast<volatile uint64_t*>(
      mmap(nullptr, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  const pid_t child = fork();
  if (child == 0) {
    for (;;) {
      RecordOneCall();
      *count = *count + 1;
    }
  }
  while (*count < 20000) usleep(1000);
  kill(child, SIGKILL);
  Must(waitpid(child, nullptr, 0) == child);
}

struct Change {
  std::string_view name;
  int words;  // with its own
  void (*make)(char** word);
};
constexpr Change kChanges[] = {
    {"user", 1, BecomeNobody},
    {"process", 1, EnterNewProcesses},
    {"proc", 1, MountProc},
    {"network", 1, EnterNewNetwork},
    {"root", 2, ChangeRoot},
    {"exec", 1, Execute},
    {"strangers", 1, SendWrongRequests},
    {"stop", 1, StopCollector},
    {"calls", 1, RecordCalls},
    {"counted", 2, KillCountingChild},
};

int Main(char** word) {
  while (*word != nullptr) {
    const Change* change = kChanges;
    while (change->name != *word) {
      if (++change == std::end(kChanges)) return 64;
    }
    RecordOneCall();
    change->make(word);
    word += change->words;
  }
  return 0;
}

}  // namespace
}  // namespace acltape::test

int main(int, char** argv) { return acltape::test::Main(argv + 1); }
