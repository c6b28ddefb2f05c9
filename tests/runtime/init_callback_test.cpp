// Functions that are called when the process is initialised and finalised (section 2 of the rules).
#include <cstdio>
#include <fstream>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

// The texts that a callback was given, in order.
struct Told {
  std::vector<std::string> texts;
  aclError answer = ACL_SUCCESS;
};

aclError OnInit(const char* text, size_t length, void* told) {
  static_cast<Told*>(told)->texts.emplace_back(text, length);
  return static_cast<Told*>(told)->answer;
}

aclError OnFinalize(void* told) {
  static_cast<Told*>(told)->texts.emplace_back("end");
  return static_cast<Told*>(told)->answer;
}

class InitCallback : public testing::Test {
 protected:
  void TearDown() override {
    aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, OnInit);
    aclFinalizeCallbackUnRegister(ACL_REG_TYPE_OTHER, OnFinalize);
    aclFinalize();
    aclGetRecentErrMsg();
  }
  Told told_;
};

TEST_F(InitCallback, INIT_10_TheTextOfTheConfigurationIsHandedOverAsItIs) {
  const std::string text = "{ \"something\":\n {} }\n";
  const std::string path = testing::TempDir() + "configuration" + std::to_string(getpid());
  std::ofstream(path) << text;
  EXPECT_OK(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, OnInit, &told_));
  EXPECT_TRUE(told_.texts.empty());
  EXPECT_OK(aclInit(path.c_str()));
  std::remove(path.c_str());
  EXPECT_EQ(told_.texts, (std::vector<std::string>{text}));
  EXPECT_CODE(100002, aclInit(nullptr));  // not again
  EXPECT_EQ(told_.texts.size(), 1u);
}

TEST_F(InitCallback, INIT_10_OneThatComesLateIsCalledAtOnce) {
  EXPECT_OK(aclInit(nullptr));
  told_.answer = 1234;  // its own affair
  EXPECT_OK(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, OnInit, &told_));
  EXPECT_EQ(told_.texts, (std::vector<std::string>{""}));
}

TEST_F(InitCallback, INIT_10_ACodeOfACallbackIsThatOfAclInit) {
  told_.answer = 500000;
  EXPECT_OK(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, OnInit, &told_));
  EXPECT_EQ(aclInit(nullptr), 500000);
  EXPECT_CODE(100037, aclFinalize());  // it is not initialised
  told_.answer = ACL_SUCCESS;
  EXPECT_OK(aclInit(nullptr));
}

TEST_F(InitCallback, INIT_11_FinaliseCallsItsOwnAndEndsInAnyCase) {
  EXPECT_OK(aclInit(nullptr));
  EXPECT_OK(aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, OnFinalize, &told_));
  told_.answer = 500000;
  EXPECT_EQ(aclFinalize(), 500000);
  EXPECT_EQ(told_.texts, (std::vector<std::string>{"end"}));
  EXPECT_CODE(100037, aclFinalize());
}

TEST_F(InitCallback, INIT_11_OneFunctionForEachTypeButTheLast) {
  EXPECT_OK(aclInitCallbackRegister(ACL_REG_TYPE_ACL_MODEL, OnInit, &told_));
  EXPECT_CODE(500000, aclInitCallbackRegister(ACL_REG_TYPE_ACL_MODEL, OnInit, &told_));
  EXPECT_OK(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, OnInit, &told_));
  EXPECT_OK(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, OnInit, &told_));
  EXPECT_OK(aclInit(nullptr));
  EXPECT_EQ(told_.texts.size(), 3u);
  EXPECT_OK(aclInitCallbackUnRegister(ACL_REG_TYPE_ACL_MODEL, OnInit));
  EXPECT_CODE(500000, aclInitCallbackUnRegister(ACL_REG_TYPE_ACL_MODEL, OnInit));
  EXPECT_OK(aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, OnInit));
  EXPECT_CODE(500000, aclFinalizeCallbackUnRegister(ACL_REG_TYPE_OTHER, OnFinalize));
}

}  // namespace
}  // namespace acltape::device
