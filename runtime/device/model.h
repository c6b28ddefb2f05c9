// Models: what a capture makes, and how it is replayed (EXE-01 to EXE-20).
//
// A replay is one task of the exec stream. That task walks a flat list of bound calls: no lock,
// allocation or lookup per graph task. Capture order already satisfies the order of every hidden
// stream and of every captured event, so one pass in this order is a correct schedule; it is used
// unless a task can block on something that another hidden stream of the same graph brings about,
// or jitter is on. Then the hidden streams are interleaved by the same worker, as far as events
// allow.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/device/context.h"

namespace acltape::device {

class Model {
 public:
  static constexpr size_t kNameBytes = 512;  // EXE-18
  static constexpr int64_t kNoNode = -1;

  enum class State : uint8_t { kCapturing, kReady };

  // A captured task. For captured event records and waits the task has no run function.
  struct Node {
    Task task;
    uint32_t member;
    int64_t record = kNoNode;  // of a wait: the node of the record it waits for
  };

  // A stream that takes part, and the hidden streams that store its tasks (CAP-04).
  struct Member {
    Stream* stream;
    std::vector<uint32_t> hidden_streams;  // stream numbers, owned; more than one after a cascade
    uint32_t room = 0;                     // tasks that the newest of them can still take
    int64_t last_node = kNoNode;
  };

  // `number` is a model number of the context's device that the model owns from now on.
  Model(Context& context, uint32_t number, uint32_t mode, uint64_t thread);
  // Drops the tasks and gives the model and stream numbers back.
  ~Model();

  // Capture. Under the capture lock.

  // Takes a hidden stream for `stream`; false when no stream number is left (LIM-01).
  bool AddMember(Stream& stream);
  // Stores the task; false, leaving the task alone, when no stream number is left for a cascade.
  bool Append(uint32_t member, Task& task, int64_t record = kNoNode);
  // The capture ended well: lays out what a replay runs.
  void Close();
  // JOIN-01 to JOIN-04: a member that is not joined back to the origin, or -1.
  int64_t UnjoinedMember() const;

  std::vector<Member> members;  // members[0] is the origin stream
  std::deque<Node> nodes;       // in capture order; addresses stay
  std::vector<Event*> events;   // that belong to the capture (CAP-40)
  const uint32_t mode;
  const uint64_t thread;  // that began the capture (CAP-05)
  bool invalidated = false;

  // Replay.

  // Reserves the next place in the launch order (EXE-07).
  uint64_t Enqueue();
  // Runs all tasks once, when the earlier launches have ended. Returns the newest task error.
  aclError Replay(uint64_t ticket);
  // Gives the place up, after the replay or instead of it.
  void Retire(uint64_t ticket);
  bool Running() const;

  struct DestroyCallback {
    aclrtCallback function;
    void* user_data;
  };
  std::vector<DestroyCallback> destroy_callbacks;  // guarded by the context's mutex
  char name[kNameBytes + 1] = {};                  // guarded by the context's mutex

  Context& context() const { return context_; }
  HandleBlock* handle() const { return handle_; }
  uint32_t id() const { return id_; }
  State state() const { return state_.load(std::memory_order_acquire); }

 private:
  struct Step {
    aclError (*run)(void*);
    void* argument;
  };

  aclError RunInOrder(Runner& runner);
  aclError RunInterleaved(Runner& runner, uint64_t seed);
  void NoteFailure(Runner& runner, aclError code, const char* task_name);

  Context& context_;
  HandleBlock* handle_;
  const uint32_t number_;
  const uint32_t id_;
  std::atomic<State> state_{State::kCapturing};
  std::vector<Step> steps_;
  std::vector<uint32_t> step_nodes_;
  bool interleaved_ = false;

  mutable std::mutex turn_mutex_;
  std::deque<uint64_t> tickets_;  // launches that have not retired, in launch order
  uint64_t next_ticket_ = 0;
  std::atomic<uint32_t> turn_{0};  // changes when a ticket retires
};

}  // namespace acltape::device
