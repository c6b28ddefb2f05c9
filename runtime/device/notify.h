// Notifies and counting notifies (NTF-01 to NTF-07).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>

#include "runtime/device/event.h"
#include "runtime/device/shared_file.h"

namespace acltape::device {

// The state of a notify. Tasks share it with the object, which may be destroyed while they are
// queued. It moves into a file when other processes may use the notify (IPC-06). Operations
// on it wait meanwhile.
class NotifyWord : public Shared<NotifyWord> {
 public:
  NotifyWord() = default;
  // The word of another process; null when the host cannot map it.
  static NotifyWord* Of(std::unique_ptr<SharedFile> file);
  ~NotifyWord();

  // Does something to the value.
  template <typename Action>
  auto Use(const Action& action) {
    std::shared_lock lock(mutex_);
    return action(*value_);
  }
  // Moves it into a file unless it lies in one. False when the system has no memory for that.
  bool Share();
  SharedFile* file() const { return file_.get(); }

 private:
  bool MoveTo(std::unique_ptr<SharedFile> file);

  std::shared_mutex mutex_;
  std::atomic<uint32_t> own_{0};
  std::atomic<uint32_t>* value_ = &own_;
  std::unique_ptr<SharedFile> file_;
};

class Notify {
 public:
  Notify(Context& context, uint32_t number, NotifyWord* word = new NotifyWord)
      : context_(context),
        number_(number),
        handle_(AllocateHandle(HandleKind::kNotify, this)),
        word_(word) {}
  ~Notify();

  Task RecordTask() const;
  Task WaitTask(int64_t timeout_ns) const;
  void Clear();

  Context& context() const { return context_; }
  uint32_t number() const { return number_; }
  HandleBlock* handle() const { return handle_; }
  NotifyWord& word() const { return *word_; }

 private:
  Context& context_;
  const uint32_t number_;
  HandleBlock* handle_;
  NotifyWord* word_;
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
