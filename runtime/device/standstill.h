// Work that stands still: each stream that has a task is at a wait, and none goes on.
//
// A program can submit a wait for what never comes: a graph that waits for a value whose write was
// in an update that failed. Then calls that release a stream, or wait for it without a time-out,
// would not return, and frameworks make such calls when a process ends. So the work is dropped
// after a while, with a line on stderr.
#pragma once

#include <atomic>
#include <cstdint>
#include <set>

namespace acltape::device {

class Stream;

class Standstill {
 public:
  // Exists while a worker is at a wait that only other work, or a call of the program, can end.
  // Waits that end by themselves, and those for functions of the program, are none.
  class Wait {
   public:
    explicit Wait(bool in_worker = true);  // else it counts for nothing
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    const uint32_t counts_;
  };

  // Exists while a worker has tasks.
  class Work {
   public:
    Work();
    ~Work();
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
  };

  // Waits may end by another process from now on, so that nothing is told to stand still.
  static void MemoryIsShared();

  // To be asked again and again, beginning when the caller begins to wait: true once all work has
  // stood still for so long.
  bool Lasts(int64_t patience_ns);

 private:
  int64_t since_ns_ = 0;
  uint64_t moves_ = 0;
};

// Aborts the work of the streams; `call` is told on stderr as the one that did it.
void DropWork(const std::set<Stream*>& streams, const char* call);

// Waits until the streams have done their work. Work that stands still for the profile's
// `release_wait` is dropped instead.
void DrainOrGiveUp(const std::set<Stream*>& streams, const char* call);

}  // namespace acltape::device
