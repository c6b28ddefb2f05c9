// The one place where the replayer calls the functions of the ACL interface that put work on a
// stream, order streams, wait for them, or make and destroy streams, events and notifies. Captures
// begin and end in captured_graph.h, operators are launched in bound_call.h.
//
// Addresses and handles are bound. A call gives back what the interface answered, because a probe
// looks for failures; everyone else checks the answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "generated/acl/api.h"
#include "storage/error.h"

namespace acltape::replayer {

// A call of the ACL interface returned a code other than 0.
class CallFailed : public Error {
 public:
  CallFailed(int code, const std::string& sentence)
      : Error(ErrorKind::kDevice, sentence), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

// The answer of the interface to a call.
class [[nodiscard]] CallResult {
 public:
  CallResult(const acl::Api& api, const char* call, std::optional<int32_t> code)
      : api_(&api), call_(call), code_(code) {}
  // Nothing if the library lacks the function.
  std::optional<int32_t> code() const { return code_; }
  // Throws CallFailed with the device's own message, or Error kDevice if the library lacks the
  // function, unless the code is 0.
  void Check() const {
    if (code_ != 0) Throw();
  }
  void Ignore() const {}

 private:
  [[noreturn]] void Throw() const;

  const acl::Api* api_;
  const char* call_;
  std::optional<int32_t> code_;
};

// The stream that work is put on. With kNow the host waits for the work, and no stream does.
using OnStream = std::optional<aclrtStream>;
inline constexpr std::nullopt_t kNow = std::nullopt;

inline constexpr int kNoLimit = -1;  // a wait without a limit of its time
inline constexpr int kEndLimitMs = 10000;

// Flags of events (rules EVT-03, EVT-14, EVT-22). A stream can wait for both, also in a capture
// (rule CAP-40). The second has a time stamp.
inline constexpr uint32_t kOrderingEvent = ACL_EVENT_SYNC;
inline constexpr uint32_t kTimedEvent = ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE;

class DeviceWork {
 public:
  explicit DeviceWork(const acl::Api& api) : api_(api) {}

  // Calls `function`, a member of the interface's table, if the library has it.
  template <typename Function, typename... Arguments>
  CallResult Ask(const char* call, Function function, Arguments... arguments) const {
    if (function == nullptr) return {api_, call, std::nullopt};
    return {api_, call, function(arguments...)};
  }

  // `room` is the number of bytes at `to` that may be written.
  CallResult Copy(void* to, size_t room, const void* from, size_t bytes, aclrtMemcpyKind kind,
                  OnStream on) const;
  CallResult CopyRows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                      size_t rows, aclrtMemcpyKind kind, OnStream on) const;
  CallResult Fill(void* to, size_t room, int32_t value, size_t bytes, OnStream on) const;
  CallResult FillWords(void* to, size_t room, uint32_t value, size_t words, OnStream on) const;
  CallResult WriteValue(void* to, uint64_t value, uint32_t flag, aclrtStream on) const {
    return Ask("aclrtValueWrite", api_.aclrtValueWrite, to, value, flag, on);
  }
  CallResult WaitForValue(void* word, uint64_t value, uint32_t flag, aclrtStream on) const {
    return Ask("aclrtValueWait", api_.aclrtValueWait, word, value, flag, on);
  }
  CallResult Reduce(void* to, const void* from, uint64_t bytes, aclrtReduceKind kind,
                    aclDataType type, aclrtStream on) const {
    return Ask("aclrtReduceAsync", api_.aclrtReduceAsync, to, from, bytes, kind, type, on, nullptr);
  }
  CallResult DrawNumbers(const aclrtRandomNumTaskInfo& task, aclrtStream on) const {
    return Ask("aclrtRandomNumAsync", api_.aclrtRandomNumAsync, &task, on, nullptr);
  }
  CallResult CallHost(void (*function)(void*), aclrtStream on) const {
    return Ask("aclrtLaunchHostFunc", api_.aclrtLaunchHostFunc, on, function, nullptr);
  }
  CallResult Execute(aclmdlRI graph, aclrtStream on) const {
    return Ask("aclmdlRIExecuteAsync", api_.aclmdlRIExecuteAsync, graph, on);
  }

  // The host waits for the execution.
  CallResult ExecuteNow(aclmdlRI graph, int32_t timeout_ms) const {
    return Ask("aclmdlRIExecute", api_.aclmdlRIExecute, graph, timeout_ms);
  }

  // `flag` is 0, or ACL_EVENT_RECORD_EXTERNAL and ACL_EVENT_WAIT_EXTERNAL: the event is one of
  // outside the capture.
  CallResult Record(aclrtEvent event, aclrtStream on, uint32_t flag = 0) const;
  CallResult Wait(aclrtEvent event, aclrtStream on, uint32_t flag = 0) const;
  CallResult Reset(aclrtEvent event, aclrtStream on) const {
    return Ask("aclrtResetEvent", api_.aclrtResetEvent, event, on);
  }
  CallResult RecordNotify(aclrtNotify notify, aclrtStream on) const {
    return Ask("aclrtRecordNotify", api_.aclrtRecordNotify, notify, on);
  }
  CallResult WaitNotify(aclrtNotify notify, aclrtStream on) const {
    return Ask("aclrtWaitAndResetNotify", api_.aclrtWaitAndResetNotify, notify, on, 0);
  }

  // Task groups of a capture, and their updates.
  bool CanUpdate() const {
    return api_.aclmdlRICaptureTaskGrpBegin != nullptr &&
           api_.aclmdlRICaptureTaskGrpEnd != nullptr &&
           api_.aclmdlRICaptureTaskUpdateBegin != nullptr &&
           api_.aclmdlRICaptureTaskUpdateEnd != nullptr;
  }
  CallResult BeginGroup(aclrtStream on) const {
    return Ask("aclmdlRICaptureTaskGrpBegin", api_.aclmdlRICaptureTaskGrpBegin, on);
  }
  CallResult EndGroup(aclrtStream on, aclrtTaskGrp* group) const {
    return Ask("aclmdlRICaptureTaskGrpEnd", api_.aclmdlRICaptureTaskGrpEnd, on, group);
  }
  CallResult BeginUpdate(aclrtStream on, aclrtTaskGrp group) const {
    return Ask("aclmdlRICaptureTaskUpdateBegin", api_.aclmdlRICaptureTaskUpdateBegin, on, group);
  }
  CallResult EndUpdate(aclrtStream on) const {
    return Ask("aclmdlRICaptureTaskUpdateEnd", api_.aclmdlRICaptureTaskUpdateEnd, on);
  }

  // The host waits. A library without waits of limited time waits without a limit.
  CallResult WaitForStream(aclrtStream stream, int timeout_ms = kNoLimit) const;
  CallResult WaitForEvent(aclrtEvent event, int timeout_ms = kNoLimit) const;
  CallResult WaitForDevice(int timeout_ms = kNoLimit) const;

  // Called before what the work of a stream, or of all streams of the device, uses is destroyed. A
  // replay that failed may leave work that waits for what never comes: it is dropped when the time
  // is over. Errors are ignored.
  void EndStream(aclrtStream stream, int timeout_ms = kEndLimitMs) const;
  void EndDevice(int timeout_ms = kEndLimitMs) const;

  // Without flags: aclrtCreateStream. Libraries that know no flags ignore them.
  CallResult CreateStream(std::optional<uint32_t> flags, aclrtStream* stream) const;
  // `maker` names the function that creates the event; empty: the one that takes all flags.
  CallResult CreateEvent(std::string_view maker, uint32_t flags, aclrtEvent* event) const;
  CallResult CreateNotify(uint32_t flags, aclrtNotify* notify) const {
    return Ask("aclrtCreateNotify", api_.aclrtCreateNotify, notify, flags);
  }
  CallResult DestroyStream(aclrtStream stream) const {
    return Ask("aclrtDestroyStream", api_.aclrtDestroyStream, stream);
  }
  CallResult DestroyStreamNow(aclrtStream stream) const {  // does not wait for its work
    return Ask("aclrtDestroyStreamForce", api_.aclrtDestroyStreamForce, stream);
  }
  CallResult DestroyEvent(aclrtEvent event) const {
    return Ask("aclrtDestroyEvent", api_.aclrtDestroyEvent, event);
  }
  CallResult DestroyNotify(aclrtNotify notify) const {
    return Ask("aclrtDestroyNotify", api_.aclrtDestroyNotify, notify);
  }

 private:
  const acl::Api& api_;
};

// A stream, an event or a notify with its owner, who destroys it.
template <CallResult (DeviceWork::*kDestroy)(void*) const>
class Owned {
 public:
  Owned() = default;
  Owned(const DeviceWork& work, void* handle) : work_(&work), handle_(handle) {}
  ~Owned() {
    if (work_ != nullptr) (work_->*kDestroy)(handle_).Ignore();
  }
  Owned(Owned&& other) noexcept { *this = std::move(other); }
  Owned& operator=(Owned&& other) noexcept {
    std::swap(work_, other.work_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  void* get() const { return handle_; }
  bool owns() const { return work_ != nullptr; }
  // The object belongs to someone else, or is gone. The handle stays.
  void Release() { work_ = nullptr; }

 private:
  const DeviceWork* work_ = nullptr;
  void* handle_ = nullptr;
};
using OwnedStream = Owned<&DeviceWork::DestroyStream>;
using OwnedEvent = Owned<&DeviceWork::DestroyEvent>;
using OwnedNotify = Owned<&DeviceWork::DestroyNotify>;

OwnedStream MakeStream(const DeviceWork& work, std::optional<uint32_t> flags = std::nullopt);

}  // namespace acltape::replayer
