// Models: what a capture, or a build without capture, makes (EXE-01 to EXE-20, BLD-01).
//
// A model stores tasks as nodes in the order of their submission. Capture order already satisfies
// the order of every hidden stream and of every captured event, so one pass in this order is a
// correct schedule; replay.h says when it is used and when the hidden streams are interleaved.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/device/context.h"

namespace acltape::device {

class Control;
class EventPoint;
class GraphRun;
class TaskGroup;
struct Interleaving;
struct KernelAttributes;
struct Launch;
struct LiveFlag;

class Model {
 public:
  static constexpr size_t kNameBytes = 512;  // EXE-18
  static constexpr int64_t kNoNode = -1;

  enum class Kind : uint8_t { kCaptured, kSubGraph, kBuilt };

  enum class State : uint8_t {
    kEmpty,      // a sub-graph that is still to be captured (COND-11)
    kCapturing,  // also: being built
    kReady,
    kUpdating,  // ENUM-12
    kFault,     // ENUM-10
  };

  // The event that a captured event task refers to (ENUM-08).
  struct EventUse {
    HandleRef event{};
    uint32_t flags = 0;  // those with which the event was created
    uint32_t external = 0;
  };

  // A task of the model. Captured event records and waits have no run function, nor have the
  // internal tasks of the device (ENUM-05).
  struct Node {
    Node(Model* of_model, const Task& what, uint32_t of_member, uint32_t of_stream);
    ~Node();

    Model* model;
    Task task;
    uint32_t member;
    uint32_t sequence = 0;     // place in the model (ENUM-07)
    uint32_t hidden;           // the hidden stream that stores it
    int64_t record = kNoNode;  // a wait has the node of the record that it waits for
    bool internal = false;
    bool disabled = false;     // ENUM-13
    std::string note;          // JSON-09
    uint32_t next_stream = 0;  // a cascade link has the number of the next hidden stream
    EventUse event;
    TaskGroup* group = nullptr;  // TG-02
    HandleBlock* handle = nullptr;
    std::unique_ptr<Control> control;              // decides on other tasks
    std::unique_ptr<KernelAttributes> attributes;  // changed kernels have them (ENUM-09)
  };

  // Stores the tasks of a captured stream (CAP-04). A bound stream of a built model stores its own.
  struct HiddenStream {
    Model* model;
    uint32_t number;  // a stream number of the device
    bool owns_number;
    std::vector<uint32_t> nodes;
    HandleBlock* handle = nullptr;
  };

  // A stream that takes part.
  struct Member {
    Stream* stream;
    uint32_t newest_hidden;
    uint32_t room;  // tasks that the newest hidden stream can still take
    int64_t last_node = kNoNode;
    bool head = true;  // starts with the model (BLD-02)
  };

  // External records and waits (EXT-01 to EXT-07).
  struct External {
    HandleRef event;
    bool record;
  };

  // Makes a model; null and a reason when the device has no model number or handle left.
  static aclError Create(Context& context, Kind kind, const char* call, Model** model);
  // Drops the tasks and gives the model and stream numbers back.
  ~Model();

  // Capture. Under the capture lock.

  // Takes a hidden stream for `stream`; false when no stream number is left (LIM-01).
  bool AddMember(Stream& stream);
  // Binds a stream of a built model, whose tasks stay where they are.
  void BindMember(Stream& stream, bool head);
  // Stores the task; null, leaving the task alone, when no stream number is left for a cascade.
  Node* Append(uint32_t member, const Task& task, int64_t record = kNoNode);
  // The capture ended well: appends what the next replay needs to start clean (JOIN-06) and lays
  // out what a replay runs. False when no stream number is left for it (CAP-19).
  bool Close();
  // Lays out again what a replay runs, after a change.
  void LayOut();
  // JOIN-01 to JOIN-04: a member that is not joined back to the origin, or -1.
  int64_t UnjoinedMember() const;
  // Forgets all that was captured: a sub-graph may be captured again.
  void Clear();

  std::vector<Member> members;  // members[0] is the origin stream
  std::deque<Node> nodes;       // in capture order; addresses stay
  std::deque<HiddenStream> hidden_streams;
  std::vector<Event*> events;  // those that belong to the capture (CAP-40)
  std::vector<External> externals;
  std::vector<std::shared_ptr<TaskGroup>> groups;
  TaskGroup* open_group = nullptr;
  uint32_t open_group_member = 0;
  uint32_t mode = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
  uint64_t thread = 0;  // the thread that began the capture (CAP-05)
  bool invalidated = false;
  // Changes (changes.h): tasks that have some, and what applied changes replaced.
  std::vector<Node*> changed;
  std::vector<Task> replaced;

  // Conditions (COND-02).
  struct Condition {
    Model* model;
    uint64_t* cell;  // device memory
    uint64_t default_value;
    bool assign_default;
    bool used = false;
    HandleBlock* handle = nullptr;
  };
  std::deque<Condition> conditions;
  Model* parent = nullptr;  // a sub-graph has one

  // Built models.
  bool end_task = false;  // submitted (BLD-05)
  bool build_ended = false;
  std::vector<LiveFlag*> live_events;  // recorded here without a reset; cleared by each execution

  // Replay (replay.h).

  // Reserves the next place in the launch order (EXE-07); false when the model is not READY.
  bool Enqueue(uint64_t* ticket);
  // Runs all tasks once, when the earlier launches have ended. Returns the newest task error.
  aclError Replay(Launch& launch);
  // Gives the place up, after the replay or instead of it.
  void Retire(uint64_t ticket);
  bool Running() const;
  // Stops the replay that runs now, if there is one (EXE-17).
  void Abort();
  // One pass over the tasks, in this thread.
  aclError RunOnce(Runner& runner, const Interleaving& interleaving);
  // The launch whose replay runs now.
  const Launch* current_launch() const { return current_launch_; }

  // From READY or UPDATING, while not running, to UPDATING; false leaves the state (ENUM-09).
  bool BeginChange(State* former);
  // No execution begins any more.
  void Refuse();
  void set_state(State state) { state_.store(state, std::memory_order_release); }

  std::atomic<bool> has_queues{false};  // EXE-09; set by Queues

  std::mutex launch_mutex;  // held while a launch with external events is published and queued

  struct DestroyCallback {
    aclrtCallback function;
    void* user_data;
  };
  std::vector<DestroyCallback> destroy_callbacks;  // guarded by the context's mutex
  char name[kNameBytes + 1] = {};                  // guarded by the context's mutex

  Context& context() const { return context_; }
  HandleBlock* handle() const { return handle_; }
  uint32_t id() const { return id_; }
  Kind kind() const { return kind_; }
  State state() const { return state_.load(std::memory_order_acquire); }

 private:
  // One entry of the flat list that a launch walks: a task bound to its argument. (A step of a
  // program is something else.)
  struct Step {
    aclError (*run)(void*);
    void* argument;
  };

  Model(Context& context, Kind kind, uint32_t number);

  aclError RunInOrder(Runner& runner, const Interleaving& interleaving);
  Node& Store(uint32_t member, const Task& task);
  bool Cascade(Member& member, uint32_t member_index);

  Context& context_;
  const Kind kind_;
  HandleBlock* handle_;
  const uint32_t number_;
  const uint32_t id_;
  std::atomic<State> state_;
  std::vector<Step> steps_;
  std::vector<uint32_t> step_nodes_;
  bool may_block_ = false;  // on something beside the captured events
  bool interleaved_ = false;

  mutable std::mutex turn_mutex_;
  std::deque<uint64_t> tickets_;  // launches that have not retired, in launch order
  uint64_t next_ticket_ = 0;
  bool replaying_ = false;
  std::atomic<bool> aborted_{false};
  const Launch* current_launch_ = nullptr;  // the replaying worker runs it
  std::atomic<uint32_t> turn_{0};           // changes when a ticket retires
};

}  // namespace acltape::device
