#include "replayer/engine/script_machine.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <random>

#include "storage/packing.h"

namespace acltape::replayer {
namespace {

// Larger contents are uploaded in pieces of this size, so that pinned memory stays small.
constexpr int64_t kPieceBytes = int64_t{8} << 20;

}  // namespace

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

ScriptMachine::ScriptMachine(Device& device, Uploader& uploader, const Script& script)
    : device_(device), work_(device.work()), uploader_(uploader), script_(script) {}

ScriptMachine::~ScriptMachine() { Drain(); }

void ScriptMachine::Give(int block, uint8_t* address) {
  if (blocks_.size() <= static_cast<size_t>(block)) blocks_.resize(block + 1);
  blocks_[block].data = address;
}

void ScriptMachine::Give(int block, Workspace& workspace) {
  if (blocks_.size() <= static_cast<size_t>(block)) blocks_.resize(block + 1);
  blocks_[block].workspace = &workspace;
}

void ScriptMachine::Prepare() {
  if (blocks_.size() < script_.blocks.size()) blocks_.resize(script_.blocks.size());
  for (size_t b = 0; b < blocks_.size(); ++b) {
    BlockMemory& memory = blocks_[b];
    if (memory.data != nullptr || memory.workspace != nullptr) continue;
    const auto bytes = static_cast<size_t>(std::max<int64_t>(script_.blocks[b].bytes, 1));
    memory.own = Block(device_, Block::Kind::kDevice, bytes);
    memory.data = memory.own.data();
    if (script_.blocks[b].fill != ScriptBlock::kNoFill) memory.own.Fill(script_.blocks[b].fill);
  }
  for (auto stream = static_cast<int>(streams_.size()); stream < script_.streams; ++stream) {
    streams_.push_back(stream == 0 ? device_.stream()
                                   : device_.SideStream(static_cast<size_t>(stream) - 1));
  }
  while (events_.size() < static_cast<size_t>(script_.events)) events_.emplace_back(device_);
  graphs_.resize(script_.graphs);
  groups_.resize(script_.groups, nullptr);
  bound_.resize(script_.calls.size());
  held_.resize(script_.contents.size());
}

void ScriptMachine::BindCalls() {
  while (bound_ahead_ < bound_.size()) Bound(static_cast<int>(bound_ahead_++));
}

void ScriptMachine::Forget() {
  bound_.clear();
  held_.clear();
  bound_ahead_ = 0;
}

void ScriptMachine::Load(std::span<const Operation> operations) {
  const auto hold = [&](int content) {
    if (held_[content] == nullptr) held_[content] = script_.contents[content].load();
  };
  for (const Operation& operation : operations) {
    if (const auto* upload = std::get_if<UploadTo>(&operation)) hold(upload->content);
    if (const auto* upload = std::get_if<UploadStrided>(&operation)) hold(upload->content);
    const auto* together = std::get_if<UploadTogether>(&operation);
    for (int p = together == nullptr ? 0 : together->first;
         together != nullptr && p < together->end; ++p) {
      hold(script_.pieces[p].content);
    }
  }
}

void ScriptMachine::Run(std::span<const Operation> operations, OutputTaker* taker,
                        WaitClock* clock) {
  running_ = operations;
  taker_ = taker;
  clock_ = clock;
  try {
    for (const Operation& operation : operations) {
      std::visit([this](const auto& own) { Do(own); }, operation);
    }
  } catch (...) {
    capture_.reset();
    recorder_.reset();
    if (updating_) work_.EndUpdate(Stream(*updating_)).Ignore();
    updating_.reset();
    Drain();
    throw;
  }
}

Bytes ScriptMachine::Content(int number) const {
  return held_[number] != nullptr ? held_[number] : script_.contents[number].load();
}

void ScriptMachine::UploadPiece(const Spot& to, const uint8_t* bytes, int64_t count) {
  for (int64_t done = 0; done < count; done += kPieceBytes) {
    uploader_.Upload(At(to) + done, bytes + done,
                     static_cast<size_t>(std::min(kPieceBytes, count - done)));
  }
}

void ScriptMachine::Do(const UploadTo& upload) {
  if (upload.bytes == 0) return;
  const Bytes content = Content(upload.content);
  UploadPiece(upload.to, content->data() + upload.content_offset, upload.bytes);
}

void ScriptMachine::Do(const UploadTogether& upload) {
  uint8_t* pinned = uploader_.Reserve(static_cast<size_t>(upload.bytes));
  for (int p = upload.first; p < upload.end; ++p) {
    const UploadTo& piece = script_.pieces[p];
    const Bytes content = Content(piece.content);
    std::memcpy(pinned + (piece.to.offset - upload.to.offset),
                content->data() + piece.content_offset, static_cast<size_t>(piece.bytes));
  }
  device_.Upload(At(upload.to), pinned, static_cast<size_t>(upload.bytes));
}

// The bytes between the elements of a strided view belong to other tensors and must not change.
void ScriptMachine::Do(const UploadStrided& upload) {
  const Bytes content = Content(upload.content);
  const auto span = static_cast<size_t>(upload.layout->EndByte() - upload.layout->FirstByte());
  uint8_t* piece = uploader_.Reserve(span);
  device_.Download(piece, At(upload.to), span);
  device_.Synchronize();
  UnpackRowMajor(*upload.layout, content->data(), piece);
  device_.Upload(At(upload.to), piece, span);
}

void ScriptMachine::Do(const CopyBytes& copy) {
  device_.Copy(At(copy.to), At(copy.from), static_cast<size_t>(copy.bytes), Stream(copy.stream));
}

void ScriptMachine::Do(const FillBytes& fill) {
  if (fill.bytes == 0) return;
  const auto bytes = static_cast<size_t>(fill.bytes);
  work_.Fill(At(fill.to), bytes, fill.value, bytes, Stream(fill.stream)).Check();
}

const BoundCall& ScriptMachine::Bound(int number) {
  std::optional<BoundCall>& bound = bound_[number];
  if (bound) return *bound;
  const ScriptCall& call = script_.calls[number];
  const AddressOf address_of = [this](const analyzer::lowering::LoweredTensor& tensor) {
    return blocks_[tensor.memory.block()].data + tensor.layout.byte_offset;
  };
  try {
    return bound.emplace(device_, call.invocation, address_of);
  } catch (const UnsupportedOperator& cause) {
    throw LeafRefused(call.name, cause.what());
  }
}

void ScriptMachine::LaunchOn(int number, aclrtStream stream) {
  const ScriptCall& call = script_.calls[number];
  const auto reserve = [&](uint64_t bytes) -> void* {
    const BlockMemory& block = blocks_[call.workspace];
    if (block.workspace != nullptr) return block.workspace->Reserve(bytes);
    const auto have = static_cast<uint64_t>(script_.blocks[call.workspace].bytes);
    if (static_cast<uint64_t>(call.workspace_offset) + bytes > have) {
      throw Error(ErrorKind::kDevice,
                  "call " + std::to_string(call.call_id) + " " + call.invocation.op + " needs " +
                      std::to_string(bytes) + " bytes of workspace, block " +
                      script_.blocks[call.workspace].name + " has " + std::to_string(have));
    }
    return block.data + call.workspace_offset;
  };
  try {
    Bound(number).Run(device_, stream, reserve);
  } catch (const UnsupportedOperator& cause) {
    throw LeafRefused(call.name, cause.what());
  }
}

void ScriptMachine::Do(const BeginCapture& begin) {
  if (WantsTasks(begin.graph)) CountTasks(begin.graph);
  capture_.emplace(device_, device_.stream());
  capture_->Begin(static_cast<aclmdlRICaptureMode>(begin.mode));
}

void ScriptMachine::Do(const EndCapture& end) {
  graphs_[end.graph] = capture_->End();
  capture_.reset();
  if (!recorder_) return;
  tasks_[end.graph] = recorder_->TasksOf(graphs_[end.graph].handle());
  recorder_.reset();
}

// Captures each launch of a graph alone, ahead of the graph.
void ScriptMachine::CountTasks(int graph) {
  recorder_.emplace(device_);
  bool inside = false;
  for (const Operation& operation : running_) {
    const auto* begin = std::get_if<BeginCapture>(&operation);
    const auto* end = std::get_if<EndCapture>(&operation);
    inside = inside || (begin != nullptr && begin->graph == graph);
    if (end != nullptr && end->graph == graph) return;
    const auto* launch = std::get_if<Launch>(&operation);
    if (!inside || launch == nullptr) continue;
    recorder_->Add(script_.calls[launch->call].call_id,
                   [&] { LaunchOn(launch->call, device_.stream()); });
  }
}

// True if a later operation disables calls of the graph.
bool ScriptMachine::WantsTasks(int graph) const {
  return std::any_of(running_.begin(), running_.end(), [&](const Operation& operation) {
    const auto* disable = std::get_if<DisableCalls>(&operation);
    return disable != nullptr && disable->graph == graph;
  });
}

void ScriptMachine::Do(const BeginUpdate& begin) {
  work_.BeginUpdate(Stream(begin.stream), groups_[begin.group]).Check();
  updating_ = begin.stream;
}

void ScriptMachine::Do(const EndUpdate& end) {
  updating_.reset();
  work_.EndUpdate(Stream(end.stream)).Check();
}

void ScriptMachine::Do(const DisableCalls& disable) {
  DisableTasks(device_, graphs_[disable.graph].handle(), tasks_[disable.graph], disable.calls);
}

// Allocates and frees pieces of many sizes, filled with bytes that no program computes.
void ScriptMachine::Do(const ChurnMemory& churn) {
  std::mt19937_64 random(churn.seed);
  std::deque<Block> pieces;
  for (int64_t done = 0; done < churn.bytes;) {
    const int64_t bytes = std::min<int64_t>(churn.bytes - done, int64_t{512} << (random() % 12));
    pieces.emplace_back(device_, Block::Kind::kDevice, static_cast<size_t>(bytes));
    pieces.back().Fill(0xCB);
    if (random() % 2 == 0) pieces.pop_front();
    done += bytes;
  }
}

void ScriptMachine::Do(const Observe& observe) {
  if (taker_ == nullptr) return;
  for (int output = observe.first; output < observe.end; ++output) {
    taker_->Take(observe.observation, output, At(script_.outputs[output].spot));
  }
}

void ScriptMachine::Do(const ReadOnHost& read) {
  const ScriptOutput& output = script_.outputs[read.output];
  if (taker_ != nullptr) {
    taker_->TakeHostRead(read.observation, read.output, At(output.spot));
    return;
  }
  const int64_t begin = NowNs();
  if (host_value_.data() == nullptr) {
    host_value_ = Block(device_, Block::Kind::kPinned, sizeof(double) * 2);
  }
  device_.Download(host_value_.data(), At(output.spot), storage::DTypeBytes(output.layout.dtype));
  device_.Synchronize();
  if (clock_ != nullptr) clock_->waited_ns += NowNs() - begin;
}

void ScriptMachine::Synchronize() {
  device_.Synchronize();
  for (size_t stream = 1; stream < streams_.size(); ++stream) {
    work_.WaitForStream(streams_[stream]).Check();
  }
}

// Waits for all streams, drops what does not end, and ignores errors.
void ScriptMachine::Drain() {
  for (const aclrtStream stream : streams_) work_.EndStream(stream);
}

}  // namespace acltape::replayer
