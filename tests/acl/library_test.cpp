// The loader: finds installations, resolves symbol by symbol, and says what is missing.
#include "acl/loader/library.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace acltape::acl {
namespace {

namespace fs = std::filesystem;

class LibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("acltape_loader_" + std::to_string(getpid()));
    fs::create_directories(folder_ / "lib64");
    unsetenv("ASCEND_TOOLKIT_HOME");
    unsetenv("ASCEND_HOME_PATH");
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The sentence of the LoadError that opening gives.
  std::string FailureOf(const LibraryOptions& options) {
    try {
      Library library(options);
    } catch (const LoadError& error) {
      return error.what();
    }
    return "opened";
  }

  bool Missing(const Library& library, const std::string& name) {
    const auto& missing = library.missing();
    return std::find(missing.begin(), missing.end(), name) != missing.end();
  }

  fs::path folder_;
};

#define EXPECT_SAYS(text, expected) EXPECT_NE((text).find(expected), std::string::npos) << (text)

TEST_F(LibraryTest, OpensTheSoftDeviceByDefault) {
  Library library;
  EXPECT_EQ(library.directory(), Library::SoftDeviceDirectory());
  EXPECT_SAYS(library.description(), "soft device (");
  ASSERT_NE(library.api().aclrtGetSocName, nullptr);
  EXPECT_STREQ(library.api().aclrtGetSocName(), "Ascend910B1");
  EXPECT_FALSE(Missing(library, "aclmdlRICaptureBegin"));
  EXPECT_NO_THROW(library.Require({"aclInit", "aclrtMalloc", "aclmdlRIExecuteAsync"}));
}

TEST_F(LibraryTest, FunctionsOfTheSoftDeviceWorkThroughTheTable) {
  Library library;
  const Api& api = library.api();
  api.aclInit(nullptr);
  ASSERT_EQ(api.aclrtSetDevice(0), ACL_SUCCESS);
  aclrtStream stream = nullptr;
  EXPECT_EQ(api.aclrtCreateStream(&stream), ACL_SUCCESS);
  EXPECT_EQ(api.aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(api.aclrtDestroyStream(stream), ACL_SUCCESS);
  EXPECT_EQ(api.aclrtResetDevice(0), ACL_SUCCESS);
}

TEST_F(LibraryTest, WhatTheSoftDeviceDoesNotOfferIsMissingAndNull) {
  Library library;
  EXPECT_TRUE(Missing(library, "aclrtGetSymbolAddress"));
  EXPECT_EQ(library.api().aclrtGetSymbolAddress, nullptr);
  try {
    library.Require({"aclInit", "aclrtGetSymbolAddress"});
    FAIL() << "nothing was reported";
  } catch (const LoadError& error) {
    EXPECT_SAYS(std::string(error.what()), "does not define aclrtGetSymbolAddress");
  }
}

TEST_F(LibraryTest, AMissingLibraryIsOneSentenceWithPlaceAndRemedy) {
  std::string text = FailureOf({folder_.string()});
  EXPECT_SAYS(text, "device library missing: no libascendcl.so in " + folder_.string());
  EXPECT_SAYS(text, "name the file or the folder");
  EXPECT_SAYS(FailureOf({"/nonexistent/folder"}), "device library missing");
  std::ofstream(folder_ / "other.so") << "x";
  EXPECT_SAYS(FailureOf({(folder_ / "other.so").string()}), "is not named libascendcl.so");
}

TEST_F(LibraryTest, AFileThatIsNoLibraryIsSaidToBeUnusable) {
  std::ofstream(folder_ / "libascendcl.so") << "not a library";
  EXPECT_SAYS(FailureOf({folder_.string()}), "device library unusable");
}

TEST_F(LibraryTest, ALibraryWithoutAclInitIsRefused) {
  fs::copy(TINY_WITHOUT_INIT, folder_ / "libascendcl.so");
  std::string text = FailureOf({folder_.string()});
  EXPECT_SAYS(text, "does not define aclInit");
}

TEST_F(LibraryTest, AnOlderLibraryOpensAndReportsWhatItLacks) {
  fs::copy(TINY_WITH_INIT, folder_ / "lib64" / "libascendcl.so");
  for (const std::string& path : {folder_.string(), (folder_ / "lib64").string(),
                                  (folder_ / "lib64" / "libascendcl.so").string()}) {
    Library library({path});
    EXPECT_EQ(library.directory(), folder_ / "lib64");
    EXPECT_SAYS(library.description(), "ACL library (");
    EXPECT_EQ(library.api().aclInit(nullptr), 0);
    EXPECT_FALSE(Missing(library, "aclFinalize"));
    EXPECT_TRUE(Missing(library, "aclrtMalloc"));
    ASSERT_EQ(library.absent().size(), 2u);  // libnnopbase.so and libopapi.so
    EXPECT_SAYS(library.absent()[0], "libnnopbase.so: no such file");
    OperatorFunctions add = library.Operator(*FindOperator("aclnnAdd"));
    EXPECT_NE(add.prepare, nullptr);
    EXPECT_EQ(add.launch, nullptr);
    EXPECT_EQ(library.Operator(*FindOperator("aclnnAdd")).prepare, add.prepare);
  }
}

TEST_F(LibraryTest, ToolkitVariablesCountOnlyWhenAskedFor) {
  fs::copy(TINY_WITH_INIT, folder_ / "lib64" / "libascendcl.so");
  setenv("ASCEND_HOME_PATH", folder_.c_str(), 1);
  EXPECT_EQ(Library({"", true}).directory(), folder_ / "lib64");
  EXPECT_EQ(Library({"", false}).directory(), Library::SoftDeviceDirectory());
  setenv("ASCEND_TOOLKIT_HOME", "/nonexistent/toolkit", 1);  // comes first
  std::string text = FailureOf({"", true});
  EXPECT_SAYS(text, "device library missing: no libascendcl.so in /nonexistent/toolkit/lib64");
  EXPECT_SAYS(text, "ASCEND_TOOLKIT_HOME");
}

}  // namespace
}  // namespace acltape::acl
