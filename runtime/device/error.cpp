#include "runtime/device/error.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "runtime/device/thread_state.h"

namespace acltape::device {
namespace {

struct CodeMeaning {
  aclError code;
  const char* meaning;
};

constexpr CodeMeaning kMeanings[] = {
    {ACL_ERROR_INVALID_PARAM, "invalid parameter"},
    {ACL_ERROR_UNINITIALIZE, "not initialised"},
    {ACL_ERROR_REPEAT_INITIALIZE, "initialised before"},
    {ACL_ERROR_INVALID_FILE, "file cannot be read"},
    {ACL_ERROR_PARSE_FILE, "file is not JSON"},
    {ACL_ERROR_REPEAT_FINALIZE, "not initialised or finalised before"},
    {ACL_ERROR_RT_PARAM_INVALID, "invalid value"},
    {ACL_ERROR_RT_INVALID_DEVICEID, "no such device"},
    {ACL_ERROR_RT_CONTEXT_NULL, "no current context, or not a context"},
    {ACL_ERROR_RT_STREAM_CONTEXT, "stream of another context"},
    {ACL_ERROR_RT_MODEL_CONTEXT, "model of another context"},
    {ACL_ERROR_RT_STREAM_MODEL, "stream and built model do not fit"},
    {ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "event has no time stamp yet"},
    {ACL_ERROR_RT_ADDR_UNALIGNED, "address not aligned"},
    {ACL_ERROR_RT_STREAM_SUBSCRIBE, "stream subscription"},
    {ACL_ERROR_RT_THREAD_SUBSCRIBE, "thread subscription"},
    {ACL_ERROR_RT_STREAM_NO_CB_REG, "stream has no subscribed thread"},
    {ACL_ERROR_RT_INVALID_HANDLE, "handle destroyed or of another kind"},
    {ACL_ERROR_RT_WAIT_TIMEOUT, "wait timed out"},
    {ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, "option never set"},
    {ACL_ERROR_RT_STREAM_ABORT, "stream aborted"},
    {ACL_ERROR_RT_CAPTURE_DEPENDENCY, "event recorded outside of the capture"},
    {ACL_ERROR_RT_STREAM_UNJOINED, "forked stream not joined"},
    {ACL_ERROR_RT_MODEL_CAPTURED, "model is being captured"},
    {ACL_ERROR_RT_STREAM_CAPTURED, "stream is capturing"},
    {ACL_ERROR_RT_EVENT_CAPTURED, "event belongs to a capture"},
    {ACL_ERROR_RT_STREAM_NOT_CAPTURED, "stream is not capturing"},
    {ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, "refused by the capture mode"},
    {ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT, "default stream cannot join a capture"},
    {ACL_ERROR_STREAM_CAPTURE_CONFLICT, "event and stream belong to different captures"},
    {ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED, "not the stream that began the capture"},
    {ACL_ERROR_RT_MODEL_RUNNING, "model is running"},
    {ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD, "not the thread that began the capture"},
    {ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC, "refused by the capture mode of another stream"},
    {ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "not offered here"},
    {ACL_ERROR_RT_MEMORY_ALLOCATION, "out of memory"},
    {ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "out of resources"},
    {ACL_ERROR_RT_NO_EVENT_RESOURCE, "out of events"},
    {ACL_ERROR_RT_NO_STREAM_RESOURCE, "out of streams"},
    {ACL_ERROR_RT_NO_NOTIFY_RESOURCE, "out of notifies"},
    {ACL_ERROR_RT_NO_MODEL_RESOURCE, "out of models"},
    {ACL_ERROR_RT_INTERNAL_ERROR, "object missing or not usable here"},
    {ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, "released before or never set"},
    {ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT, "task kind not supported"},
    {ACL_ERROR_RT_MODEL_EXECUTE, "model not ready, or its execution failed"},
    {ACL_ERROR_RT_REPORT_TIMEOUT, "no report within the time"},
    {ACL_ERROR_RT_SYS_DMA, "copy or fill failed"},
    {ACL_ERROR_RT_AICORE_EXCEPTION, "kernel failed"},
    {ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "stream synchronisation timed out"},
    {ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "event synchronisation timed out"},
    {ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, "capture was invalidated"},
    {ACL_ERROR_RT_DRV_INTERNAL_ERROR, "the driver refused"},
    {ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "host memory registered before"},
    {ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, "host memory not registered"},
};

const char* MeaningOf(aclError code) {
  for (const CodeMeaning& row : kMeanings) {
    if (row.code == code) return row.meaning;
  }
  return nullptr;
}

std::atomic<bool> messages_shared{false};
std::mutex shared_mutex;
char shared_message[sizeof(ThreadState::message)];
bool has_shared_message = false;

// The newest failure of a task, for any thread to ask for.
std::mutex failure_mutex;
char failure_text[sizeof(ThreadState::message)];
std::atomic<bool> failure_untold{false};

}  // namespace

std::string CodeText(aclError code) {
  const char* meaning = MeaningOf(code);
  return std::to_string(code) + (meaning != nullptr ? std::string(" (") + meaning + ")" : "");
}

aclError Fail(aclError code, const char* format, ...) {
  char text[sizeof(ThreadState::message)];
  va_list args;
  va_start(args, format);
  int length = std::vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  const char* meaning = MeaningOf(code);
  if (length >= 0 && static_cast<size_t>(length) < sizeof(text)) {
    std::snprintf(text + length, sizeof(text) - static_cast<size_t>(length), " [%d%s%s]", code,
                  meaning != nullptr ? ": " : "", meaning != nullptr ? meaning : "");
  }
  SetMessage(text);
  return SetLastError(code);
}

aclError SetLastError(aclError code) {
  if (code != ACL_SUCCESS) thread_state.last_error = code;
  return code;
}

aclError PeekLastError() { return thread_state.last_error; }

aclError TakeLastError() {
  aclError code = thread_state.last_error;
  thread_state.last_error = ACL_SUCCESS;
  return code;
}

void SetMessage(const char* text) {
  if (messages_shared.load(std::memory_order_acquire)) {
    std::lock_guard lock(shared_mutex);
    std::snprintf(shared_message, sizeof(shared_message), "%s", text);
    has_shared_message = true;
    return;
  }
  std::snprintf(thread_state.message, sizeof(thread_state.message), "%s", text);
  thread_state.has_message = true;
}

const char* OwnMessage() {
  if (messages_shared.load(std::memory_order_acquire)) return "";
  return thread_state.has_message ? thread_state.message : "";
}

void NoteFailedTask(const char* text) {
  std::lock_guard lock(failure_mutex);
  std::snprintf(failure_text, sizeof(failure_text), "%s", text);
  failure_untold.store(true, std::memory_order_release);
}

void FailedTaskIsReported() { failure_untold.store(false, std::memory_order_release); }

const char* TakeMessage() {
  const char* own = TakeOwnMessage();
  if (own != nullptr || !failure_untold.exchange(false, std::memory_order_acq_rel)) return own;
  std::lock_guard lock(failure_mutex);
  std::memcpy(thread_state.returned, failure_text, sizeof(failure_text));
  return thread_state.returned;
}

const char* TakeOwnMessage() {
  if (messages_shared.load(std::memory_order_acquire)) {
    std::lock_guard lock(shared_mutex);
    if (!has_shared_message) return nullptr;
    std::memcpy(thread_state.returned, shared_message, sizeof(shared_message));
    has_shared_message = false;
    return thread_state.returned;
  }
  if (!thread_state.has_message) return nullptr;
  std::memcpy(thread_state.returned, thread_state.message, sizeof(thread_state.message));
  thread_state.has_message = false;
  return thread_state.returned;
}

void ShareMessagesInProcess(bool shared) {
  messages_shared.store(shared, std::memory_order_release);
}

}  // namespace acltape::device
