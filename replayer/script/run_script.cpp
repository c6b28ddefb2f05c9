#include "replayer/script/run_script.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <random>

#include "replayer/captured_graph.h"
#include "replayer/execution.h"
#include "replayer/memory_plan.h"
#include "replayer/script/graph_tasks.h"
#include "storage/packing.h"
#include "storage/payload.h"

namespace acltape::replayer {
namespace {

// Larger contents are uploaded in pieces of this size, so that pinned memory stays small.
constexpr int64_t kPieceBytes = int64_t{8} << 20;

class Runner {
 public:
  Runner(Device& device, const Script& script, const OutputSink& sink)
      : device_(device),
        api_(device.api()),
        script_(script),
        sink_(sink),
        uploader_(device),
        graphs_(script.graphs),
        groups_(script.groups, nullptr),
        tasks_(script.graphs),
        observed_(script.observations.size()) {}

  ~Runner() { Drain(); }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  std::vector<Observed> Run() {
    MakeBlocks();
    // Streams are created here, because they must not be created in a capture.
    for (int stream = 1; stream < script_.streams; ++stream) Stream(stream);
    for (int event = 0; event < script_.events; ++event) events_.emplace_back(device_);
    try {
      for (const Operation& operation : script_.operations) {
        std::visit([this](const auto& own) { Do(own); }, operation);
      }
      Drain();
    } catch (...) {
      capture_.reset();
      Drain();
      throw;
    }
    return std::move(observed_);
  }

 private:
  void MakeBlocks() {
    for (const ScriptBlock& block : script_.blocks) {
      const auto bytes = static_cast<size_t>(std::max<int64_t>(block.bytes, 1));
      blocks_.emplace_back(device_, Block::Kind::kDevice, bytes);
      device_.Check(api_.aclrtMemset(blocks_.back().data(), bytes, block.fill, bytes),
                    "aclrtMemset");
    }
  }

  uint8_t* At(const Spot& spot) { return blocks_[spot.block].data() + spot.offset; }

  aclrtStream Stream(int number) {
    return number == 0 ? device_.stream() : device_.SideStream(static_cast<size_t>(number) - 1);
  }

  const std::vector<uint8_t>& Content(int number, Bytes& holder) {
    holder = script_.contents[number].load();
    return *holder;
  }

  void Do(const UploadTo& upload) {
    Bytes holder;
    const std::vector<uint8_t>& content = Content(upload.content, holder);
    for (int64_t done = 0; done < upload.bytes; done += kPieceBytes) {
      const int64_t bytes = std::min(kPieceBytes, upload.bytes - done);
      uploader_.Upload(At(upload.to) + done, content.data() + upload.content_offset + done,
                       static_cast<size_t>(bytes));
    }
  }

  // The bytes between the elements of a strided view belong to other tensors and must not change.
  void Do(const UploadStrided& upload) {
    Bytes holder;
    const std::vector<uint8_t>& content = Content(upload.content, holder);
    const auto span = static_cast<size_t>(upload.layout.EndByte() - upload.layout.FirstByte());
    uint8_t* piece = uploader_.Reserve(span);
    device_.Download(piece, At(upload.to), span);
    device_.Synchronize();
    UnpackRowMajor(upload.layout, content.data(), piece);
    device_.Upload(At(upload.to), piece, span);
  }

  void Do(const CopyBytes& copy) {
    device_.Copy(At(copy.to), At(copy.from), static_cast<size_t>(copy.bytes), Stream(copy.stream));
  }

  void Do(const FillBytes& fill) {
    if (fill.bytes == 0) return;
    const auto bytes = static_cast<size_t>(fill.bytes);
    device_.Check(api_.aclrtMemsetAsync(At(fill.to), bytes, fill.value, bytes, Stream(fill.stream)),
                  "aclrtMemsetAsync");
  }

  void Do(const Launch& launch) { LaunchOn(launch, Stream(launch.stream)); }

  void LaunchOn(const Launch& launch, aclrtStream stream) {
    const AddressOf address_of = [this](const analyzer::LoweredTensor& tensor) {
      return blocks_[tensor.buffer_id].data() + tensor.layout.byte_offset;
    };
    const std::string call = "call " + std::to_string(launch.call_id) + " ";
    const auto reserve = [&](uint64_t bytes) -> void* {
      const Block& block = blocks_[launch.workspace];
      if (launch.workspace_offset + bytes > block.bytes()) {
        throw Error(ErrorKind::kDevice, call + launch.invocation.op + " needs " +
                                            std::to_string(bytes) + " bytes of workspace, block " +
                                            script_.blocks[launch.workspace].name + " has " +
                                            std::to_string(block.bytes()));
      }
      return block.data() + launch.workspace_offset;
    };
    try {
      BoundCall(device_, launch.invocation, address_of).Run(device_, stream, reserve);
    } catch (const UnsupportedOperator& cause) {
      throw LeafRefused(call + launch.invocation.op, cause.what());
    }
  }

  void Do(const RecordEvent& record) { events_[record.event].Record(Stream(record.stream)); }
  void Do(const WaitEvent& wait) { events_[wait.event].HoldBack(Stream(wait.stream)); }

  void Do(const BeginCapture& begin) {
    if (WantsTasks(begin.graph)) CountTasks(begin.graph);
    capture_.emplace(device_, device_.stream());
    capture_->Begin(static_cast<aclmdlRICaptureMode>(begin.mode));
  }

  void Do(const EndCapture& end) {
    graphs_[end.graph] = capture_->End();
    capture_.reset();
    if (!recorder_) return;
    tasks_[end.graph] = recorder_->TasksOf(graphs_[end.graph].handle());
    recorder_.reset();
  }

  // Captures each launch of a graph alone, ahead of the graph.
  void CountTasks(int graph) {
    recorder_.emplace(device_);
    bool inside = false;
    for (const Operation& operation : script_.operations) {
      const auto* begin = std::get_if<BeginCapture>(&operation);
      const auto* end = std::get_if<EndCapture>(&operation);
      inside = inside || (begin != nullptr && begin->graph == graph);
      if (end != nullptr && end->graph == graph) return;
      const auto* launch = std::get_if<Launch>(&operation);
      if (!inside || launch == nullptr) continue;
      recorder_->Add(launch->call_id, [&] { LaunchOn(*launch, device_.stream()); });
    }
  }

  // True if a later operation disables calls of the graph.
  bool WantsTasks(int graph) const {
    return std::any_of(script_.operations.begin(), script_.operations.end(), [&](const auto& own) {
      const auto* disable = std::get_if<DisableCalls>(&own);
      return disable != nullptr && disable->graph == graph;
    });
  }

  void Do(const ExecuteGraph& execute) { graphs_[execute.graph].Execute(Stream(execute.stream)); }

  void Do(const BeginGroup& begin) {
    device_.Check(api_.aclmdlRICaptureTaskGrpBegin(Stream(begin.stream)),
                  "aclmdlRICaptureTaskGrpBegin");
  }
  void Do(const EndGroup& end) {
    device_.Check(api_.aclmdlRICaptureTaskGrpEnd(Stream(end.stream), &groups_[end.group]),
                  "aclmdlRICaptureTaskGrpEnd");
  }
  void Do(const BeginUpdate& begin) {
    device_.Check(api_.aclmdlRICaptureTaskUpdateBegin(Stream(begin.stream), groups_[begin.group]),
                  "aclmdlRICaptureTaskUpdateBegin");
  }
  void Do(const EndUpdate& end) {
    device_.Check(api_.aclmdlRICaptureTaskUpdateEnd(Stream(end.stream)),
                  "aclmdlRICaptureTaskUpdateEnd");
  }

  void Do(const DisableCalls& disable) {
    DisableTasks(device_, graphs_[disable.graph].handle(), tasks_[disable.graph], disable.calls);
  }

  // Allocates and frees pieces of many sizes, filled with bytes that no program computes.
  void Do(const ChurnMemory& churn) {
    std::mt19937_64 random(churn.seed);
    std::deque<Block> pieces;
    for (int64_t done = 0; done < churn.bytes;) {
      const int64_t bytes = std::min<int64_t>(churn.bytes - done, int64_t{512} << (random() % 12));
      pieces.emplace_back(device_, Block::Kind::kDevice, static_cast<size_t>(bytes));
      device_.Check(api_.aclrtMemset(pieces.back().data(), bytes, 0xCB, bytes), "aclrtMemset");
      if (random() % 2 == 0) pieces.pop_front();
      done += bytes;
    }
  }

  void Do(const SynchronizeAll&) { Synchronize(); }

  void Do(const Observe& observe) {
    Synchronize();
    Observed& seen = observed_[observe.observation];
    for (int output = observe.first; output < observe.end; ++output) {
      const ScriptOutput& own = script_.outputs[output];
      const auto span = static_cast<size_t>(own.layout.EndByte() - own.layout.FirstByte());
      if (staging_.bytes() < span) {
        staging_ = Block();
        staging_ = Block(device_, Block::Kind::kPinned, span + span / 4);
      }
      device_.Download(staging_.data(), At(own.spot), span);
      device_.Synchronize();
      packed_.resize(
          static_cast<size_t>(own.layout.ElementCount() * storage::DTypeBytes(own.layout.dtype)));
      PackRowMajor(own.layout, staging_.data(), packed_.data());
      seen.digests.push_back(storage::DigestOf(packed_.data(), packed_.size()));
      if (sink_) sink_(observe.observation, output, packed_);
    }
  }

  void Synchronize() {
    device_.Synchronize();
    for (int stream = 1; stream < script_.streams; ++stream) {
      device_.Check(api_.aclrtSynchronizeStream(Stream(stream)), "aclrtSynchronizeStream");
    }
  }

  // Waits for all streams and ignores errors.
  void Drain() {
    api_.aclrtSynchronizeStream(device_.stream());
    for (int stream = 1; stream < script_.streams; ++stream) {
      api_.aclrtSynchronizeStream(Stream(stream));
    }
  }

  Device& device_;
  const acl::Api& api_;
  const Script& script_;
  const OutputSink& sink_;
  Uploader uploader_;
  std::vector<Block> blocks_;
  std::deque<Event> events_;
  std::vector<CapturedGraph> graphs_;
  std::vector<aclrtTaskGrp> groups_;
  std::optional<GraphTaskRecorder> recorder_;  // for the open capture
  // By graph. Only for graphs in which calls are disabled.
  std::vector<CallTasks> tasks_;
  std::optional<Capture> capture_;  // that is open
  Block staging_;
  std::vector<uint8_t> packed_;
  std::vector<Observed> observed_;
};

}  // namespace

std::vector<Observed> RunScript(Device& device, const Script& script, const OutputSink& sink) {
  return Runner(device, script, sink).Run();
}

}  // namespace acltape::replayer
