// A program over the real agent that takes every descriptor number for itself, as daemons and
// launchers of workers do, and starts threads afterwards.
//
//   descriptors_program close-range FOLDER   close_range(3, ~0)
//   descriptors_program closefrom FOLDER     close() of 3 to 255
//   descriptors_program dup2 FOLDER          dup2 of its own file over 3 to 31
//   descriptors_program daemonise FOLDER     fork, setsid, fork, close() of 0 to 255, chdir
//   descriptors_program exec FOLDER          close_range, its files at 3 to 10, exec of itself
//
// Each records a call first, then fills files of its own, four in place of what it closed, then
// records a call in each of four threads. "one-file.N" hold what it wrote, and nothing else.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/recorder/agent_call.h"

namespace acltape::test {
namespace {

constexpr int kFiles = 4;
constexpr size_t kFileBytes = 1 << 20;  // longer than the arena, so that all of a ring fits in

int OpenFile(const std::string& folder, int index) {
  const std::string path = folder + "/one-file." + std::to_string(index);
  return open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
}

void Fill(int file, char with) {
  const std::string content(kFileBytes, with);
  if (pwrite(file, content.data(), content.size(), 0) != static_cast<ssize_t>(content.size())) {
    _exit(3);
  }
}

// The program's files, at the lowest free numbers.
void OpenAndFill(const std::string& folder) {
  for (int i = 0; i < kFiles; ++i) Fill(OpenFile(folder, i), static_cast<char>('a' + i));
}

void RecordInThreads() {
  for (int i = 0; i < 4; ++i) std::thread(RecordOneCall).join();
}

void CloseAll(int from) {
  for (int number = from; number < 256; ++number) close(number);
}

void Daemonise() {
  const pid_t first = fork();
  if (first != 0) {
    int status = 0;
    waitpid(first, &status, 0);
    exit(WEXITSTATUS(status));
  }
  setsid();
  const pid_t second = fork();
  if (second != 0) {
    int status = 0;  // a real daemon's parent ends here; the test waits for the files
    waitpid(second, &status, 0);
    _exit(WEXITSTATUS(status));
  }
  CloseAll(0);
  static_cast<void>(!chdir("/"));
}

int Main(int argc, char** argv) {
  if (argc != 3) return 64;
  const std::string mode = argv[1];
  const std::string folder = argv[2];
  RecordOneCall();
  if (mode == "close-range") {
    close_range(3, ~0u, 0);
  } else if (mode == "closefrom") {
    CloseAll(3);
  } else if (mode == "dup2") {
    const int file = OpenFile(folder, 0);
    Fill(file, 'd');
    for (int number = 3; number < 32; ++number) dup2(file, number);
    RecordInThreads();
    return 0;
  } else if (mode == "daemonise") {
    Daemonise();
  } else if (mode == "exec") {
    close_range(3, ~0u, 0);
    OpenAndFill(folder);
    execl("/proc/self/exe", argv[0], "closefrom", folder.c_str(), nullptr);
    return 127;
  } else {
    return 64;
  }
  OpenAndFill(folder);
  RecordInThreads();
  return 0;
}

}  // namespace
}  // namespace acltape::test

int main(int argc, char** argv) { return acltape::test::Main(argc, argv); }
