// Contexts own streams, events, notifies and models; the current one is a property of the thread
// (CTX-01 to CTX-10).
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "runtime/device/device.h"
#include "runtime/device/handle.h"
#include "runtime/device/host_service.h"
#include "runtime/device/stream.h"

namespace acltape::device {

class Event;
class Model;
class Notify;
class CountNotify;

class Context {
 public:
  // Null when no stream number is left for the default stream, or no handle.
  static Context* Create(Device& device, bool primary);
  // Waits for the streams, discards captures, and destroys everything inside (CTX-07, CAP-73). The
  // context itself and its default stream stay, a few hundred bytes: a call of another thread may
  // just have found them, and learns from `tearing_down` and the stream that they are no more.
  void Close();
  ~Context() = delete;

  Device& device() const { return device_; }
  HandleBlock* handle() const { return handle_; }
  bool primary() const { return primary_; }
  Stream& default_stream() const { return *default_stream_; }
  HostService& host_service() { return host_service_; }

  // On failure gives the code and leaves `*stream` as it was.
  aclError CreateStream(uint32_t priority, uint32_t flags, Stream** stream);
  // Removes the stream; queued tasks run first, or are dropped. False: another call does.
  bool DestroyStream(Stream* stream, bool run_queued);
  // Drops the work of its streams, which stands still (standstill.h); `call` is told as who did it.
  void DropStandingWork(const char* call);

  // Waits for every stream of the context, or of the device (DEV-10); the first error found is
  // returned.
  aclError Synchronize(int64_t timeout_ns);

  // The reason why no task is accepted now: the failure that stopped the context (STR-15), or a
  // device fault (ERR-05); 0 normally.
  aclError Refusal() const {
    aclError stopped = stopped_by_.load(std::memory_order_acquire);
    return stopped != ACL_SUCCESS ? stopped : device_.fault.load(std::memory_order_acquire);
  }
  bool Stopped() const { return stopped_by_.load(std::memory_order_acquire) != ACL_SUCCESS; }
  bool stops_on_failure() const { return stop_on_failure_.load(std::memory_order_acquire); }
  void StopOnFailure() { stop_on_failure_.store(true, std::memory_order_release); }
  void NoteTaskFailure(aclError code, const std::string& text);
  // The message of the failure that stopped the context.
  std::string FirstFailure() const;

  // Guards the sets below and the objects' membership in them. Taken after the capture lock.
  std::mutex mutex;
  std::set<Stream*> streams;  // the default stream included
  std::set<Event*> events;
  std::set<Model*> models;
  std::set<Notify*> notifies;
  std::set<CountNotify*> count_notifies;
  std::map<int, int64_t> options;  // aclSysParamOpt to value (CTX-09)
  void* overflow_flag = nullptr;   // device memory of aclrtCtxGetFloatOverflowAddr (OVF-02)

  std::atomic<bool> tearing_down{false};
  // Enters an object that was made. False: the context is being released, and the caller gives the
  // object up.
  template <typename T>
  bool Enter(std::set<T*>& objects, T* created) {
    std::lock_guard lock(mutex);
    if (tearing_down.load()) return false;
    objects.insert(created);
    return true;
  }

 private:
  Context(Device& device, bool primary);
  aclError CollectWaiting(std::set<Stream*>* waiting);
  void EndStream(Stream* stream, bool run_queued);

  Device& device_;
  HandleBlock* handle_;
  const bool primary_;
  HostService host_service_;
  Stream* default_stream_ = nullptr;
  std::atomic<bool> stop_on_failure_{false};
  std::atomic<aclError> stopped_by_{ACL_SUCCESS};
  mutable std::mutex failure_mutex_;
  std::string first_failure_;
};

// The thread's current context; null when it has none and no default device is configured. `call`
// names the interface function for the message; null: no message.
Context* CurrentContext(const char* call);
void SetCurrentContext(Context* context);

// Finds the stream of an interface call: null means the default stream (GEN-04), another context's
// stream is refused (GEN-05), a bad handle recognised (GEN-09).
aclError FindStream(aclrtStream handle, const char* call, Stream** stream);
// Finds the stream like FindStream, but accepts a stream of another context.
aclError FindAnyStream(aclrtStream handle, const char* call, Stream** stream);

}  // namespace acltape::device
