// Tells a race checker what orders the calls of a program: events, notifies, values that streams
// write and wait for, and waits of the host.
//
//   OrderedWalk walk(work, checker, [&](size_t call) { checker.Work(...); });
//   for (...) walk.Call(i);  // in the order in which the host issued
//   walk.End();
//
// A program may issue a wait for a notify or a value before the call that sets it, and other work
// of the waiting stream after the wait. The walk holds these calls back until the setting call has
// come, as a device does. The bytes of a value wait are no access of it: the write that releases it
// is an order between the two and no race.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/streams/race_checker.h"

namespace acltape::analyzer::lint {

class OrderedWalk {
 public:
  // `take` gets each call that is no order itself, value writes included, when its turn comes.
  OrderedWalk(const Work& work, streams::RaceChecker& checker, std::function<void(size_t)> take);

  // True for a call that counts outside of captures: it succeeded, or waited for work that failed.
  static bool Counts(const Work& work, size_t call);

  void Call(size_t call);
  // Every call that counts, and the end.
  void CallAllOutsideOfCaptures();
  // Takes the calls that are still held back. They wait for something that nothing sets, or that a
  // thread sets which the host has waited for in the meantime.
  void End();

 private:
  // A write over memory that a stream waits for; `event` stands for it in the checker.
  struct Written {
    int64_t event = 0;
    bool known = false;  // false: a copy or a kernel, whose value the trace need not have
    uint64_t value = 0;
  };
  struct Notify {
    int64_t event = 0;  // stands for its latest record in the checker
    bool set = false;
  };
  using Location = std::pair<int64_t, int64_t>;  // a buffer and the first byte

  void FindLocations();
  void FindGraphs();
  bool LocationOf(size_t call, Location* location) const;
  bool MustWait(size_t call) const;
  bool IsReached(size_t call, uint64_t memory) const;
  void Do(size_t call);
  void DoHeld();
  // These apply a call on a stream: its own, or the one that executes its graph.
  bool WaitOn(int64_t stream, size_t call);
  void NoteWhatIsSet(int64_t stream, size_t call);
  void WaitForValue(int64_t stream, size_t call);

  const Work& work_;
  streams::RaceChecker& checker_;
  const std::function<void(size_t)> take_;
  std::unordered_map<int64_t, Notify> notifies_;      // by recorded handle
  std::map<Location, std::vector<Written>> written_;  // places that some stream waits for
  // Calls of graphs that wait for notifies and values, or set them, by graph.
  std::unordered_map<int64_t, std::vector<size_t>> graphs_;
  int64_t last_event_ = 0;  // counts down: the program's events have positive numbers
  std::map<int64_t, std::deque<size_t>> held_;     // by stream
  std::unordered_map<int64_t, int> held_records_;  // by event
};

}  // namespace acltape::analyzer::lint
