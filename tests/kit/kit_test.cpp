// One libtorch is told from another, and its kit is looked for in the right places.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "kit/identity.h"
#include "kit/place.h"

namespace acltape::kit {
namespace {

namespace fs = std::filesystem;

class KitTest : public testing::Test {
 protected:
  KitTest() {
    char name[] = "/tmp/acltape_kit_XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~KitTest() override { fs::remove_all(folder_); }

  std::string File(const std::string& name, const std::string& content) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  static std::string IdentityText(const std::string& path) {
    Identity identity;
    return IdentityOf(path.c_str(), &identity) ? identity.text : "none";
  }

  fs::path folder_;
};

using Identities = KitTest;
using Places = KitTest;

TEST_F(Identities, EqualFilesHaveOneIdentityWhereverTheyLie) {
  const std::string content(300000, 'x');
  const std::string one = IdentityText(File("a/libtorch_cpu.so", content));
  EXPECT_EQ(one, IdentityText(File("b/libtorch_cpu.so.1.13", content)));
  EXPECT_EQ(one.size(), 16u);
}

TEST_F(Identities, SizeFirstAndLastBytesCount) {
  std::string content(300000, 'x');
  const std::string before = IdentityText(File("f", content));
  EXPECT_NE(before, IdentityText(File("f", content + 'x')));
  content.front() = 'y';
  const std::string first = IdentityText(File("f", content));
  EXPECT_NE(before, first);
  content.front() = 'x';
  content.back() = 'y';
  EXPECT_NE(before, IdentityText(File("f", content)));
  EXPECT_NE(first, IdentityText(File("f", content)));
}

TEST_F(Identities, SmallFilesHaveOneToo) {
  EXPECT_NE(IdentityText(File("f", "a")), IdentityText(File("f", "b")));
}

TEST_F(Identities, EmptyAbsentAndOtherThingsThanFilesHaveNone) {
  EXPECT_EQ(IdentityText(File("empty", "")), "none");
  EXPECT_EQ(IdentityText(folder_ / "absent"), "none");
  EXPECT_EQ(IdentityText(folder_), "none");
}

TEST_F(Places, TheFirstPlaceThatHasTheFileWins) {
  File("one/0123/x.so", "");
  File("two/0123-abc/x.so", "");
  File("two/4567-abc/x.so", "");
  const std::string places = (folder_ / "one/%").string() + ":" + (folder_ / "two/%-abc").string();
  EXPECT_EQ(FindInKits(places.c_str(), "0123", "x.so").text, folder_ / "one/0123/x.so");
  EXPECT_EQ(FindInKits(places.c_str(), "4567", "x.so").text, folder_ / "two/4567-abc/x.so");
  EXPECT_STREQ(FindInKits(places.c_str(), "89ab", "x.so").text, "");
}

TEST_F(Places, PlacesWithoutAMarkAndEmptyOnesHoldNothing) {
  File("0123/x.so", "");
  EXPECT_STREQ(FindInKits(folder_.c_str(), "0123", "x.so").text, "");
  EXPECT_STREQ(FindInKits("", "0123", "x.so").text, "");
  EXPECT_STREQ(FindInKits(nullptr, "0123", "x.so").text, "");
  const std::string places = "::" + (folder_ / "%").string() + ":";
  EXPECT_EQ(FindInKits(places.c_str(), "0123", "x.so").text, folder_ / "0123/x.so");
}

TEST_F(Places, TheCacheIsTheFirstOfThreeVariables) {
  setenv("HOME", "/h", 1);
  setenv("XDG_CACHE_HOME", "/x", 1);
  setenv("ACLTAPE_CACHE", "/a", 1);
  EXPECT_STREQ(CacheFolder().text, "/a");
  setenv("ACLTAPE_CACHE", "", 1);
  EXPECT_STREQ(CacheFolder().text, "/x/acltape");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_STREQ(CacheFolder().text, "/h/.cache/acltape");
  unsetenv("HOME");
  EXPECT_STREQ(CacheFolder().text, "");
}

}  // namespace
}  // namespace acltape::kit
