// A program over the real agent that does what a recorder must bear. hostile.py runs it.
//
//   hostile_program COUNT MODE [WORDS]
//
// COUNT is a file with the number of calls that were made, by all threads and processes (8 bytes).
// The output and the result of the program must be the same when it is recorded. The modes are rows
// of the table below.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/recorder/agent_call.h"

namespace acltape::test {
namespace {

std::atomic<uint64_t>* g_count;
char** g_words;  // COUNT, MODE, WORDS

void Must(bool done) {
  if (done) return;
  std::perror("hostile_program");
  _exit(3);
}

void Call() {
  RecordOneCall();
  g_count->fetch_add(1);
}

void Calls(int count) {
  for (int i = 0; i < count; ++i) Call();
}

// Replaces this process by the same program in another mode.
[[noreturn]] void ExecuteMode(const char* mode, const char* word = nullptr) {
  execl("/proc/self/exe", "hostile_program", g_words[0], mode, word, nullptr);
  Must(false);
  _exit(3);
}

int ExitCodeOf(pid_t child) {
  int status = 0;
  Must(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Prints everything that a program can see of what it was started with.
int Inheritance() {
  Call();
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action;
    if (sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_DFL) continue;
    std::printf("signal %d is %s\n", number, action.sa_handler == SIG_IGN ? "ignored" : "handled");
  }
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, nullptr, &blocked);
  for (int number = 1; number < NSIG; ++number) {
    if (sigismember(&blocked, number) == 1) std::printf("signal %d is blocked\n", number);
  }
  for (int file = 0; file < 64; ++file) {
    if (fcntl(file, F_GETFD) >= 0) std::printf("descriptor %d is open\n", file);
  }
  for (int limit = 0; limit < RLIMIT_NLIMITS; ++limit) {
    rlimit value;
    if (getrlimit(static_cast<__rlimit_resource>(limit), &value) != 0) continue;
    std::printf("limit %d is %lu, %lu\n", limit, value.rlim_cur, value.rlim_max);
  }
  const mode_t mask = umask(0);
  std::printf("umask %o, niceness %d, scheduling %d, dumpable %d, new privileges %d\n", mask,
              getpriority(PRIO_PROCESS, 0), sched_getscheduler(0), prctl(PR_GET_DUMPABLE),
              prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
  return 0;
}

int ForkMany() {
  Call();
  std::vector<pid_t> children;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    Must(child >= 0);
    if (child == 0) {
      Calls(5);
      _exit(i);
    }
    children.push_back(child);
  }
  int sum = 0;
  for (const pid_t child : children) sum += ExitCodeOf(child);
  Call();
  std::printf("the codes of the children sum to %d\n", sum);
  return 4;
}

// A child is forked while other threads record.
int ForkInThreads() {
  std::vector<std::thread> threads;
  std::atomic<int> sum{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&sum] {
      for (int round = 0; round < 5; ++round) {
        Calls(50);
        const pid_t child = fork();
        Must(child >= 0);
        if (child == 0) {
          Calls(3);
          _exit(2);
        }
        sum += ExitCodeOf(child);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("the codes of the children sum to %d\n", sum.load());
  return 0;
}

int VforkAndExecute() {
  Call();
  int sum = 0;
  for (int i = 0; i < 5; ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      execl("/proc/self/exe", "hostile_program", g_words[0], "calls", nullptr);
      _exit(9);
    }
    sum += ExitCodeOf(child);
    Call();
  }
  std::printf("the codes of the children sum to %d\n", sum);
  return 0;
}

int ExecuteChain() {
  const int left = g_words[2] == nullptr ? 12 : atoi(g_words[2]);
  Calls(3);
  if (left > 0) ExecuteMode("exec-chain", std::to_string(left - 1).c_str());
  std::puts("the last of the chain");
  return 5;
}

// The child of a child goes on in a session of its own; the program waits for what it writes.
int Daemonise() {
  Call();
  int ends[2];
  Must(pipe(ends) == 0);
  if (fork() == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    for (int file = 0; file < 256; ++file) {
      if (file != ends[1]) close(file);
    }
    static_cast<void>(!chdir("/"));
    umask(0);
    Calls(10);
    Must(write(ends[1], "d", 1) == 1);
    _exit(0);
  }
  close(ends[1]);
  char word = 0;
  Must(read(ends[0], &word, 1) == 1);
  Call();
  std::printf("the daemon wrote %c\n", word);
  return 0;
}

// Descriptors are closed again and again while threads begin and end.
int CloseInThreads() {
  for (int round = 0; round < 20; ++round) {
    std::thread thread([] { Calls(10); });
    for (int file = 3; file < 64; ++file) close(file);
    const int own = open("/dev/null", O_WRONLY);
    Must(own == 3 && write(own, "x", 1) == 1);
    thread.join();
  }
  std::puts("its files are its own");
  return 0;
}

int ThreadsAtOnce() {
  const int count = atoi(g_words[2]);
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&go] {
      Call();
      while (!go.load()) usleep(1000);
      Calls(20);
    });
  }
  go.store(true);
  for (std::thread& thread : threads) thread.join();
  std::printf("%d threads\n", count);
  return 0;
}

int ThreadsInTurn() {
  for (int i = 0; i < 300; ++i) std::thread([] { Calls(3); }).join();
  std::puts("300 threads in turn");
  return 0;
}

// Threads whose stacks are as small as the system allows.
int SmallStacks() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, static_cast<size_t>(sysconf(_SC_THREAD_STACK_MIN)));
  for (int i = 0; i < 10; ++i) {
    pthread_t thread;
    Must(pthread_create(
             &thread, &attributes,
             [](void*) -> void* {
               Call();
               return nullptr;
             },
             nullptr) == 0);
    pthread_join(thread, nullptr);
  }
  std::puts("10 threads with small stacks");
  return 0;
}

std::atomic<int> g_signals{0};

// Signals of timers arrive inside of calls, and between them.
int Timers() {
  struct sigaction action = {};
  action.sa_handler = [](int) { g_signals.fetch_add(1); };
  sigaction(SIGALRM, &action, nullptr);
  sigaction(SIGPROF, &action, nullptr);
  const itimerval often{{0, 500}, {0, 500}};
  Must(setitimer(ITIMER_REAL, &often, nullptr) == 0 &&
       setitimer(ITIMER_PROF, &often, nullptr) == 0);
  for (int round = 0; round < 50 || g_signals.load() < 20; ++round) {
    if (round < 50) Calls(200);
    const timespec pause{0, 200000};
    nanosleep(&pause, nullptr);
  }
  std::puts("timers went off");
  return 0;
}

// A handler records on a small stack of its own.
int CallInHandler() {
  static char room[16384];
  const stack_t stack{room, 0, sizeof(room)};
  struct sigaction action = {};
  action.sa_handler = [](int) { Call(); };
  action.sa_flags = SA_ONSTACK;
  Must(sigaltstack(&stack, nullptr) == 0 && sigaction(SIGUSR2, &action, nullptr) == 0);
  for (int i = 0; i < 20; ++i) raise(SIGUSR2);
  Call();
  std::puts("20 handlers");
  return 0;
}

sigjmp_buf g_jump;

int RecoverFromFault() {
  struct sigaction action = {};
  action.sa_handler = [](int) { siglongjmp(g_jump, 1); };
  Must(sigaction(SIGSEGV, &action, nullptr) == 0);
  for (std::atomic<int> i{0}; i.load() < 10; i.fetch_add(1)) {
    Call();
    if (sigsetjmp(g_jump, 1) == 0) raise(SIGSEGV);
    Call();
  }
  std::puts("10 faults");
  return 0;
}

ucontext_t g_main, g_routine;

int Coroutines() {
  static char room[32768];
  for (int i = 0; i < 10; ++i) {
    Must(getcontext(&g_routine) == 0);
    g_routine.uc_stack = {room, 0, sizeof(room)};
    g_routine.uc_link = &g_main;
    makecontext(
        &g_routine, [] { Calls(5); }, 0);
    Must(swapcontext(&g_main, &g_routine) == 0);
    Call();
  }
  std::puts("10 coroutines");
  return 0;
}

// A sandbox in which every call of the system that is not named ends as `action` says.
int InSandbox(unsigned action) {
  Calls(5);
  std::puts("in a sandbox");
  std::fflush(stdout);
  constexpr unsigned kAllowed[] = {
      SYS_write,  SYS_exit,    SYS_exit_group, SYS_futex,          SYS_mmap,
      SYS_munmap, SYS_clone,   SYS_clone3,     SYS_rt_sigprocmask, SYS_mprotect,
      SYS_brk,    SYS_madvise, SYS_rseq,       SYS_set_robust_list};
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const unsigned number : kAllowed) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, action));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  Must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
  Calls(5);
  std::thread([] { Calls(5); }).join();
  Calls(5);
  return 6;
}
int Sandbox() { return InSandbox(SECCOMP_RET_ERRNO | EPERM); }
int DeadlySandbox() { return InSandbox(SECCOMP_RET_KILL_PROCESS); }

// The program may not read the time-stamp counter, and then may again.
int WithoutCounter() {
  Calls(5);
  Must(prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0);
  Calls(5);
  std::thread([] { Calls(5); }).join();
  Must(prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0) == 0);
  Calls(5);
  std::puts("20 calls, of which 10 without the counter");
  return 0;
}

// In the strict mode of seccomp a thread may read, write and end. Its process goes on.
int StrictSandbox() {
  Calls(5);
  std::thread([] {
    Calls(5);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) return;
    Calls(2000);
    static_cast<void>(!write(1, "strict\n", 7));
    syscall(SYS_exit, 0);
  }).join();
  Calls(5);
  return 7;
}

int CloseLibraries() {
  for (int i = 0; i < 30; ++i) {
    void* library = dlopen(g_words[2], RTLD_NOW);
    if (library == nullptr) std::puts("there is no such library");
    Calls(2);
    if (library != nullptr) dlclose(library);
    Calls(2);
  }
  std::puts("libraries came and went");
  return 0;
}

int ExitInThread() {
  for (int i = 0; i < 3; ++i) std::thread([] { Calls(10); }).join();
  std::thread([] {
    Calls(10);
    std::puts("a thread ends the program");
    std::fflush(stdout);
    exit(11);
  }).join();
  return 0;
}

int ExitOfMainThread() {
  std::thread([] {
    Calls(10);
    usleep(700000);  // the recorder has looked since who lives
    Calls(10);
    std::puts("the main thread was gone");
  }).detach();
  Call();
  pthread_exit(nullptr);
}

int CancelThreads() {
  for (int i = 0; i < 10; ++i) {
    std::atomic<int> made{0};
    std::thread thread([&made] {
      Calls(5);
      made.store(1);
      for (;;) pause();
    });
    while (made.load() == 0) usleep(100);
    pthread_cancel(thread.native_handle());
    thread.join();
  }
  std::puts("10 cancelled threads");
  return 0;
}

int LockMemory() {
  Must(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
  for (int i = 0; i < 3; ++i) std::thread([] { Calls(10); }).join();
  std::puts("memory is locked");
  return 0;
}

int ByItself(int number) {
  Calls(10);
  std::printf("signal %d\n", number);
  std::fflush(stdout);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  raise(number);
  return 0;
}

int PlainCalls() {
  Calls(10);
  std::puts("10 calls");
  return 3;
}

int WriteLargeFile() {
  Calls(10);
  const int file = open(g_words[2], O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const std::string block(1 << 20, 'x');
  int written = 0;
  for (int i = 0; i < 8; ++i) written += write(file, block.data(), block.size()) > 0 ? 1 : 0;
  std::printf("%d MiB\n", written);
  return 0;
}

int ThreadsUnderLimit() {
  for (int i = 0; i < 20; ++i) std::thread([] { Calls(5); }).join();
  std::puts("20 threads in turn");
  return 0;
}

struct Mode {
  const char* name;
  int (*run)();
};
constexpr Mode kModes[] = {
    {"calls", PlainCalls},
    {"inheritance", Inheritance},
    {"forks", ForkMany},
    {"fork-in-threads", ForkInThreads},
    {"vfork", VforkAndExecute},
    {"exec-chain", ExecuteChain},
    {"daemon", Daemonise},
    {"close-in-threads", CloseInThreads},
    {"threads-at-once", ThreadsAtOnce},
    {"threads-in-turn", ThreadsInTurn},
    {"few-threads", ThreadsUnderLimit},
    {"small-stacks", SmallStacks},
    {"timers", Timers},
    {"handlers", CallInHandler},
    {"faults", RecoverFromFault},
    {"coroutines", Coroutines},
    {"sandbox", Sandbox},
    {"deadly-sandbox", DeadlySandbox},
    {"without-counter", WithoutCounter},
    {"strict-sandbox", StrictSandbox},
    {"dlclose", CloseLibraries},
    {"exit-in-thread", ExitInThread},
    {"main-thread-ends", ExitOfMainThread},
    {"cancel", CancelThreads},
    {"locked-memory", LockMemory},
    {"large-file", WriteLargeFile},
    {"abort", [] { return ByItself(SIGABRT); }},
    {"segv", [] { return ByItself(SIGSEGV); }},
    {"kill", [] { return ByItself(SIGKILL); }},
    {"term", [] { return ByItself(SIGTERM); }},
};

int Main(int argc, char** argv) {
  if (argc < 3) return 64;
  g_words = argv + 1;
  const int low = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  Must(low >= 0);
  struct stat status;
  Must(fstat(low, &status) == 0 && (status.st_size == 8 || ftruncate(low, 8) == 0));
  void* page = mmap(nullptr, 8, PROT_READ | PROT_WRITE, MAP_SHARED, low, 0);
  Must(page != MAP_FAILED);
  close(low);
  g_count = static_cast<std::atomic<uint64_t>*>(page);
  for (const Mode& mode : kModes) {
    if (std::strcmp(mode.name, argv[2]) == 0) return mode.run();
  }
  return 64;
}

}  // namespace
}  // namespace acltape::test

int main(int argc, char** argv) { return acltape::test::Main(argc, argv); }
