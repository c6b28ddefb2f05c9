// Carries out the operations of a script on a device. It is the bound form of a script: the
// addresses of blocks, the arguments of calls, streams, events, graphs and task groups are resolved
// once, so that an operation that is timed costs what the calls of the interface cost.
//
// All replays of leaves and all experiments run here, so that what is proven is what runs.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "replayer/device/captured_graph.h"
#include "replayer/device/clock.h"
#include "replayer/device/graph_tasks.h"
#include "replayer/engine/execution.h"
#include "replayer/engine/script.h"

namespace acltape::replayer {

// Takes the outputs of a script while it runs. The work that makes them was issued, but the device
// may not have ended it. `address` is that of element 0.
class OutputTaker {
 public:
  virtual ~OutputTaker() = default;
  virtual void Take(int observation, int output, const uint8_t* address) = 0;
  virtual void TakeHostRead(int observation, int output, const uint8_t* address) = 0;
};

class ScriptMachine {
 public:
  // All must outlive the machine. The script's tables may grow until Prepare is called, and again
  // before the next call of it.
  ScriptMachine(Device& device, Uploader& uploader, const Script& script);
  // Waits for all streams.
  ~ScriptMachine();
  ScriptMachine(const ScriptMachine&) = delete;
  ScriptMachine& operator=(const ScriptMachine&) = delete;

  // Memory of a block that exists already. All other blocks are allocated by Prepare.
  void Give(int block, uint8_t* address);
  // A block of workspace that grows.
  void Give(int block, Workspace& workspace);

  // Allocates and fills blocks, and creates streams and events, as far as the script needs more
  // than before. Streams must not be created in a capture.
  void Prepare();
  // Binds the calls to their addresses ahead of their first launch. Throws LeafRefused if the
  // device cannot run one; the text names the operator.
  void BindCalls();
  // Forgets the calls and the contents, when the script's tables of them were emptied.
  void Forget();
  // Loads the contents that the operations upload, and keeps them.
  void Load(std::span<const Operation> operations);

  // Carries out operations. Without a taker nothing is observed, and a value that the host reads is
  // waited for; the wait is added to `clock` unless it is null. Throws LeafRefused if the device
  // refuses an operator, CallFailed if a call of the interface fails. An open capture or
  // task update has ended then, and the device has drained.
  void Run(std::span<const Operation> operations, OutputTaker* taker, WaitClock* clock);

  // Waits for all streams of the script.
  void Synchronize();

 private:
  struct BlockMemory {
    uint8_t* data = nullptr;
    Workspace* workspace = nullptr;
    Block own;
  };
  uint8_t* At(const Spot& spot) const { return blocks_[spot.block].data + spot.offset; }
  aclrtStream Stream(int number) const { return streams_[number]; }
  Bytes Content(int number) const;
  const BoundCall& Bound(int call);
  void LaunchOn(int call, aclrtStream stream);
  void UploadPiece(const Spot& to, const uint8_t* bytes, int64_t count);
  void CountTasks(int graph);
  bool WantsTasks(int graph) const;
  void Drain();

  void Do(const UploadTo& upload);
  void Do(const UploadTogether& upload);
  void Do(const UploadStrided& upload);
  void Do(const CopyBytes& copy);
  void Do(const FillBytes& fill);
  void Do(const Launch& launch) { LaunchOn(launch.call, Stream(launch.stream)); }
  void Do(const RecordEvent& record) { events_[record.event].Record(Stream(record.stream)); }
  void Do(const WaitEvent& wait) { events_[wait.event].MakeWait(Stream(wait.stream)); }
  void Do(const BeginCapture& begin);
  void Do(const EndCapture& end);
  void Do(const ExecuteGraph& execute) { graphs_[execute.graph].Execute(Stream(execute.stream)); }
  void Do(const BeginGroup& begin) { work_.BeginGroup(Stream(begin.stream)).Check(); }
  void Do(const EndGroup& end) { work_.EndGroup(Stream(end.stream), &groups_[end.group]).Check(); }
  void Do(const BeginUpdate& begin);
  void Do(const EndUpdate& end);
  void Do(const DisableCalls& disable);
  void Do(const ChurnMemory& churn);
  void Do(const SynchronizeAll&) { Synchronize(); }
  void Do(const Observe& observe);
  void Do(const ReadOnHost& read);

  Device& device_;
  const DeviceWork& work_;
  Uploader& uploader_;
  const Script& script_;
  std::vector<BlockMemory> blocks_;
  std::vector<aclrtStream> streams_;
  std::deque<Event> events_;
  std::vector<CapturedGraph> graphs_;
  std::vector<aclrtTaskGrp> groups_;
  std::vector<std::optional<BoundCall>> bound_;  // by call
  size_t bound_ahead_ = 0;                       // calls before it are bound
  std::vector<Bytes> held_;                      // by content; null: not loaded
  Block host_value_;

  // While operations run.
  std::span<const Operation> running_;
  OutputTaker* taker_ = nullptr;
  WaitClock* clock_ = nullptr;
  std::optional<Capture> capture_;             // the capture that is open
  std::optional<int> updating_;                // stream of the task update that is open
  std::optional<GraphTaskRecorder> recorder_;  // for the open capture
  std::map<int, CallTasks> tasks_;             // by graph, where calls are disabled
};

}  // namespace acltape::replayer
