// Runs models (EXE-01 to EXE-17).
//
// A replay is one task of the exec stream. For most models that task walks a flat list of bound
// calls in capture order: no lock, allocation or lookup per graph task. Where a task can block on
// something that another hidden stream of the same graph brings about, where jitter or an order is
// asked for, and in built models, GraphRun interleaves the streams on the same worker, as far as
// events allow.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "runtime/device/event.h"
#include "runtime/device/model.h"

namespace acltape::device {

// The order in which the streams of a graph take turns. At most one setting is given. Without any,
// of the tasks that can run the one that was captured first goes first.
struct Interleaving {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint64_t seed = 0;  // not 0: drawn before every task (jitter)
  // This stream runs as far ahead of the others as its waits allow: of them only what it waits for
  // runs before it. A wait that is missing on it shows for certain: a task that does not wait for
  // another one runs before it in the launch in which its stream is ahead. Giving each thread in
  // turn the highest priority finds every bug that needs one ordering (Burckhardt et al., A
  // Randomized Scheduler with Probabilistic Guarantees of Finding Bugs, ASPLOS 2010); here without
  // the dice.
  uint32_t ahead = kNone;

  // The order that the profile asks for in a model's launch number `ticket`. Which stream is ahead
  // is counted over all graphs that have equally many tasks and streams, so that a graph that is
  // captured again goes on where the former one stopped.
  static Interleaving OfLaunch(const Model& model, uint64_t ticket);
};

// One launch, from the call to its end.
struct Launch {
  // The point that an external record or wait of the model means in this launch (EXT-04, EXT-05).
  struct Binding {
    EventPoint* point = nullptr;   // null: a wait without a record before it
    EventPoint* former = nullptr;  // the record replaced it; for a roll-back (EXT-06)
    bool record = false;
  };

  Model* model;
  uint64_t ticket;
  Interleaving interleaving;
  std::vector<Binding> bindings;
};

// aclmdlRIExecuteAsync, after the checks of the interface: publishes external records, resets
// conditions (COND-03) and queues the replay.
aclError LaunchModel(Model& model, Stream& stream, const char* call);

// One pass over a model whose streams are interleaved.
class GraphRun {
 public:
  GraphRun(Model& model, Runner& runner, Interleaving interleaving);

  // Runs until the end, an abort, or a failure that stops the context; returns the newest error.
  aclError Run();
  // Runs one task that can run now; false when none can.
  bool Advance();
  bool done() const { return stopped_ || finished_; }
  aclError result() const { return result_; }

  // Called by control tasks.
  void Activate(uint32_t lane);
  // Lane `from` ends and `to` goes on at `position` of its queue; they may be the same.
  void Jump(uint32_t from, uint32_t to, size_t position);
  void ReachEnd() { end_reached_ = true; }
  Model& model() const { return model_; }

 private:
  // The progress of one hidden stream of the model in this pass.
  struct Lane {
    std::vector<uint32_t> queue;  // nodes of one member
    size_t next = 0;
    bool active = false;
    uint32_t rounds = 0;              // how often the conditional task at the head has run
    std::unique_ptr<GraphRun> child;  // the sub-graph that runs for it
  };

  // The lanes in the order in which they are tried.
  void OrderLanes();
  // The node at the head of a lane, UINT32_MAX when it has nothing to run.
  uint32_t HeadNode(uint32_t index) const;
  // The lane whose task has to run next so that this one gets on: itself, or one it waits for.
  uint32_t HeldUpBy(uint32_t index) const;
  bool TryLane(uint32_t index);
  bool AdvanceChild(Lane& lane, Model::Node& node);
  void RunNode(Model::Node& node, uint32_t lane);
  void End(Lane& lane, uint32_t node);
  void Note(aclError code, const std::string& task);
  void CheckFinished();

  Model& model_;
  Runner& runner_;
  std::mt19937_64 random_;
  const Interleaving interleaving_;
  std::vector<Lane> lanes_;
  std::vector<bool> ended_;
  std::vector<uint32_t> order_;
  aclError result_ = ACL_SUCCESS;
  bool stopped_ = false;
  bool finished_ = false;
  bool end_reached_ = false;
};

// Reports a failed graph task to the exec stream. Returns the code that the execution has then: a
// kernel that fails with 507015 outside of a graph fails an execution with 507011 (ERR-04).
aclError NoteReplayFailure(Runner& runner, const Model& model, aclError code,
                           const std::string& task);

}  // namespace acltape::device
