// Notifies and counting notifies (NTF-01 to NTF-07).
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/device/event.h"

namespace acltape::device {

// The state of a notify. Tasks share it with the object, which may be destroyed while they are
// queued.
struct NotifyWord : Shared<NotifyWord> {
  std::atomic<uint32_t> value{0};
};

class Notify {
 public:
  Notify(Context& context, uint32_t number)
      : context_(context), number_(number), handle_(AllocateHandle(HandleKind::kNotify, this)) {}
  ~Notify();

  Task RecordTask() const;
  Task WaitTask(int64_t timeout_ns) const;
  void Clear() { word_->value.store(0, std::memory_order_release); }

  Context& context() const { return context_; }
  uint32_t number() const { return number_; }
  HandleBlock* handle() const { return handle_; }

 private:
  Context& context_;
  const uint32_t number_;
  HandleBlock* handle_;
  NotifyWord* word_ = new NotifyWord;
};

class CountNotify {
 public:
  CountNotify(Context& context, uint32_t number)
      : context_(context),
        number_(number),
        handle_(AllocateHandle(HandleKind::kCountNotify, this)) {}
  ~CountNotify();

  Task RecordTask(const aclrtCntNotifyRecordInfo& info) const;
  Task WaitTask(const aclrtCntNotifyWaitInfo& info) const;
  Task ResetTask() const;

  Context& context() const { return context_; }
  uint32_t number() const { return number_; }
  HandleBlock* handle() const { return handle_; }

 private:
  Context& context_;
  const uint32_t number_;
  HandleBlock* handle_;
  NotifyWord* word_ = new NotifyWord;
};

void DeleteNotify(Notify* notify);
void DeleteNotify(CountNotify* notify);

}  // namespace acltape::device
