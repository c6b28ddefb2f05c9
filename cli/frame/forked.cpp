#include "cli/frame/forked.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>

#include "cli/frame/command.h"
#include "storage/error.h"

namespace acltape::cli {
namespace {

// The first byte of an answer; the text comes after it. An Error has its kind there.
constexpr char kReturned = 0;
constexpr char kLogic = 124;  // belongs to no ErrorKind, as the next ones
constexpr char kNoMemory = 126;
constexpr char kOther = 127;

std::string Answer(const std::function<std::string()>& work) {
  try {
    return kReturned + work();
  } catch (const Error& error) {
    return static_cast<char>(error.kind()) + std::string(error.what());
  } catch (const std::bad_alloc&) {
    return {kNoMemory};
  } catch (const std::logic_error& error) {
    return kLogic + std::string(error.what());
  } catch (const std::exception& error) {
    return kOther + std::string(error.what());
  }
}

[[noreturn]] void Serve(int pipe, pid_t parent, const std::function<std::string()>& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kExitDevice);
  const std::string answer = Answer(work);
  size_t sent = 0;
  while (sent < answer.size()) {
    const ssize_t bytes = write(pipe, answer.data() + sent, answer.size() - sent);
    if (bytes < 0 && errno != EINTR) _exit(kExitDevice);
    if (bytes > 0) sent += static_cast<size_t>(bytes);
  }
  _exit(kExitFine);  // leaves the parent's buffers for the parent to write
}

std::string ReadAll(int pipe) {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t bytes = read(pipe, buffer, sizeof(buffer));
    if (bytes > 0) text.append(buffer, static_cast<size_t>(bytes));
    if (bytes == 0 || (bytes < 0 && errno != EINTR)) return text;
  }
}

[[noreturn]] void FailToStart(const char* what) {
  throw Error(ErrorKind::kDevice,
              fmt::format("a process cannot be started: {}: {}.", what, std::strerror(errno)));
}

}  // namespace

Forked CallForked(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) FailToStart("pipe");
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    FailToStart("fork");
  }
  if (child == 0) {
    close(ends[0]);
    Serve(ends[1], parent, work);
  }
  close(ends[1]);
  std::string answer = ReadAll(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    throw Error(ErrorKind::kDevice,
                fmt::format("a process that acltape started was ended by signal {} ({}).",
                            WTERMSIG(status), strsignal(WTERMSIG(status))));
  }
  const int code = WEXITSTATUS(status);
  if (code != kExitFine || answer.empty()) {
    return {.result = "", .exit_code = code == kExitFine ? kExitDevice : code};
  }
  const char kind = answer.front();
  answer.erase(0, 1);
  if (kind == kReturned) return {.result = std::move(answer), .exit_code = kExitFine};
  if (kind == kNoMemory) throw std::bad_alloc();
  if (kind == kLogic) throw std::logic_error(answer);
  if (kind == kOther) throw std::runtime_error(answer);
  throw Error(static_cast<ErrorKind>(kind), answer);
}

}  // namespace acltape::cli
