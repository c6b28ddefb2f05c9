#include "replayer/bisect/process_experiment.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "storage/error.h"
#include "storage/pointers.h"
#include "storage/shell_word.h"

namespace acltape::replayer::bisect {
namespace {

constexpr std::string_view kPlaceholder = "{calls}";
constexpr char kVariable[] = "ACLTAPE_CALLS";
constexpr size_t kLongestVariable = 128 << 10;  // MAX_ARG_STRLEN of Linux

std::string Replaced(std::string text, const std::string& by) {
  for (size_t position = 0; (position = text.find(kPlaceholder, position)) != std::string::npos;
       position += by.size()) {
    text.replace(position, kPlaceholder.size(), by);
  }
  return text;
}

std::string_view NameOf(std::string_view setting) { return setting.substr(0, setting.find('=')); }

// The environment of this process with other values for some variables.
std::vector<std::string> EnvironmentWith(std::vector<std::string> settings,
                                         const std::string& calls) {
  std::string setting = std::string(kVariable) + '=' + calls;
  const bool fits = setting.size() < kLongestVariable;
  settings.push_back(std::move(setting));
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const bool replaced =
        std::any_of(settings.begin(), settings.end(),
                    [&](const std::string& other) { return NameOf(other) == NameOf(*variable); });
    if (!replaced) environment.emplace_back(*variable);
  }
  if (!fits) settings.pop_back();
  environment.insert(environment.end(), settings.begin(), settings.end());
  return environment;
}

// Starts the command in its own process group, so that all its processes can be ended.
pid_t Start(const ProcessExperimentOptions& options, const std::string& command,
            const std::string& calls) {
  const std::vector<std::string> environment = EnvironmentWith(options.environment, calls);
  const std::vector<char*> pointers = storage::PointersTo(environment);
  const char* words[] = {"/bin/sh", "-c", command.c_str(), nullptr};
  const pid_t child = fork();
  if (child < 0) {
    throw Error(ErrorKind::kDevice,
                std::string("cannot start the check: ") + std::strerror(errno) + ".");
  }
  if (child == 0) {
    setpgid(0, 0);
    const int nowhere = open("/dev/null", O_RDWR);
    dup2(nowhere, STDIN_FILENO);
    dup2(options.quiet ? nowhere : STDERR_FILENO, STDOUT_FILENO);
    if (options.quiet) dup2(nowhere, STDERR_FILENO);
    execve(words[0], const_cast<char**>(words), pointers.data());
    _exit(127);
  }
  setpgid(child, child);
  return child;
}

// Returns the wait status, or nothing if time ran out and the command was ended.
std::optional<int> Await(pid_t child, const std::optional<std::chrono::milliseconds>& limit) {
  const auto end = std::chrono::steady_clock::now() + limit.value_or(std::chrono::milliseconds(0));
  auto pause = std::chrono::microseconds(200);
  for (int status = 0;;) {
    const pid_t ended = waitpid(child, &status, limit ? WNOHANG : 0);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) return std::nullopt;
    if (limit && std::chrono::steady_clock::now() >= end) {
      kill(-child, SIGKILL);
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      return std::nullopt;
    }
    if (limit) std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(20000));
  }
}

}  // namespace

ProcessExperiment::ProcessExperiment(ProcessExperimentOptions options)
    : options_(std::move(options)) {
  if (options_.command.find(kPlaceholder) == std::string::npos) return;
  std::string path = (std::filesystem::temp_directory_path() / "acltape-calls-XXXXXX").string();
  const int file = mkstemp(path.data());
  if (file < 0) {
    throw Error(ErrorKind::kDevice,
                "cannot write the file of calls " + path + ": " + std::strerror(errno) + ".");
  }
  close(file);
  file_ = path;
}

ProcessExperiment::~ProcessExperiment() {
  if (!file_.empty()) unlink(file_.c_str());
}

std::string ProcessExperiment::CallList(const script::ElementSet& altered, char between) const {
  std::vector<int64_t> calls;
  for (const size_t element : altered) {
    calls.insert(calls.end(), options_.calls.at(element).begin(), options_.calls[element].end());
  }
  std::sort(calls.begin(), calls.end());
  std::string text;
  for (const int64_t call : calls) {
    if (!text.empty() && between != '\n') text += between;
    text += std::to_string(call);
    if (between == '\n') text += between;
  }
  return text;
}

script::Outcome ProcessExperiment::Try(const script::ElementSet& altered) {
  if (!file_.empty()) {
    std::ofstream file(file_, std::ios::trunc);
    file << CallList(altered, '\n') << std::flush;
    if (!file) throw Error(ErrorKind::kDevice, "cannot write the file of calls " + file_ + ".");
  }
  const pid_t child = Start(options_, Replaced(options_.command, file_), CallList(altered, ','));
  const std::optional<int> status = Await(child, options_.time_limit);

  script::Outcome outcome;
  outcome.executions = 1;
  if (!status) {
    outcome.verdict = script::Outcome::Verdict::kCannotJudge;
    outcome.evidence = R"({"time_limit": true})";
    return outcome;
  }
  const int code = WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
  if (code > 125) {
    throw Error(
        ErrorKind::kDevice,
        "the check ended with exit code " + std::to_string(code) +
            ", which is no verdict (0 good, 1 to 124 bad, 125 cannot judge); see it with: " +
            Command(altered));
  }
  outcome.verdict = code == 0     ? script::Outcome::Verdict::kGood
                    : code == 125 ? script::Outcome::Verdict::kCannotJudge
                                  : script::Outcome::Verdict::kBad;
  outcome.bad_executions = outcome.verdict == script::Outcome::Verdict::kBad ? 1 : 0;
  outcome.evidence = "{\"exit_code\": " + std::to_string(code) + "}";
  return outcome;
}

std::string ProcessExperiment::Command(const script::ElementSet& altered) const {
  const std::string list = storage::ShellWord(CallList(altered, ','));
  std::string command;
  for (const std::string& setting : options_.environment) {
    const std::string_view name = NameOf(setting);
    command += std::string(name) + "=" + storage::ShellWord(setting.substr(name.size() + 1)) + " ";
  }
  command += std::string(kVariable) + "=" + list + " sh -c ";
  if (file_.empty()) return command + storage::ShellWord(options_.command);
  const std::string file = file_ + ".txt";  // not file_, which this process removes
  return "echo " + list + " | tr , '\\n' > " + storage::ShellWord(file) + "; " + command +
         storage::ShellWord(Replaced(options_.command, file));
}

}  // namespace acltape::replayer::bisect
