#include "runtime/device/notify.h"

#include "runtime/device/call.h"
#include "runtime/device/futex.h"

namespace acltape::device {
namespace {

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
  return Matches(wait.mode, wait.word->value.load(std::memory_order_acquire), wait.value);
}

aclError RunCountWait(void* argument) {
  NotifyPayload& wait = Payload(argument);
  int64_t deadline = wait.timeout_ns == 0 ? 0 : NowNs() + wait.timeout_ns;
  if (!PollUntil(CountReady, argument, deadline)) return ACL_ERROR_RT_WAIT_TIMEOUT;
  if (wait.clear) wait.word->value.store(0, std::memory_order_release);
  return ACL_SUCCESS;
}

aclError RunCountRecord(void* argument) {
  NotifyPayload& record = Payload(argument);
  switch (record.mode) {
    case ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE:
      record.word->value.store(record.value, std::memory_order_release);
      break;
    case ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE:
      record.word->value.fetch_add(record.value, std::memory_order_acq_rel);
      break;
    case ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE:
      record.word->value.fetch_or(record.value, std::memory_order_acq_rel);
      break;
    default:
      record.word->value.fetch_and(record.value, std::memory_order_acq_rel);
  }
  return ACL_SUCCESS;
}

bool NotifyReady(void* argument) {
  return Payload(argument).word->value.load(std::memory_order_acquire) != 0;
}

// One wait consumes one record, however many streams wait (NTF-02).
bool ConsumeNotify(void* argument) {
  uint32_t set = 1;
  return Payload(argument).word->value.compare_exchange_strong(set, 0);
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
