#include "cli/environment/installation.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <utility>

#include "storage/pointers.h"

extern char** environ;

namespace acltape::cli {

namespace fs = std::filesystem;

fs::path LibraryDirectory() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path() / "lib";
}

fs::path AclAgentLibrary() { return LibraryDirectory() / "libacltape_acl_agent.so"; }
fs::path AgentLibrary() { return LibraryDirectory() / "libacltape_agent.so"; }

fs::path SourceDirectory() { return LibraryDirectory().parent_path() / "source"; }

namespace {

// Takes the whole lines from the front of `text`.
void HandLinesOn(std::string& text, const std::function<void(const std::string&)>& line) {
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    line(text.substr(begin, end - begin));
  }
  text.erase(0, begin);
}

}  // namespace

ProgramOutput RunProgram(const std::vector<std::string>& argv, Complaints complaints,
                         const std::function<void(const std::string&)>& line) {
  ProgramOutput output;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return output;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (complaints == Complaints::kDiscarded) {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  if (complaints == Complaints::kJoined) {
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  }
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  const std::vector<char*> words = storage::PointersTo(argv);
  pid_t child = -1;
  output.started = posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (output.started) {
    char piece[4096];
    for (ssize_t got; (got = read(ends[0], piece, sizeof piece)) > 0;) {
      output.text.append(piece, static_cast<size_t>(got));
      if (line) HandLinesOn(output.text, line);
    }
    if (line && !output.text.empty()) line(std::exchange(output.text, ""));
    int status = 0;
    waitpid(child, &status, 0);
    output.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  close(ends[0]);
  return output;
}

std::vector<fs::path> FindOnPath(const std::string& name) {
  std::vector<fs::path> found;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    fs::path candidate = fs::path(folder) / name;
    if (access(candidate.c_str(), X_OK) == 0) found.push_back(std::move(candidate));
  }
  return found;
}

}  // namespace acltape::cli
