#include "replayer/device/device_work.h"

namespace acltape::replayer {

void CallResult::Throw() const {
  if (!code_) {
    throw Error(ErrorKind::kDevice,
                "the device library lacks " + std::string(call_) + "; use a newer one");
  }
  std::string sentence = std::string(call_) + " failed with code " + std::to_string(*code_);
  const char* message = api_->aclGetRecentErrMsg == nullptr ? nullptr : api_->aclGetRecentErrMsg();
  if (message != nullptr && *message != '\0') sentence += ": " + std::string(message);
  throw CallFailed(*code_, sentence);
}

CallResult DeviceWork::Copy(void* to, size_t room, const void* from, size_t bytes,
                            aclrtMemcpyKind kind, OnStream on) const {
  if (!on) return Ask("aclrtMemcpy", api_.aclrtMemcpy, to, room, from, bytes, kind);
  return Ask("aclrtMemcpyAsync", api_.aclrtMemcpyAsync, to, room, from, bytes, kind, *on);
}

CallResult DeviceWork::CopyRows(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                size_t width, size_t rows, aclrtMemcpyKind kind,
                                OnStream on) const {
  if (!on) {
    return Ask("aclrtMemcpy2d", api_.aclrtMemcpy2d, to, to_pitch, from, from_pitch, width, rows,
               kind);
  }
  return Ask("aclrtMemcpy2dAsync", api_.aclrtMemcpy2dAsync, to, to_pitch, from, from_pitch, width,
             rows, kind, *on);
}

CallResult DeviceWork::Fill(void* to, size_t room, int32_t value, size_t bytes, OnStream on) const {
  if (!on) return Ask("aclrtMemset", api_.aclrtMemset, to, room, value, bytes);
  return Ask("aclrtMemsetAsync", api_.aclrtMemsetAsync, to, room, value, bytes, *on);
}

CallResult DeviceWork::FillWords(void* to, size_t room, uint32_t value, size_t words,
                                 OnStream on) const {
  if (!on) return Ask("aclrtMemsetD32", api_.aclrtMemsetD32, to, room, value, words);
  return Ask("aclrtMemsetD32Async", api_.aclrtMemsetD32Async, to, room, value, words, *on);
}

CallResult DeviceWork::Record(aclrtEvent event, aclrtStream on, uint32_t flag) const {
  if (flag == 0) return Ask("aclrtRecordEvent", api_.aclrtRecordEvent, event, on);
  return Ask("aclrtRecordEventWithFlag", api_.aclrtRecordEventWithFlag, event, on, flag);
}

CallResult DeviceWork::Wait(aclrtEvent event, aclrtStream on, uint32_t flag) const {
  if (flag == 0) return Ask("aclrtStreamWaitEvent", api_.aclrtStreamWaitEvent, on, event);
  return Ask("aclrtStreamWaitEventWithFlag", api_.aclrtStreamWaitEventWithFlag, on, event, 0, flag);
}

CallResult DeviceWork::WaitForStream(aclrtStream stream, int timeout_ms) const {
  if (timeout_ms == kNoLimit || api_.aclrtSynchronizeStreamWithTimeout == nullptr) {
    return Ask("aclrtSynchronizeStream", api_.aclrtSynchronizeStream, stream);
  }
  return Ask("aclrtSynchronizeStreamWithTimeout", api_.aclrtSynchronizeStreamWithTimeout, stream,
             timeout_ms);
}

CallResult DeviceWork::WaitForEvent(aclrtEvent event, int timeout_ms) const {
  if (timeout_ms == kNoLimit || api_.aclrtSynchronizeEventWithTimeout == nullptr) {
    return Ask("aclrtSynchronizeEvent", api_.aclrtSynchronizeEvent, event);
  }
  return Ask("aclrtSynchronizeEventWithTimeout", api_.aclrtSynchronizeEventWithTimeout, event,
             timeout_ms);
}

CallResult DeviceWork::WaitForDevice(int timeout_ms) const {
  if (timeout_ms == kNoLimit || api_.aclrtSynchronizeDeviceWithTimeout == nullptr) {
    return Ask("aclrtSynchronizeDevice", api_.aclrtSynchronizeDevice);
  }
  return Ask("aclrtSynchronizeDeviceWithTimeout", api_.aclrtSynchronizeDeviceWithTimeout,
             timeout_ms);
}

void DeviceWork::EndStream(aclrtStream stream, int timeout_ms) const {
  if (WaitForStream(stream, timeout_ms).code() != ACL_ERROR_RT_STREAM_SYNC_TIMEOUT) return;
  Ask("aclrtStreamAbort", api_.aclrtStreamAbort, stream).Ignore();
}

void DeviceWork::EndDevice(int timeout_ms) const {
  if (WaitForDevice(timeout_ms).code() != ACL_ERROR_RT_STREAM_SYNC_TIMEOUT) return;
  Ask("aclrtDeviceTaskAbort", api_.aclrtDeviceTaskAbort, 0, static_cast<uint32_t>(timeout_ms))
      .Ignore();
}

CallResult DeviceWork::CreateStream(std::optional<uint32_t> flags, aclrtStream* stream) const {
  if (!flags || api_.aclrtCreateStreamWithConfig == nullptr) {
    return Ask("aclrtCreateStream", api_.aclrtCreateStream, stream);
  }
  return Ask("aclrtCreateStreamWithConfig", api_.aclrtCreateStreamWithConfig, stream, 0, *flags);
}

CallResult DeviceWork::CreateEvent(std::string_view maker, uint32_t flags,
                                   aclrtEvent* event) const {
  if (maker == "aclrtCreateEvent") {
    return Ask("aclrtCreateEvent", api_.aclrtCreateEvent, event);
  }
  if (maker == "aclrtCreateEventWithFlag") {
    return Ask("aclrtCreateEventWithFlag", api_.aclrtCreateEventWithFlag, event, flags);
  }
  // The event of another process may be gone. One of its own has the same tasks around it.
  if (maker == "aclrtIpcOpenEventHandle") flags = ACL_EVENT_IPC;
  return Ask("aclrtCreateEventExWithFlag", api_.aclrtCreateEventExWithFlag, event, flags);
}

OwnedStream MakeStream(const DeviceWork& work, std::optional<uint32_t> flags) {
  aclrtStream stream = nullptr;
  work.CreateStream(flags, &stream).Check();
  return {work, stream};
}

}  // namespace acltape::replayer
