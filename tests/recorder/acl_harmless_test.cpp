// The recorder's work on the program's streams must not harm the program: nothing becomes a part of
// a model that it builds, and no memory is given back that the device may still write to. The tests
// run over a device that this file makes up.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "recorder/acl/handles.h"
#include "recorder/acl/memory.h"
#include "recorder/acl/model_parts.h"
#include "recorder/acl/objects.h"
#include "recorder/acl/pending.h"
#include "recorder/acl/real.h"
#include "recorder/acl/thread.h"
#include "recorder/acl/values.h"

namespace {

bool g_refuse_memory = false;

}  // namespace

extern "C" {
void* __real_realloc(void* before, size_t bytes);
void* __wrap_realloc(void* before, size_t bytes) {
  return g_refuse_memory ? nullptr : __real_realloc(before, bytes);
}
}

namespace acltape::acl_agent {
namespace {

constexpr uint64_t kPersistent = 0x1000, kPlain = 0x2000;

struct Device {
  bool done = true;  // true if the work on its streams is done
  aclError not_done =
      ACL_ERROR_RT_EVENT_SYNC_TIMEOUT;  // result of a wait for work that is not done
  int copies = 0;
  int records = 0;          // records of events that are in use
  int most_records = 1023;  // before one is refused
  int waits = 0;
  bool ends_when_waited_for = false;
  std::vector<void*> freed;
  std::vector<char> pinned;
};
Device g_device;
int g_captures = 0;
int g_told = 0;
__thread Thread* t_recorded = nullptr;

}  // namespace

// These replace functions of the agent's other files.
void* RealByName(const char* name) {
  static const std::map<std::string, void*> functions = {
      {"aclrtMallocHost", reinterpret_cast<void*>(+[](void** memory, size_t bytes) {
         g_device.pinned.resize(bytes);
         *memory = g_device.pinned.data();
         return aclError{ACL_SUCCESS};
       })},
      {"aclrtFreeHost", reinterpret_cast<void*>(+[](void* memory) {
         g_device.freed.push_back(memory);
         return aclError{ACL_SUCCESS};
       })},
      {"aclrtMemcpyAsync", reinterpret_cast<void*>(+[](void* to, size_t, const void* from,
                                                       size_t bytes, aclrtMemcpyKind, aclrtStream) {
         ++g_device.copies;
         memcpy(to, from, bytes);
         return aclError{ACL_SUCCESS};
       })},
      {"aclrtCreateEventExWithFlag", reinterpret_cast<void*>(+[](aclrtEvent* event, uint32_t) {
         *event = &g_device;
         return aclError{ACL_SUCCESS};
       })},
      {"aclrtDestroyEvent",
       reinterpret_cast<void*>(+[](aclrtEvent) { return aclError{ACL_SUCCESS}; })},
      {"aclrtRecordEvent", reinterpret_cast<void*>(+[](aclrtEvent, aclrtStream) {
         if (g_device.records >= g_device.most_records) {
           return aclError{ACL_ERROR_RT_NO_EVENT_RESOURCE};
         }
         ++g_device.records;
         return aclError{ACL_SUCCESS};
       })},
      {"aclrtQueryEventStatus",
       reinterpret_cast<void*>(+[](aclrtEvent, aclrtEventRecordedStatus* status) {
         *status = g_device.done ? ACL_EVENT_RECORDED_STATUS_COMPLETE
                                 : ACL_EVENT_RECORDED_STATUS_NOT_READY;
         return aclError{ACL_SUCCESS};
       })},
      {"aclrtSynchronizeEventWithTimeout", reinterpret_cast<void*>(+[](aclrtEvent, int32_t) {
         ++g_device.waits;
         if (g_device.ends_when_waited_for) {
           --g_device.records;
           return aclError{ACL_SUCCESS};
         }
         return g_device.done ? aclError{ACL_SUCCESS} : g_device.not_done;
       })},
      {"aclrtGetEventAvailNum", reinterpret_cast<void*>(+[](uint32_t* count) {
         *count = 1023;
         return aclError{ACL_SUCCESS};
       })},
      {"aclrtStreamGetFlags", reinterpret_cast<void*>(+[](aclrtStream stream, uint32_t* flags) {
         const bool persistent = reinterpret_cast<uint64_t>(stream) == kPersistent;
         *flags = persistent ? ACL_STREAM_PERSISTENT : 0;
         return aclError{ACL_SUCCESS};
       })},
  };
  const auto found = functions.find(name);
  return found == functions.end() ? nullptr : found->second;
}
uint64_t IdOf(Thread&, wire::HandleKind, uint64_t handle, bool) { return handle; }
uint64_t AddHandle(Thread&, wire::HandleKind, uint64_t handle, uint32_t) { return handle; }
int32_t CurrentDevice(Thread& thread) { return thread.device = 0; }
void CountCapture(int change) { g_captures += change; }
bool EncodeMemory(Thread&, uint64_t, uint64_t) { return true; }
Thread* Enter() { return t_recorded; }
bool Bytes::Reserve(size_t) { return false; }
void RecordContent(Thread&, const Content&, const void*) { ++g_told; }

namespace {

// One recorded thread with a ring of its own.
class Harmless : public ::testing::Test {
 protected:
  Harmless() : ring_(1 << 20) {
    tape_.arena = &arena_;
    tape_.ring = wire::RingProducer(&slot_, ring_.data(), ring_.size());
    thread_.tape = &tape_;
    t_recorded = &thread_;
    g_device = Device();
    g_captures = g_told = 0;
  }
  ~Harmless() override {
    g_refuse_memory = false;
    ForgetPendingLocks();
    t_recorded = nullptr;
  }

  void Copy(uint64_t call_id, uint64_t bytes = 8) {
    memory_.resize(bytes);
    Content content{};
    content.call_id = call_id;
    content.bytes = bytes;
    EncodeBytes(0, bytes, &content);
    CopyAfterWork(thread_, content, reinterpret_cast<uint64_t>(memory_.data()), kPlain);
  }
  // Values that are missing, by the ledger.
  uint64_t Missing() const {
    uint64_t missing = 0;
    for (uint64_t offset = 0; offset < slot_.head.load();) {
      const auto* header = reinterpret_cast<const wire::RecordHeader*>(ring_.data() + offset);
      if (header->kind == wire::RecordKind::kLedger) {
        const auto* record = reinterpret_cast<const wire::LedgerRecord*>(header);
        EXPECT_STREQ(reinterpret_cast<const char*>(record + 1), "value_not_kept");
        missing += record->count;
      }
      offset += header->bytes;
    }
    return missing;
  }

  Thread thread_;

 private:
  std::vector<std::byte> ring_;
  wire::ArenaHeader arena_{};
  wire::Slot slot_{};
  agent::Tape tape_;
  std::vector<char> memory_;  // memory of the device
};

TEST_F(Harmless, PinnedMemoryIsGivenBackWhenAllCopiesHaveEnded) {
  Copy(1);
  Copy(2);
  RecordFinishedCopies(thread_, true);
  EXPECT_EQ(g_told, 2);
  EXPECT_EQ(g_device.freed.size(), 1u);
  EXPECT_EQ(Missing(), 0u);
}

TEST_F(Harmless, PinnedMemoryOfACopyThatDidNotEndIsNeverUsedAgainNorGivenBack) {
  g_device.done = false;
  Copy(1);
  Copy(2);
  RecordFinishedCopies(thread_, true);
  EXPECT_EQ(g_device.waits, 1) << "the second copy is after the first, or as lost as it";
  EXPECT_TRUE(g_device.freed.empty());
  EXPECT_EQ(Missing(), 2u);
  g_device.done = true;
  Copy(3);
  EXPECT_EQ(g_device.copies, 2);
  EXPECT_EQ(Missing(), 3u);
  EXPECT_EQ(g_told, 0);
}

TEST_F(Harmless, FewEventsAreInUseHoweverManyCopiesThereAre) {
  g_device.done = false;
  g_device.ends_when_waited_for = true;
  const struct {
    int given;  // by the device
    int most;
  } kCases[] = {{1023, 1023 / 4}, {100, 100}};
  for (const auto& [given, most] : kCases) {
    SCOPED_TRACE(given);
    g_device.most_records = given;
    for (uint64_t call_id = 0; call_id < 2000; ++call_id) Copy(call_id);
    EXPECT_LE(g_device.records, most);
    RecordFinishedCopies(thread_, true);
  }
  EXPECT_EQ(g_told, 4000);
  EXPECT_EQ(Missing(), 0u);
}

TEST_F(Harmless, MemoryOfACopyWithoutAnEventIsNotGivenBack) {
  g_device.most_records = 0;
  Copy(1, uint64_t{33} << 20);  // more than half of the recorder's pinned memory: has its own
  Copy(2);
  RecordFinishedCopies(thread_, true);
  EXPECT_EQ(g_device.copies, 1);
  EXPECT_TRUE(g_device.freed.empty());
  EXPECT_EQ(Missing(), 2u);
}

TEST_F(Harmless, AFailureOfTheDeviceLosesTheValueAlone) {
  g_device.done = false;
  g_device.not_done = ACL_ERROR_RT_AICORE_EXCEPTION;
  Copy(1);
  RecordFinishedCopies(thread_, true);
  EXPECT_EQ(Missing(), 1u);
  EXPECT_EQ(g_device.freed.size(), 1u);
  g_device.done = true;
  Copy(2);
  RecordFinishedCopies(thread_, true);
  EXPECT_EQ(g_told, 1);
}

TEST_F(Harmless, ABoundStreamHasItsModelUntilItIsUnbound) {
  EXPECT_EQ(BoundModel(thread_, kPersistent), 0u);
  BindToModel(kPersistent, 5);
  EXPECT_EQ(BoundModel(thread_, kPersistent), 5u);
  EXPECT_EQ(g_captures, 1);
  UnbindFromModel(kPersistent);
  EXPECT_EQ(BoundModel(thread_, kPersistent), 0u);
  EXPECT_EQ(g_captures, 0);
}

// The last of this file: what was forgotten stays so.
TEST_F(Harmless, AStreamThatThereWasNoMemoryToRememberHasAModelAllTheSame) {
  constexpr uint64_t kMore = 40;  // than have room
  g_refuse_memory = true;
  for (uint64_t stream = 1; stream <= kMore; ++stream) BindToModel(stream << 20, 6);
  g_refuse_memory = false;
  EXPECT_EQ(BoundModel(thread_, kPersistent), 6u);
  EXPECT_EQ(BoundModel(thread_, kPlain), 0u) << "a stream that can be bound to no model";
  EXPECT_EQ(BoundModel(thread_, 0), 0u);
  EXPECT_GE(g_captures, 1) << "streams are asked for their models";
}

}  // namespace
}  // namespace acltape::acl_agent
