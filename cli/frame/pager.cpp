#include "cli/frame/pager.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/environment/interpreter.h"

extern char** environ;

namespace acltape::cli {
namespace {

// The pager is left by its own keys: an interrupt from the keyboard is for what it does, and must
// not end the process that waits for it.
class IgnoredInterrupts {
 public:
  IgnoredInterrupts() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &ignore, &before_[i]);
  }
  ~IgnoredInterrupts() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  IgnoredInterrupts(const IgnoredInterrupts&) = delete;
  IgnoredInterrupts& operator=(const IgnoredInterrupts&) = delete;

 private:
  static constexpr std::array<int, 2> kSignals{SIGINT, SIGQUIT};
  std::array<struct sigaction, 2> before_{};
};

// The environment of the pager: less leaves colours alone, quits by itself where everything fits,
// and keeps the screen, unless the user says otherwise.
std::vector<char*> PagerEnvironment() {
  static char less[] = "LESS=FRX";
  std::vector<char*> settings;
  for (char** setting = environ; *setting != nullptr; ++setting) settings.push_back(*setting);
  if (std::getenv("LESS") == nullptr) settings.push_back(less);
  settings.push_back(nullptr);
  return settings;
}

}  // namespace

std::string PagerCommand() {
  for (const char* name : {"ACLTAPE_PAGER", "PAGER"}) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    return std::string_view(value) == "cat" ? "" : value;
  }
  return FindExecutable("less").empty() ? "" : "less -FRX";
}

PagedOutput::PagedOutput(std::string pager, const Screen& screen)
    : pager_(std::move(pager)), screen_(screen) {
  if (pager_.empty()) return;
  std::fflush(stdout);
  kept_ = memfd_create("acltape output", MFD_CLOEXEC);
  if (kept_ < 0) return;
  terminal_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (terminal_ < 0 || dup2(kept_, STDOUT_FILENO) < 0) {
    close(kept_);
    kept_ = -1;
  }
}

void PagedOutput::Show() {
  if (kept_ < 0) return;
  std::fflush(stdout);
  dup2(terminal_, STDOUT_FILENO);
  if (FitsScreen() || !RunPager()) WriteOut();
  close(kept_);
  close(terminal_);
  kept_ = -1;
}

// Lines longer than the screen take several of it. Codes of colours are counted as text, which errs
// towards a pager, and that one sees for itself whether everything fits.
bool PagedOutput::FitsScreen() const {
  if (screen_.height == 0) return false;
  std::array<char, 4096> buffer;
  size_t lines = 0, column = 0;
  off_t offset = 0;
  ssize_t bytes = 0;
  while ((bytes = pread(kept_, buffer.data(), buffer.size(), offset)) > 0) {
    offset += bytes;
    for (ssize_t i = 0; i < bytes; ++i) {
      const bool ends = buffer[static_cast<size_t>(i)] == '\n';
      if (ends || (screen_.width > 0 && column == screen_.width)) {
        ++lines;
        column = 0;
      }
      if (!ends) ++column;
    }
    if (lines + 1 >= screen_.height) return false;
  }
  return true;
}

// False when the pager could not be started, and nothing was shown.
bool PagedOutput::RunPager() const {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t defaults;
  sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGQUIT, SIGPIPE}) sigaddset(&defaults, signal);
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, kept_, STDIN_FILENO);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  lseek(kept_, 0, SEEK_SET);
  char shell[] = "sh", option[] = "-c";
  std::string command = pager_;
  char* words[] = {shell, option, command.data(), nullptr};
  std::vector<char*> environment = PagerEnvironment();
  const IgnoredInterrupts ignored;
  pid_t pager = 0;
  const int error =
      posix_spawn(&pager, "/bin/sh", &actions, &attributes, words, environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return false;
  int status = 0;
  while (waitpid(pager, &status, 0) < 0 && errno == EINTR) {
  }
  constexpr int kNotExecutable = 126, kNotFound = 127;  // the shell's codes
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  return code != kNotExecutable && code != kNotFound;
}

void PagedOutput::WriteOut() const {
  std::array<char, 65536> buffer;
  off_t offset = 0;
  ssize_t bytes = 0;
  while ((bytes = pread(kept_, buffer.data(), buffer.size(), offset)) > 0) {
    offset += bytes;
    if (std::fwrite(buffer.data(), 1, static_cast<size_t>(bytes), stdout) <
        static_cast<size_t>(bytes)) {
      return;
    }
  }
  std::fflush(stdout);
}

}  // namespace acltape::cli
