#include "replayer/probe/objects.h"

#include <algorithm>

namespace acltape::replayer::probe {

using analyzer::Work;
using analyzer::lint::Stretch;
using storage::Argument;

std::vector<Argument> ArgumentsOf(const Work& work, size_t call) {
  return work.trace->Arguments(work.form(call).signature_id, work.buffers(call));
}

ProbeObjects::ProbeObjects(Device& device, const Work& work, const Stretch& stretch)
    : device_(device), work_(work), event_kinds_(work.trace->Events()) {
  for (const storage::Handle& row : work.trace->Streams()) stream_rows_.emplace(row.id, row);
  for (const storage::Handle& row : work.trace->Events()) event_rows_.emplace(row.id, row);
  MeasureBuffers(stretch);
  NoteResets(stretch);
}

ProbeObjects::~ProbeObjects() {
  device_.work().EndDevice();
  captures_.clear();
  captured.clear();
  models_.clear();
}

void ProbeObjects::NoteResets(const Stretch& stretch) {
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    const analyzer::WorkForm& form = work_.form(i);
    if (form.acl_kind() != analyzer::AclCallKind::kEventReset || work_.calls[i].status != 0) {
      continue;
    }
    event_kinds_.Note(*form.function, form.Integer(form.function->object));
  }
}

void ProbeObjects::MeasureBuffers(const Stretch& stretch) {
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    for (const Argument& argument : ArgumentsOf(work_, i)) {
      for (const storage::TensorRef& tensor : argument.tensors) {
        if (tensor.buffer_id == 0) continue;
        int64_t& bytes = bytes_[tensor.buffer_id];
        bytes = std::max({bytes, work_.trace->GetLayout(tensor.layout_id).EndByte(),
                          work_.trace->GetBuffer(tensor.buffer_id).bytes});
      }
    }
  }
}

aclrtStream ProbeObjects::Stream(int64_t id) {
  OwnedStream& stream = streams_[id];
  if (stream.get() != nullptr) return stream.get();
  const auto row = stream_rows_.find(id);
  const auto flags = row == stream_rows_.end() ? 0 : static_cast<uint32_t>(row->second.flags);
  if (row == stream_rows_.end() || row->second.handle != 0) {
    stream = MakeStream(device_.work(), flags);
  } else if (const auto get_default = device_.api().aclrtCtxGetCurrentDefaultStream) {
    aclrtStream own = nullptr;
    device_.Check(get_default(&own), "aclrtCtxGetCurrentDefaultStream");
    stream = OwnedStream(device_.work(), own);
    stream.Release();  // the context destroys it
  }
  return stream.get();
}

// The function that made the event; for one that is older than the recording, a function that makes
// its like. Empty: the one that takes all flags.
std::string_view ProbeObjects::MakerOf(int64_t event) const {
  const auto row = event_rows_.find(event);
  if (row == event_rows_.end()) return {};
  const int64_t create = work_.Find(row->second.create_call);
  if (create >= 0) return work_.op(create).name;
  return event_kinds_.IsOld(event) ? event_kinds_.MakerOf(event) : std::string_view();
}

Event& ProbeObjects::EventOf(int64_t id) {
  const auto found = events_.find(id);
  if (found != events_.end()) return found->second;
  const auto row = event_rows_.find(id);
  const auto flags = row == event_rows_.end() ? 0 : static_cast<uint32_t>(row->second.flags);
  const std::string_view maker = MakerOf(id);
  const bool own_flags = flags != 0 || maker == "aclrtCreateEventWithFlag";
  return events_.emplace(id, Event(device_, own_flags ? flags : kTimedEvent, maker)).first->second;
}

aclmdlRI ProbeObjects::Model(int64_t id) {
  CapturedGraph& model = models_[id];
  if (!model) model = CaptureWork(device_, device_.stream(), [] {});
  return model.handle();
}

int32_t ProbeObjects::BeginCapture(aclrtStream stream, aclmdlRICaptureMode mode) {
  Capture capture(device_, stream);
  const int32_t code = capture.TryBegin(mode);
  if (code == 0) captures_.emplace(stream, std::move(capture));
  return code;
}

int32_t ProbeObjects::EndCapture(aclrtStream stream) {
  auto open = captures_.extract(stream);
  CapturedGraph graph;
  const int32_t code =
      open.empty() ? Capture(device_, stream).TryEnd(graph) : open.mapped().TryEnd(graph);
  if (code == 0) captured.push_back(std::move(graph));
  return code;
}

Block& ProbeObjects::Buffer(int64_t id) {
  Block& block = buffers_[id];
  if (block.data() != nullptr) return block;
  const storage::Buffer& row = work_.trace->GetBuffer(id);
  const bool host = row.device == 0 && work_.trace->HasBuffer(id);
  constexpr int64_t kLeast = 64;
  const auto reach = bytes_.find(id);
  const int64_t bytes = std::max({kLeast, row.bytes, reach == bytes_.end() ? 0 : reach->second});
  block = Block(device_, host ? Block::Kind::kPinned : Block::Kind::kDevice,
                static_cast<size_t>(bytes));
  return block;
}

uint8_t* ProbeObjects::Address(const Argument& argument, size_t bytes, bool pin) {
  if (!argument.tensors.empty() && argument.tensors[0].buffer_id != 0) {
    const storage::TensorRef& tensor = argument.tensors[0];
    return AddressOf(tensor.buffer_id, work_.trace->GetLayout(tensor.layout_id).FirstByte());
  }
  if (argument.integer == 0) return nullptr;
  if (pin) {
    blocks_.emplace_back(device_, Block::Kind::kPinned, bytes);
    return blocks_.back().data();
  }
  return pageable_.emplace_back(bytes).data();
}

void* ProbeObjects::Workspace(uint64_t bytes) {
  blocks_.emplace_back(device_, Block::Kind::kDevice, bytes);
  return blocks_.back().data();
}

std::vector<ProbeObjects::UsedBuffer> ProbeObjects::UsedBuffers() const {
  std::vector<UsedBuffer> buffers;
  for (const auto& [id, block] : buffers_) {
    const storage::Buffer& row = work_.trace->GetBuffer(id);
    buffers.push_back(
        {id, block.data(), block.bytes(), row.device == 0 && work_.trace->HasBuffer(id)});
  }
  return buffers;
}

int64_t ProbeObjects::stream_count() const {
  constexpr int64_t kDefaultAndOwn = 2;
  return kDefaultAndOwn + std::count_if(streams_.begin(), streams_.end(),
                                        [](const auto& row) { return row.second.owns(); });
}

}  // namespace acltape::replayer::probe
