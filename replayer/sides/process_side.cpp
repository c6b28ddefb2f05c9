#include "replayer/sides/process_side.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "meaning/options.h"
#include "storage/pointers.h"

namespace acltape::replayer::sides {
namespace {

constexpr int kSocketOfChild = 3;
// Time that the process gets to close its device.
constexpr auto kTimeToEnd = std::chrono::seconds(5);

[[noreturn]] void FailToStart(const std::string& name, const char* what) {
  throw Error(ErrorKind::kDevice, "cannot start the process of the " + name + " side: " + what +
                                      ": " + std::strerror(errno) + ".");
}

void SetTimeLimit(int socket, std::chrono::milliseconds limit) {
  timeval time{};
  time.tv_sec = limit.count() / 1000;
  time.tv_usec = (limit.count() % 1000) * 1000;
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

// Returns a text for messages, such as "it executes calls 812 to 830", or "it gives its results" if
// no command is a call.
std::string CallsOf(const std::vector<SideCommand>& commands) {
  int64_t first = 0;
  int64_t last = 0;
  for (const SideCommand& command : commands) {
    const auto* call = std::get_if<CallOperator>(&command);
    if (call == nullptr) continue;
    if (first == 0) first = call->call_id;
    last = call->call_id;
  }
  if (first == 0) return "it gives its results";
  if (first == last) return "it executes call " + std::to_string(first);
  return "it executes calls " + std::to_string(first) + " to " + std::to_string(last);
}

}  // namespace

ProcessSide::ProcessSide(ProcessSideOptions options) : options_(std::move(options)) {}

ProcessSide::~ProcessSide() {
  if (child_ > 0) End(/*give_time=*/true);
}

template <typename Decode>
auto ProcessSide::Ask(CallMessage request, const std::string& body, CallMessage answer,
                      const std::string& doing, const Decode& decode) {
  std::string why;  // the reason that the process gave
  try {
    CallFrame frame;
    if (!SendFrame(socket_, request, body) || !ReceiveFrame(socket_, frame)) {
      throw SideFailed(options_.name, End(/*give_time=*/true) + " while " + doing);
    }
    if (frame.kind == answer) return decode(frame.body);
    if (frame.kind != CallMessage::kFailed) {
      throw Error(ErrorKind::kDevice, "it gave another answer than was asked for");
    }
    why = DecodeText(frame.body);
  } catch (const SideFailed&) {
    throw;
  } catch (const Error& failure) {  // an invalid answer, or no answer in time
    End(/*give_time=*/false);
    throw SideFailed(options_.name, "failed while " + doing + ": " + failure.what());
  }
  End(/*give_time=*/true);
  throw SideFailed(options_.name, "failed while " + doing + ": " + why);
}

void ProcessSide::Start() {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    FailToStart(options_.name, "socketpair");
  }
  std::vector<std::string> words = options_.words;
  words.insert(words.end(), {"@socket"_cli, std::to_string(kSocketOfChild)});
  const std::vector<char*> arguments = storage::PointersTo(words);
  const std::vector<char*> environment = storage::PointersTo(options_.environment);
  const char* executable = options_.executable.c_str();
  const bool quiet = options_.quiet;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    close(sockets[0]);
    close(sockets[1]);
    FailToStart(options_.name, "fork");
  }
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nowhere, STDIN_FILENO);
    dup2(quiet ? nowhere : STDERR_FILENO, STDOUT_FILENO);
    if (sockets[1] == kSocketOfChild) {
      fcntl(kSocketOfChild, F_SETFD, 0);
    } else {
      dup2(sockets[1], kSocketOfChild);
    }
    execve(executable, arguments.data(), environment.data());
    _exit(127);
  }
  close(sockets[1]);
  child_ = child;
  socket_ = sockets[0];
  ++starts_;
  if (options_.time_limit) SetTimeLimit(socket_, *options_.time_limit);
  description_ = Ask(CallMessage::kOpen, EncodeOpen(options_.library), CallMessage::kReady,
                     "it opens its device", DecodeText);
}

std::string ProcessSide::End(bool give_time) {
  close(socket_);
  socket_ = -1;
  int status = 0;
  bool ended = false;
  bool killed = false;
  const auto end = std::chrono::steady_clock::now() + kTimeToEnd;
  auto pause = std::chrono::microseconds(200);
  while (!ended) {
    const pid_t done = waitpid(child_, &status, killed ? 0 : WNOHANG);
    if (done < 0 && errno != EINTR) break;
    ended = done == child_;
    if (ended || killed) continue;
    if (!give_time || std::chrono::steady_clock::now() >= end) {
      kill(child_, SIGKILL);
      killed = true;
      continue;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(20000));
  }
  child_ = -1;
  if (killed) return "was ended";
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return "died of signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
  }
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

std::string ProcessSide::Description() {
  if (child_ < 0) Start();
  return description_;
}

void ProcessSide::Prepare(const std::vector<int64_t>& block_bytes) {
  if (child_ < 0) Start();
  Ask(CallMessage::kPrepare, EncodePrepare(block_bytes), CallMessage::kDone,
      "it allocates the memory of the step", [](std::string_view) {});
}

std::vector<SideResult> ProcessSide::Perform(const std::vector<SideCommand>& commands) {
  if (child_ < 0) throw SideFailed(options_.name, "is not running");
  size_t wanted = 0;
  for (const SideCommand& command : commands) {
    wanted +=
        std::holds_alternative<TakeBytes>(command) || std::holds_alternative<TakeDigest>(command);
  }
  return Ask(CallMessage::kPerform, EncodePerform(commands), CallMessage::kResults,
             CallsOf(commands), [wanted](std::string_view body) {
               std::vector<SideResult> results = DecodeResults(body);
               if (results.size() == wanted) return results;
               throw Error(ErrorKind::kDevice, "it gave " + std::to_string(results.size()) +
                                                   " results of " + std::to_string(wanted));
             });
}

}  // namespace acltape::replayer::sides
