// Files that users name: plain ones of a bounded size are read, and nothing else holds a command
// up.
#include "storage/plain_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace acltape::storage {
namespace {

class PlainFile : public ::testing::Test {
 protected:
  PlainFile() { std::filesystem::create_directory(folder_); }
  ~PlainFile() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string WhyNot(const std::string& path, int64_t most = kMostPlainBytes) const {
    std::string why;
    EXPECT_FALSE(ReadPlainFile(path, &why, most)) << path;
    return why;
  }

  const std::string folder_ = ::testing::TempDir() + "acltape-plain-" + std::to_string(::getpid());
};

TEST_F(PlainFile, ItsBytesAreReadAsTheyAre) {
  const std::string bytes("one\r\ntwo\0three", 14);
  std::ofstream(Path("file"), std::ios::binary) << bytes;
  EXPECT_EQ(ReadPlainFile(Path("file")), bytes);
  EXPECT_EQ(PlainHead(Path("file"), 3), "one");
  EXPECT_EQ(PlainHead(Path("file"), 100), bytes);
  std::ofstream(Path("empty"));
  EXPECT_EQ(ReadPlainFile(Path("empty")), "");
}

TEST_F(PlainFile, APipeOrADeviceIsRefusedAtOnce) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(WhyNot(Path("pipe")), "is no plain file (a pipe, a socket or a device)");
  EXPECT_EQ(WhyNot("/dev/zero"), "is no plain file (a pipe, a socket or a device)");
  EXPECT_EQ(PlainHead(Path("pipe"), 10), "");
  EXPECT_EQ(PlainHead("/dev/zero", 10), "");
}

TEST_F(PlainFile, AFileThatIsTooLargeIsRefusedBeforeItTakesMemory) {
  std::ofstream(Path("large"));
  std::filesystem::resize_file(Path("large"), uintmax_t{100} << 30);  // without a block on the disk
  EXPECT_EQ(WhyNot(Path("large")), "has 107374182400 bytes, and at most 268435456 are read");
  EXPECT_EQ(PlainHead(Path("large"), 3), std::string(3, '\0'));
  std::ofstream(Path("small")) << "1234";
  EXPECT_EQ(WhyNot(Path("small"), 3), "has 4 bytes, and at most 3 are read");
  EXPECT_EQ(ReadPlainFile(Path("small"), nullptr, 4), "1234");
}

TEST_F(PlainFile, WhatIsNotThereIsToldByTheSystemsWords) {
  EXPECT_EQ(WhyNot(Path("none")), "cannot be read (No such file or directory)");
  EXPECT_EQ(WhyNot(folder_), "is a folder");
  EXPECT_EQ(PlainHead(folder_, 10), "");
}

}  // namespace
}  // namespace acltape::storage
