#include "cli/frame/forked.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

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

[[noreturn]] void FailToStart(const char* what) {
  throw Error(ErrorKind::kDevice,
              fmt::format("a process cannot be started: {}: {}.", what, std::strerror(errno)));
}

// A process that works, and the end of the pipe through which it answers.
struct Child {
  pid_t id = 0;
  int pipe = -1;
  std::string answer;
};

// `open` are the pipes of other children, which this one must not keep open.
Child Start(const std::function<std::string()>& work, const std::vector<Child>& open) {
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
    for (const Child& other : open) close(other.pipe);
    Serve(ends[1], parent, work);
  }
  close(ends[1]);
  return {child, ends[0], ""};
}

// Reads what is there. Returns false at the end of the answer.
bool ReadSome(Child& child) {
  char buffer[1 << 16];
  const ssize_t bytes = read(child.pipe, buffer, sizeof(buffer));
  if (bytes > 0) child.answer.append(buffer, static_cast<size_t>(bytes));
  return bytes > 0 || (bytes < 0 && errno == EINTR);
}

// Waits for the end of a process whose answer was read.
Forked Finish(Child& child) {
  close(child.pipe);
  int status = 0;
  while (waitpid(child.id, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    throw Error(ErrorKind::kDevice,
                fmt::format("a process that acltape started was ended by signal {} ({}).",
                            WTERMSIG(status), strsignal(WTERMSIG(status))));
  }
  const int code = WEXITSTATUS(status);
  std::string answer = std::move(child.answer);
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

}  // namespace

Forked CallForked(const std::function<std::string()>& work) {
  return CallAllForked({work}, [] {}).front();
}

std::vector<Forked> CallAllForked(const std::vector<std::function<std::string()>>& works,
                                  const std::function<void()>& failed) {
  std::vector<Child> children;
  for (const std::function<std::string()>& work : works) {
    children.push_back(Start(work, children));
  }
  std::vector<Forked> results(works.size());
  std::exception_ptr error;
  std::vector<pollfd> open(works.size());
  for (size_t i = 0; i < works.size(); ++i) open[i] = {children[i].pipe, POLLIN, 0};
  for (size_t left = works.size(); left > 0;) {
    if (poll(open.data(), open.size(), -1) < 0) continue;
    for (size_t i = 0; i < open.size(); ++i) {
      if (open[i].revents == 0 || ReadSome(children[i])) continue;
      open[i].fd = -1;  // poll leaves it out
      open[i].revents = 0;
      --left;
      const bool first = error == nullptr;
      try {
        results[i] = Finish(children[i]);
        if (results[i].exit_code != kExitFine) failed();
      } catch (...) {
        if (first) error = std::current_exception();
        failed();
      }
    }
  }
  if (error != nullptr) std::rethrow_exception(error);
  return results;
}

}  // namespace acltape::cli
