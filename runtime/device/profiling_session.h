// A profile holds what happened between aclprofStart and aclprofStop: the calls of the interface on
// the host, and when tasks ran on the streams. It goes into a folder of the form that the vendor's
// tools look for, PROF_000001_<time>_<letters>, in the folder that aclprofInit names:
//
//   host/start_info, device_N/start_info.N   when it began, by two clocks
//   host/data/calls.tsv                      number, name, thread, begin, end
//   device_N/data/tasks.tsv                  name, kind, stream, call, thread, launch, begin, end
//
// `call` is the number of the call that submitted the task, and `launch` when it did. A library of
// the toolkit can get the same rows as they come (SoftSetProfileSink, runtime/profile_sink.h).
//
// Times are nanoseconds of CLOCK_MONOTONIC_RAW, the clock of the framework's profiler. The tables
// are the soft device's own; `msprof --export=on` makes the vendor's of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "acl/acl.h"
#include "runtime/profile_sink.h"

namespace acltape::device {

struct Task;
class Runner;

class ProfilingSession {
 public:
  static ProfilingSession& Get();

  // True between Start and Stop, and while there is a sink.
  static bool On() { return on_.load(std::memory_order_relaxed); }
  static int64_t NowNs();

  // The folder of results; the next Start makes one of its own in it.
  void Open(const std::string& folder);
  // The first of nested ones begins, the last one ends and writes. False: the folder cannot be
  // made, or a file cannot be written; SetMessage has been called.
  bool Start();
  bool Stop();
  void Close();

  void SetSink(const SoftProfileSink* sink);

  void NoteCall(uint64_t number, const char* name, int64_t begin_ns, int64_t end_ns);
  void NoteTask(const Task& task, const Runner& runner, int64_t begin_ns, int64_t end_ns);

 private:
  static std::atomic<bool> on_;
};

// Notes a call of the interface from here to the end of the block.
class ProfiledCall {
 public:
  explicit ProfiledCall(const char* name) : name_(name) {
    if (ProfilingSession::On()) [[unlikely]]
      Begin();
  }
  ~ProfiledCall() {
    if (number_ != 0) [[unlikely]]
      End();
  }
  ProfiledCall(const ProfiledCall&) = delete;
  ProfiledCall& operator=(const ProfiledCall&) = delete;

  // The number of this thread's innermost call; 0 when it has none.
  static uint64_t NumberOfInnermost();

 private:
  void Begin();
  void End();

  const char* name_;
  uint64_t number_ = 0;
  uint64_t around_ = 0;
  int64_t begin_ns_ = 0;
};

}  // namespace acltape::device
