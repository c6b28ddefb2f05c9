// Functions of newer products only (rule GEN-10): counting notifies, and streams by configuration.
// The library in lib64/newer exports them.
#include <dlfcn.h>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

class NewerProduct : public SoftDevice {};

// Programs look these up to find out that they are on a newer product.
TEST_F(NewerProduct, GEN_10_OnlyItsLibraryExportsWhatTheServerProductLacks) {
  const std::string newer = ACLTAPE_NEWER_LIBRARY;
  const std::string server = ACLTAPE_SERVER_LIBRARY;
  for (const char* name :
       {"aclrtCntNotifyCreate", "aclrtCntNotifyDestroy", "aclrtCntNotifyGetId",
        "aclrtCntNotifyRecord", "aclrtCntNotifyReset", "aclrtCntNotifyWaitWithTimeout",
        "aclrtCreateStreamConfigHandle", "aclrtDestroyStreamConfigHandle",
        "aclrtSetStreamConfigOpt", "aclrtCreateStreamV2"}) {
    for (const std::string& path : {newer, server}) {
      void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      ASSERT_NE(library, nullptr) << dlerror();
      EXPECT_EQ(dlsym(library, name) != nullptr, path == newer) << name;
    }
  }
}

TEST_F(NewerProduct, NTF_06_CountingNotifies) {
  aclrtCntNotify notify = nullptr;
  ASSERT_OK(aclrtCntNotifyCreate(&notify, 0));
  auto record = [&](aclrtCntNotifyRecordMode mode, uint32_t value) {
    aclrtCntNotifyRecordInfo info{mode, value};
    ASSERT_OK(aclrtCntNotifyRecord(notify, stream_, &info));
  };
  auto wait = [&](aclrtCntNotifyWaitMode mode, uint32_t value, bool clear = false) {
    aclrtCntNotifyWaitInfo info{};
    info.mode = mode;
    info.value = value;
    info.timeout = 1;
    info.isClear = clear;
    EXPECT_OK(aclrtCntNotifyWaitWithTimeout(notify, stream_, &info));
    return aclrtSynchronizeStream(stream_);
  };
  record(ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE, 5);
  EXPECT_EQ(wait(ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, 5), 0);
  record(ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE, 3);
  EXPECT_EQ(wait(ACL_RT_CNT_NOTIFY_WAIT_BIGGER_MODE, 7), 0);
  record(ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE, 6);
  EXPECT_EQ(wait(ACL_RT_CNT_NOTIFY_WAIT_EQUAL_WITH_BITMASK_MODE, 12), 0);  // 8 | 6 = 14
  record(ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE, 3);
  EXPECT_EQ(wait(ACL_RT_CNT_NOTIFY_WAIT_LESS_MODE, 3, true), 0);  // 2, then cleared
  EXPECT_EQ(wait(ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, 0), 0);
  EXPECT_EQ(wait(ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE, 1), 107019);
  record(ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE, 9);
  ASSERT_OK(aclrtCntNotifyReset(notify, stream_));
  EXPECT_EQ(wait(ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, 0), 0);
  aclrtCntNotifyRecordInfo wrong{static_cast<aclrtCntNotifyRecordMode>(3), 1};
  EXPECT_CODE(107000, aclrtCntNotifyRecord(notify, stream_, &wrong));
  EXPECT_OK(aclrtCntNotifyDestroy(notify));
}

TEST_F(NewerProduct, STR_07_CreateFromAConfiguration) {
  aclrtStreamConfigHandle* config = aclrtCreateStreamConfigHandle();
  size_t flag = ACL_STREAM_FAST_LAUNCH;
  uint32_t priority = 2;
  EXPECT_OK(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &flag, sizeof(flag)));
  const uint32_t short_flag = ACL_STREAM_FAST_LAUNCH;  // as the vendor's samples give it
  EXPECT_OK(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &short_flag, sizeof(short_flag)));
  EXPECT_OK(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &priority, sizeof(priority)));
  EXPECT_CODE(100000, aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &flag, 3));
  aclrtStream stream = nullptr;
  ASSERT_OK(aclrtCreateStreamV2(&stream, config));
  uint32_t read = 0;
  ASSERT_OK(aclrtStreamGetFlags(stream, &read));
  EXPECT_EQ(read, flag);
  EXPECT_OK(aclrtDestroyStreamConfigHandle(config));
}

TEST_F(NewerProduct, GEN_09_CountingNotifiesAreAKindOfTheirOwn) {
  aclrtNotify notify = nullptr;
  aclrtCntNotify counting = nullptr;
  ASSERT_OK(aclrtCreateNotify(&notify, 0));
  ASSERT_OK(aclrtCntNotifyCreate(&counting, 0));
  EXPECT_CODE(107017, aclrtRecordNotify(counting, stream_));
  EXPECT_CODE(107017, aclrtCntNotifyReset(notify, stream_));
  ASSERT_OK(aclrtCntNotifyDestroy(counting));
  EXPECT_CODE(107017, aclrtCntNotifyDestroy(counting));
}

TEST_F(NewerProduct, CAP_71_RecordsOfCountingNotifiesAreCaptured) {
  aclrtCntNotify counter = nullptr;
  ASSERT_OK(aclrtCntNotifyCreate(&counter, 0));
  Begin(stream_);
  aclrtCntNotifyRecordInfo record{ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE, 1};
  ASSERT_OK(aclrtCntNotifyRecord(counter, stream_, &record));
  aclmdlRI model = End(stream_);
  for (int i = 0; i < 2; ++i) ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  aclrtCntNotifyWaitInfo info{};
  info.mode = ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE;
  info.value = 2;
  info.timeout = 1;
  ASSERT_OK(aclrtCntNotifyWaitWithTimeout(counter, stream_, &info));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

}  // namespace
}  // namespace acltape::device
