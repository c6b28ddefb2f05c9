// Debug output of models: rules JSON-01 to JSON-08.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

using nlohmann::json;

class ModelPrint : public SoftDevice {
 protected:
  void SetUp() override {
    SoftDevice::SetUp();
    path_ = std::filesystem::temp_directory_path() /
            ("acltape_model_" + std::to_string(getpid()) + ".json");
    ASSERT_OK(aclrtMalloc(&cell_, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  }
  void TearDown() override {
    std::filesystem::remove(path_);
    aclrtFree(cell_);
    SoftDevice::TearDown();
  }

  std::string Print(aclmdlRI model, uint32_t flags) {
    EXPECT_OK(aclmdlRIDebugJsonPrint(model, path_.c_str(), flags));
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  void LaunchArgs(aclrtStream stream, const std::vector<uint64_t>& words) {
    ASSERT_OK(SoftLaunchKernelWithArgs(
        stream, "with \"quotes\"", [](void*) -> aclError { return 0; }, words.data(),
        words.size() * 8));
  }

  std::filesystem::path path_;
  void* cell_ = nullptr;
};

TEST_F(ModelPrint, JSON_01_Refusals) {
  Begin(stream_);
  aclmdlRI model = End(stream_);
  EXPECT_CODE(100000, aclmdlRIDebugJsonPrint(nullptr, path_.c_str(), 0));
  EXPECT_CODE(100000, aclmdlRIDebugJsonPrint(model, nullptr, 0));
  EXPECT_CODE(107000, aclmdlRIDebugJsonPrint(model, "/no/such/folder/m.json", 0));
  EXPECT_CODE(107000, aclmdlRIDebugJsonPrint(model, path_.c_str(), 2));
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(json::parse(Print(model, 0)), json::array());  // the file is created
}

TEST_F(ModelPrint, JSON_02_JSON_03_JSON_05_OneObjectPerTask) {
  aclrtEvent fork = CreateEx();
  aclrtEvent join = CreateEx();
  Begin(stream_);
  LaunchArgs(stream_, {1});
  ASSERT_OK(aclrtRecordEvent(fork, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, fork));
  ASSERT_OK(aclrtRecordEvent(join, other_));
  ASSERT_OK(aclrtStreamWaitEvent(stream_, join));
  aclmdlRI model = End(stream_);
  std::string text = Print(model, 0);
  json events = json::parse(text);
  // Five captured tasks and two resets; a line each, between the brackets.
  ASSERT_EQ(events.size(), 7u);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 9);
  std::set<std::string> streams;
  for (const json& event : events) {
    for (const char* member : {"name", "pid", "tid", "ts", "dur", "ph", "args"}) {
      EXPECT_TRUE(event.contains(member)) << event;
    }
    EXPECT_EQ(event.size(), 7u);
    EXPECT_EQ(event["ph"], "X");
    EXPECT_EQ(event["pid"], std::to_string(getpid()) + " aclGraph");
    EXPECT_EQ(event["tid"], "stream" + std::to_string(event["args"]["Stream Id"].get<int>()));
    streams.insert(event["tid"]);
  }
  EXPECT_EQ(streams.size(), 2u);
}

TEST_F(ModelPrint, JSON_04_NamesHaveTheIdOfWhatTheyAreAbout) {
  aclrtEvent external = nullptr;
  aclrtNotify notify = nullptr;
  uint32_t event_id = 0;
  uint32_t notify_id = 0;
  ASSERT_OK(aclrtCreateEventWithFlag(&external, ACL_EVENT_EXTERNAL));
  ASSERT_OK(aclrtGetEventId(external, &event_id));
  ASSERT_OK(aclrtCreateNotify(&notify, 0));
  ASSERT_OK(aclrtGetNotifyId(notify, &notify_id));
  Begin(stream_);
  LaunchArgs(stream_, {1});
  ASSERT_OK(aclrtStreamWaitEvent(stream_, external));
  ASSERT_OK(aclrtRecordNotify(notify, stream_));
  ASSERT_OK(aclrtValueWrite(cell_, 1, 0, stream_));
  ASSERT_OK(aclrtMemsetAsync(cell_, 8, 0, 8, stream_));
  json events = json::parse(Print(End(stream_), 0));
  char address[32];
  std::snprintf(address, sizeof(address), "%p", cell_);
  EXPECT_EQ(events[0]["name"], "with \"quotes\"");
  EXPECT_EQ(events[1]["name"], "EVENT_WAIT_" + std::to_string(event_id));
  EXPECT_EQ(events[2]["name"], "NOTIFY_RECORD_" + std::to_string(notify_id));
  EXPECT_EQ(events[3]["name"], std::string("VALUE_WRITE_") + address);
  EXPECT_EQ(events[4]["name"], events[4]["args"]["Task Type"]);
}

TEST_F(ModelPrint, JSON_06_ArtificialTimesByStream) {
  aclrtEvent fork = CreateEx();
  aclrtEvent join = CreateEx();
  Begin(stream_);
  LaunchArgs(stream_, {1});
  ASSERT_OK(aclrtRecordEvent(fork, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, fork));
  LaunchArgs(other_, {1});
  ASSERT_OK(aclrtRecordEvent(join, other_));
  ASSERT_OK(aclrtStreamWaitEvent(stream_, join));
  LaunchArgs(stream_, {1});
  json events = json::parse(Print(End(stream_), 0));
  std::map<std::string, std::vector<std::pair<double, double>>> times;
  for (const json& event : events) {
    times[event["tid"]].emplace_back(event["ts"], event["dur"]);
  }
  using Times = std::vector<std::pair<double, double>>;
  // kernel, record, wait, kernel, two resets
  EXPECT_EQ(times[events[0]["tid"]],
            (Times{{0, 9.5}, {10, 4.5}, {15, 14.5}, {30, 9.5}, {40, 9.5}, {50, 9.5}}));
  // wait, kernel, record
  EXPECT_EQ(times[events[2]["tid"]], (Times{{0, 14.5}, {15, 9.5}, {25, 4.5}}));
}

TEST_F(ModelPrint, JSON_07_Arguments) {
  Begin(stream_);
  LaunchArgs(stream_, {0x12, 0xABCDEF0123456789});
  ASSERT_OK(aclrtMemsetAsync(cell_, 8, 0, 8, stream_));
  aclmdlRI model = End(stream_);
  uint32_t id = 0;
  ASSERT_OK(aclmdlRIGetId(model, &id));
  json brief = json::parse(Print(model, 0));
  json full = json::parse(Print(model, 1));
  json kernel = brief[0]["args"];
  EXPECT_EQ(kernel["Model Id"], id);
  EXPECT_EQ(kernel["Task Id"], 0);
  EXPECT_EQ(kernel["Task Type"], "KERNEL");
  EXPECT_EQ(kernel["Numblocks"], 1);
  EXPECT_EQ(kernel["Kernel Args Size"], 16);
  EXPECT_TRUE(kernel.contains("Task Ration"));
  EXPECT_TRUE(kernel.contains("Schem Mode"));
  EXPECT_FALSE(kernel.contains("Kernel Args"));
  EXPECT_EQ(full[0]["args"]["Kernel Args"], "0000000000000012 abcdef0123456789");
  EXPECT_FALSE(full[1]["args"].contains("Kernel Args Size"));
  EXPECT_EQ(full[1]["args"]["Task Id"], 1);
}

TEST_F(ModelPrint, JSON_07_ACascadeNamesTheStreamThatItActivates) {
  Begin(stream_);
  for (int i = 0; i < 2100; ++i) LaunchArgs(stream_, {1});
  json events = json::parse(Print(End(stream_), 0));
  int links = 0;
  for (const json& event : events) {
    if (!event["args"].contains("Active Stream Id")) continue;
    ++links;
    EXPECT_EQ(event["args"]["Active Stream Id"], events.back()["args"]["Stream Id"]);
  }
  EXPECT_EQ(links, 1);
}

TEST_F(ModelPrint, JSON_09_ATaskHasTheTextThatTheProgramGaveIt) {
  const auto note = [](const std::string& text) {
    return aclrtCacheLastTaskExtendInfo(text.data(), text.size());
  };
  Begin(stream_);
  ASSERT_OK(aclrtMemsetAsync(cell_, 8, 0, 8, stream_));
  ASSERT_OK(note("first"));
  ASSERT_OK(note("{\"tag\": \"after\\nfill\"}"));  // the later text is kept
  ASSERT_OK(aclrtMemsetAsync(cell_, 8, 0, 8, stream_));
  ASSERT_OK(aclrtMemsetAsync(cell_, 8, 0, 8, stream_));
  ASSERT_OK(note(std::string(5000, 'x')));  // 4 KiB of it are kept
  EXPECT_CODE(100000, aclrtCacheLastTaskExtendInfo(nullptr, 4));
  EXPECT_CODE(107000, aclrtCacheLastTaskExtendInfo("text", 0));
  aclmdlRI model = End(stream_);
  EXPECT_CODE(107000, note("too late"));
  json events = json::parse(Print(model, 0));
  EXPECT_EQ(events[0]["args"]["ExtendInfo"], "{\"tag\": \"after\\nfill\"}");
  EXPECT_FALSE(events[1]["args"].contains("ExtendInfo"));
  EXPECT_EQ(events[2]["args"]["ExtendInfo"], std::string(4096, 'x'));
}

TEST_F(ModelPrint, JSON_09_ATextNeedsATaskOfAModel) {
  ASSERT_OK(aclrtMemsetAsync(cell_, 8, 0, 8, stream_));
  EXPECT_CODE(107000, aclrtCacheLastTaskExtendInfo("text", 4));
  Begin(stream_);
  ASSERT_OK(aclrtMemsetAsync(cell_, 8, 0, 8, stream_));
  ASSERT_OK(aclmdlRIDestroy(End(stream_)));
  EXPECT_CODE(107000, aclrtCacheLastTaskExtendInfo("text", 4));  // its model is gone
}

TEST_F(ModelPrint, JSON_08_DebugPrintWritesASummaryToTheLog) {
  Begin(stream_);
  LaunchArgs(stream_, {1});
  aclmdlRI model = End(stream_);
  EXPECT_CODE(100000, aclmdlRIDebugPrint(nullptr));
  testing::internal::CaptureStderr();
  EXPECT_OK(aclmdlRIDebugPrint(model));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("1 tasks"), std::string::npos);
}

}  // namespace
}  // namespace acltape::device
