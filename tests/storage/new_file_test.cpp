// The names that outputs may have, and the remains of a file whose writing fails.
#include "storage/new_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "storage/set_aside.h"
#include "tests/storage/trace_fixture.h"

namespace acltape::storage {
namespace {

class NewFileTest : public TraceTest {
 protected:
  std::string In(const std::string& name) const { return folder_ + "/" + name; }
  static void Put(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
  static std::string Get(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  std::pair<int, std::string> Judged(const std::string& path, const OutputRules& rules) {
    return ErrorOf([&] { JudgeOutput(path, rules); });
  }
};

TEST_F(NewFileTest, AFileIsWholeOrNotThere) {
  {
    NewFile file(In("a"), {});
    Put(file.partial(), "half");
    EXPECT_FALSE(std::filesystem::exists(In("a")));
  }
  EXPECT_EQ(Names(), std::vector<std::string>{});
  WriteNewFile(In("a"), "whole", {});
  EXPECT_EQ(Get(In("a")), "whole");
  EXPECT_EQ(Names(), std::vector<std::string>{"a"});
}

// A process that has begun to write the file, and waits.
pid_t StartWriter(const std::string& path) {
  int begun[2];
  EXPECT_EQ(pipe(begun), 0);
  const pid_t writer = fork();
  if (writer == 0) {
    const NewFile file(path, {.overwrite = true});
    std::ofstream(file.partial()) << "half";
    std::ofstream(file.partial() + "-journal") << "half";
    static_cast<void>(write(begun[1], "", 1));
    pause();
    _exit(0);
  }
  char byte = 0;
  EXPECT_EQ(read(begun[0], &byte, 1), 1);
  close(begun[0]);
  close(begun[1]);
  return writer;
}

void Kill(pid_t writer) {
  kill(writer, SIGKILL);
  waitpid(writer, nullptr, 0);
}

TEST_F(NewFileTest, WhatAKilledProcessLeftIsRemovedByTheNextWriterOfTheName) {
  const pid_t killed = StartWriter(In("a"));
  const pid_t other = StartWriter(In("b"));
  const pid_t living = StartWriter(In("a"));
  const std::string left = "a." + std::to_string(killed) + ".partial";
  Kill(killed);
  Kill(other);
  EXPECT_TRUE(std::filesystem::exists(In(left)));
  WriteNewFile(In("a"), "whole", {});
  const std::string held = "a." + std::to_string(living) + ".partial";
  const std::string of_b = "b." + std::to_string(other) + ".partial";
  EXPECT_EQ(Names(),
            (std::vector<std::string>{"a", held, held + "-journal", of_b, of_b + "-journal"}));
  Kill(living);
}

TEST_F(NewFileTest, OnlyAPlainPartialFileOfAGoneProcessIsRemoved) {
  const pid_t gone = StartWriter(In("other"));
  Kill(gone);
  const std::string name = In("a." + std::to_string(gone));
  Put(In("mine"), "mine");
  std::filesystem::create_symlink("mine", name + ".partial");
  std::filesystem::create_directory(name + "-1.partial");
  const std::string not_ours[] = {name + "-x.partial",  name + "-.partial", name + ".partial.txt",
                                  name + "-2.partial2", In("a.partial"),    In("a.x.partial"),
                                  In("a.0.partial"),    In("a.1.partial")};
  for (const std::string& path : not_ours) Put(path, "mine");
  const std::string held = name + "-3.partial";
  Put(held, "written by a process that has no number here");
  const int lock = open(held.c_str(), O_RDONLY);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  Put(name + "-4.partial", "left over");
  std::vector<std::string> before = Names();
  WriteNewFile(In("a"), "whole", {});
  std::erase(before, std::filesystem::path(name + "-4.partial").filename().string());
  before.insert(before.begin(), "a");
  EXPECT_EQ(Names(), before);
  EXPECT_EQ(Get(In("mine")), "mine");
  close(lock);
}

TEST_F(NewFileTest, AFileThatCameMeanwhileIsNotReplaced) {
  NewFile file(In("a"), {});
  Put(file.partial(), "new");
  Put(In("a"), "another's");
  EXPECT_EQ(ErrorOf([&] { file.Accept(); }),
            std::make_pair(2, "'" + In("a") + "' exists already; use --force to overwrite it"));
  EXPECT_EQ(Get(In("a")), "another's");
}

TEST_F(NewFileTest, AnotherHardLinkOfAReplacedFileKeepsItsContent) {
  Put(In("a"), "old");
  std::filesystem::create_hard_link(In("a"), In("b"));
  WriteNewFile(In("a"), "new", {.overwrite = true});
  EXPECT_EQ(Get(In("a")), "new");
  EXPECT_EQ(Get(In("b")), "old");
}

TEST_F(NewFileTest, TheTraceAndItsFilesAreToldByEveryName) {
  Put(In("t.db"), "trace");
  std::filesystem::create_symlink("t.db", In("soft"));
  std::filesystem::create_hard_link(In("t.db"), In("hard"));
  std::filesystem::create_directory(In("sub"));
  const OutputRules rules{.overwrite = true, .trace = In("t.db")};
  for (const char* name : {"t.db", "soft", "hard", "sub/../t.db"}) {
    EXPECT_EQ(Judged(In(name), rules),
              std::make_pair(2, "'" + In(name) + "' is the trace itself; name another file"));
  }
  for (const char* name : {"t.db-wal", "t.db-shm", "sub/../t.db-journal", "t.db.spool"}) {
    EXPECT_EQ(Judged(In(name), rules),
              std::make_pair(2, "'" + In(name) + "' belongs to the trace '" + In("t.db") +
                                    "'; name another file"));
  }
}

TEST_F(NewFileTest, AFileWrittenBeforeIsReplacedWithoutForce) {
  Put(In("a"), "own");
  Put(In("b"), "foreign");
  const OutputRules rules{.is_own = [](const std::string& path) { return Get(path) == "own"; },
                          .remedy = "name another"};
  EXPECT_EQ(Judged(In("a"), rules), std::make_pair(0, std::string("no error")));
  EXPECT_EQ(Judged(In("b"), rules),
            std::make_pair(2, "'" + In("b") + "' exists already; name another"));
}

TEST_F(NewFileTest, ATraceThatIsReplacedComesBackUnlessItIsDropped) {
  Put(In("t.db"), "old");
  Put(In("t.db-wal"), "old wal");
  {
    const SetAside aside(In("t.db"), true, {});
    EXPECT_EQ(Names(), (std::vector<std::string>{"t.db.replaced", "t.db.replaced-wal"}));
  }
  EXPECT_EQ(Names(), (std::vector<std::string>{"t.db", "t.db-wal"}));
  {
    SetAside aside(In("t.db"), true, {});
    Put(In("t.db"), "new");
    aside.Drop();
  }
  EXPECT_EQ(Names(), std::vector<std::string>{"t.db"});
  EXPECT_EQ(Get(In("t.db")), "new");
}

TEST_F(NewFileTest, ATraceThatIsReplacedIsNotPutOverTheNewOne) {
  Put(In("t.db"), "old");
  {
    const SetAside aside(In("t.db"), true, {});
    Put(In("t.db"), "new");
  }
  EXPECT_EQ(Get(In("t.db")), "new");
  EXPECT_EQ(Get(In("t.db.replaced")), "old");
}

}  // namespace
}  // namespace acltape::storage
