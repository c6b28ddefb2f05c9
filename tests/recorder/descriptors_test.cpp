// Programs that close descriptors and use their numbers again keep their files, and are recorded.
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/recorder/record_fixture.h"

namespace acltape::test {
namespace {

using Files = std::map<std::string, std::string>;

Files FilesOf(const std::string& folder) {
  Files files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ostringstream content;
    content << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    files[entry.path().filename()] = content.str();
  }
  return files;
}

struct Program {
  const char* mode;
  int64_t calls;  // one at first, one in each of four threads
};

class DescriptorsTest : public RecordTest, public ::testing::WithParamInterface<Program> {
 protected:
  std::string Folder(const std::string& name) const {
    std::filesystem::create_directory(folder_ + "/" + name);
    return folder_ + "/" + name;
  }
};

TEST_P(DescriptorsTest, TheProgramsFilesAreItsOwnAndLaterThreadsAreRecorded) {
  const std::string alone = Folder("alone");
  const std::string command =
      std::string(ACLTAPE_DESCRIPTORS_PROGRAM) + " " + GetParam().mode + " " + alone;
  ASSERT_EQ(WEXITSTATUS(std::system(command.c_str())), 0);

  const std::string recorded = Folder("recorded");
  collector::RecordOptions options = Options({});
  options.command = {ACLTAPE_DESCRIPTORS_PROGRAM, GetParam().mode, recorded};
  options.slots = 8;
  options.ring_bytes = 64 << 10;
  const auto summary = collector::Record(options);
  EXPECT_EQ(summary.exit_code, 0);
  EXPECT_EQ(summary.signal, 0);
  EXPECT_EQ(summary.leaves, GetParam().calls);
  EXPECT_EQ(summary.state, "complete");

  const Files expected = FilesOf(alone);
  const Files files = FilesOf(recorded);
  ASSERT_EQ(files.size(), expected.size());
  for (const auto& [name, content] : expected) {
    EXPECT_TRUE(files.at(name) == content) << name << " is not what the program wrote";
  }
}

INSTANTIATE_TEST_SUITE_P(, DescriptorsTest,
                         ::testing::Values(Program{"close-range", 5}, Program{"closefrom", 5},
                                           Program{"dup2", 5}, Program{"daemonise", 5},
                                           Program{"exec", 6}),
                         [](const auto& info) {
                           std::string name = info.param.mode;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace acltape::test
