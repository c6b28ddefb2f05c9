// The interpreter that a command line runs.
#include "cli/environment/interpreter.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace acltape::cli {
namespace {

namespace fs = std::filesystem;

// A folder with executables, the only one on PATH.
class Interpreter : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/acltape_interpreter_XXXXXX";
    folder_ = mkdtemp(name);
    path_ = std::getenv("PATH");
    setenv("PATH", folder_.c_str(), 1);
    for (const char* program : {"python3", "python3.11", "env", "timeout", "sh"})
      Write(program, "");
  }
  void TearDown() override {
    setenv("PATH", path_.c_str(), 1);
    fs::remove_all(folder_);
  }
  fs::path Write(const std::string& name, const std::string& text) {
    const fs::path file = folder_ / name;
    std::ofstream(file) << text;
    fs::permissions(file, fs::perms::owner_all);
    return file;
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(Interpreter, IsFoundByNameAndByPath) {
  EXPECT_EQ(FindInterpreter({"python3.11", "prog.py"}), folder_ / "python3.11");
  fs::create_directory(folder_ / "venv");
  fs::create_symlink(folder_ / "python3.11", folder_ / "venv" / "python");
  const fs::path of_the_environment = folder_ / "venv" / "python";
  EXPECT_EQ(FindInterpreter({of_the_environment, "prog.py"}), of_the_environment);
}

TEST_F(Interpreter, IsFoundAfterProgramsThatStartIt) {
  EXPECT_EQ(FindInterpreter({"env", "A=1", "timeout", "-k", "1", "10", "python3.11", "p.py"}),
            folder_ / "python3.11");
  // The value of an option may be a word.
  EXPECT_EQ(FindInterpreter({"timeout", "-s", "KILL", "10", "python3.11", "p.py"}),
            folder_ / "python3.11");
  EXPECT_EQ(FindInterpreter({"env", "-u", "NAME", "python3.11", "p.py"}), folder_ / "python3.11");
}

TEST_F(Interpreter, IsFoundByTheFirstLineOfAScript) {
  const fs::path direct = Write("torchrun", "#!" + (folder_ / "python3.11").string() + "\nx\n");
  EXPECT_EQ(FindInterpreter({"torchrun", "train.py"}), folder_ / "python3.11");
  EXPECT_EQ(FindInterpreter({direct}), folder_ / "python3.11");
  Write("tool", "#!" + (folder_ / "env").string() + " -S python3.11 -u\n");
  EXPECT_EQ(FindInterpreter({"tool"}), folder_ / "python3.11");
}

TEST_F(Interpreter, OfOtherProgramsIsPython3OfPath) {
  EXPECT_EQ(FindInterpreter({"sh", "-c", "python3.11 prog.py"}), folder_ / "python3");
  EXPECT_EQ(FindInterpreter({}), folder_ / "python3");
  fs::remove(folder_ / "python3");
  EXPECT_EQ(FindInterpreter({"sh"}), fs::path());
}

TEST_F(Interpreter, AFileThatCannotBeExecutedIsNoProgram) {
  std::ofstream(folder_ / "data") << "#!/bin/sh\n";
  EXPECT_EQ(FindExecutable("data"), fs::path());
  EXPECT_EQ(FindExecutable(folder_.string()), fs::path());
  EXPECT_EQ(FindExecutable("python3"), folder_ / "python3");
}

}  // namespace
}  // namespace acltape::cli
