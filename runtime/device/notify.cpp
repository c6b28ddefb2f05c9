#include "runtime/device/notify.h"

#include <sys/mman.h>

#include "runtime/device/call.h"
#include "runtime/device/device_heap.h"
#include "runtime/device/futex.h"

namespace acltape::device {
namespace {

using Value = std::atomic<uint32_t>;

struct NotifyPayload {
  NotifyWord* word;
  uint32_t mode;
  uint32_t value;
  int64_t timeout_ns;
  bool clear;
};

NotifyPayload& Payload(void* argument) { return *static_cast<NotifyPayload*>(argument); }

bool Matches(uint32_t mode, uint32_t word, uint32_t value) {
  switch (mode) {
    case ACL_RT_CNT_NOTIFY_WAIT_LESS_MODE:
      return word < value;
    case ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE:
      return word == value;
    case ACL_RT_CNT_NOTIFY_WAIT_BIGGER_MODE:
      return word > value;
    case ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE:
      return word >= value;
    default:  // equal under a bit mask
      return (word & value) == value;
  }
}

bool CountReady(void* argument) {
  NotifyPayload& wait = Payload(argument);
  return wait.word->Use([&](const Value& value) {
    return Matches(wait.mode, value.load(std::memory_order_acquire), wait.value);
  });
}

aclError RunCountWait(void* argument) {
  NotifyPayload& wait = Payload(argument);
  int64_t deadline = wait.timeout_ns == 0 ? 0 : NowNs() + wait.timeout_ns;
  if (!PollUntil(CountReady, argument, deadline)) return ACL_ERROR_RT_WAIT_TIMEOUT;
  if (wait.clear) wait.word->Use([](Value& value) { value.store(0, std::memory_order_release); });
  return ACL_SUCCESS;
}

void Record(const NotifyPayload& record, Value& value) {
  switch (record.mode) {
    case ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE:
      value.store(record.value, std::memory_order_release);
      break;
    case ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE:
      value.fetch_add(record.value, std::memory_order_acq_rel);
      break;
    case ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE:
      value.fetch_or(record.value, std::memory_order_acq_rel);
      break;
    default:
      value.fetch_and(record.value, std::memory_order_acq_rel);
  }
}

aclError RunCountRecord(void* argument) {
  const NotifyPayload& record = Payload(argument);
  record.word->Use([&](Value& value) { Record(record, value); });
  return ACL_SUCCESS;
}

bool NotifyReady(void* argument) {
  return Payload(argument).word->Use(
      [](const Value& value) { return value.load(std::memory_order_acquire) != 0; });
}

// One wait consumes one record, however many streams wait (NTF-02).
bool ConsumeNotify(void* argument) {
  return Payload(argument).word->Use([](Value& value) {
    uint32_t set = 1;
    return value.compare_exchange_strong(set, 0);
  });
}

aclError RunNotifyWait(void* argument) {
  NotifyPayload& wait = Payload(argument);
  int64_t deadline = wait.timeout_ns == 0 ? 0 : NowNs() + wait.timeout_ns;
  return PollUntil(ConsumeNotify, argument, deadline) ? ACL_SUCCESS : ACL_ERROR_RT_WAIT_TIMEOUT;
}

void DropPayload(void* argument) { Payload(argument).word->Release(); }

Task NotifyTask(const char* name, uint32_t number, const NotifyPayload& payload,
                aclError (*run)(void*), bool (*ready)(void*)) {
  payload.word->Retain();
  Task task = MakeTask(TaskKind::kNotify, name, payload, run);
  task.drop = DropPayload;
  task.ready = ready;
  task.object_id = number;
  return task;
}

}  // namespace

NotifyWord* NotifyWord::Of(std::unique_ptr<SharedFile> file) {
  auto* word = new NotifyWord;
  if (word->MoveTo(std::move(file))) return word;
  word->Release();
  return nullptr;
}

NotifyWord::~NotifyWord() {
  if (file_ != nullptr) munmap(static_cast<void*>(value_), kPageBytes);
}

bool NotifyWord::Share() {
  std::unique_lock lock(mutex_);
  if (file_ != nullptr) return true;
  const uint32_t value = own_.load();
  std::unique_ptr<SharedFile> file = SharedFile::Create(kPageBytes);
  if (file == nullptr || !MoveTo(std::move(file))) return false;
  value_->store(value);
  return true;
}

bool NotifyWord::MoveTo(std::unique_ptr<SharedFile> file) {
  char* page = file->Map(nullptr, 0, kPageBytes);
  if (page == nullptr) return false;
  value_ = reinterpret_cast<std::atomic<uint32_t>*>(page);
  file_ = std::move(file);
  return true;
}

void Notify::Clear() {
  word_->Use([](Value& value) { value.store(0, std::memory_order_release); });
}

Notify::~Notify() {
  if (handle_ != nullptr) WipeHandle(handle_);
  word_->Release();
}

Task Notify::RecordTask() const {
  // Setting it again does not count (NTF-02).
  NotifyPayload payload{word_, ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE, 1, 0, false};
  return NotifyTask("NOTIFY_RECORD", number_, payload, RunCountRecord, nullptr);
}

Task Notify::WaitTask(int64_t timeout_ns) const {
  return NotifyTask("NOTIFY_WAIT", number_, {word_, 0, 0, timeout_ns, true}, RunNotifyWait,
                    NotifyReady);
}

CountNotify::~CountNotify() {
  if (handle_ != nullptr) WipeHandle(handle_);
  word_->Release();
}

Task CountNotify::RecordTask(const aclrtCntNotifyRecordInfo& info) const {
  NotifyPayload payload{word_, static_cast<uint32_t>(info.mode), info.value, 0, false};
  return NotifyTask("COUNT_NOTIFY_RECORD", number_, payload, RunCountRecord, nullptr);
}

Task CountNotify::WaitTask(const aclrtCntNotifyWaitInfo& info) const {
  NotifyPayload payload{word_, static_cast<uint32_t>(info.mode), info.value,
                        int64_t{info.timeout} * kSecond, info.isClear != 0};
  return NotifyTask("COUNT_NOTIFY_WAIT", number_, payload, RunCountWait, CountReady);
}

Task CountNotify::ResetTask() const {
  NotifyPayload payload{word_, ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE, 0, 0, false};
  return NotifyTask("COUNT_NOTIFY_RESET", number_, payload, RunCountRecord, nullptr);
}

void DeleteNotify(Notify* notify) {
  notify->context().device().notify_numbers.Release(notify->number());
  delete notify;
}

void DeleteNotify(CountNotify* notify) {
  notify->context().device().notify_numbers.Release(notify->number());
  delete notify;
}

}  // namespace acltape::device
