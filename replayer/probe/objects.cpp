#include "replayer/probe/objects.h"

#include <algorithm>

namespace acltape::replayer {

using analyzer::Stretch;
using analyzer::Work;
using storage::Argument;

std::vector<Argument> ArgumentsOf(const Work& work, size_t call) {
  return work.trace->Arguments(work.form(call).signature_id, work.buffers(call));
}

ProbeObjects::ProbeObjects(Device& device, const Work& work, const Stretch& stretch)
    : device_(device), work_(work) {
  for (const storage::Handle& row : work.trace->Streams()) stream_rows_.emplace(row.id, row);
  for (const storage::Handle& row : work.trace->Events()) event_rows_.emplace(row.id, row);
  MeasureBuffers(stretch);
}

ProbeObjects::~ProbeObjects() {
  const acl::Api& api = device_.api();
  api.aclrtSynchronizeDevice();
  captures_.clear();
  captured.clear();
  models_.clear();
  for (const auto& [id, event] : events_) {
    if (destroyed_events.count(id) == 0) api.aclrtDestroyEvent(event);
  }
  for (aclrtEvent event : added_events_) api.aclrtDestroyEvent(event);
  for (const auto& [id, stream] : streams_) {
    if (destroyed_streams.count(id) == 0 && default_streams_.count(id) == 0) {
      api.aclrtDestroyStream(stream);
    }
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
  aclrtStream& stream = streams_[id];
  if (stream != nullptr) return stream;
  const acl::Api& api = device_.api();
  const auto row = stream_rows_.find(id);
  if (row != stream_rows_.end() && row->second.handle == 0) {
    default_streams_.insert(id);
    if (api.aclrtCtxGetCurrentDefaultStream == nullptr) return stream;
    device_.Check(api.aclrtCtxGetCurrentDefaultStream(&stream), "aclrtCtxGetCurrentDefaultStream");
    return stream;
  }
  const auto flags = row == stream_rows_.end() ? 0 : static_cast<uint32_t>(row->second.flags);
  if (api.aclrtCreateStreamWithConfig != nullptr) {
    device_.Check(api.aclrtCreateStreamWithConfig(&stream, 0, flags),
                  "aclrtCreateStreamWithConfig");
  } else {
    device_.Check(api.aclrtCreateStream(&stream), "aclrtCreateStream");
  }
  return stream;
}

aclrtEvent ProbeObjects::NewEvent() {
  aclrtEvent event = nullptr;
  device_.Check(device_.api().aclrtCreateEventExWithFlag(&event, kWaitableEvent),
                "aclrtCreateEventExWithFlag");
  added_events_.push_back(event);
  return event;
}

aclrtEvent ProbeObjects::Event(int64_t id) {
  aclrtEvent& event = events_[id];
  if (event != nullptr) return event;
  const acl::Api& api = device_.api();
  const auto row = event_rows_.find(id);
  const auto flags = row == event_rows_.end() ? 0 : static_cast<uint32_t>(row->second.flags);
  const int64_t create = row == event_rows_.end() ? -1 : work_.Find(row->second.create_call);
  using V = analyzer::AclVariant;
  const V maker = create < 0 ? V::kNone : analyzer::FindAclFunction(work_.op(create).name).variant;
  if (maker == V::kOldEvent) {
    device_.Check(api.aclrtCreateEvent(&event), "aclrtCreateEvent");
  } else if (maker == V::kOldEventWithFlags) {
    device_.Check(api.aclrtCreateEventWithFlag(&event, flags), "aclrtCreateEventWithFlag");
  } else {
    device_.Check(api.aclrtCreateEventExWithFlag(&event, flags == 0 ? kWaitableEvent : flags),
                  "aclrtCreateEventExWithFlag");
  }
  return event;
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

std::vector<ProbeObjects::Room> ProbeObjects::Rooms() const {
  std::vector<Room> rooms;
  for (const auto& [id, block] : buffers_) {
    const storage::Buffer& row = work_.trace->GetBuffer(id);
    rooms.push_back(
        {id, block.data(), block.bytes(), row.device == 0 && work_.trace->HasBuffer(id)});
  }
  return rooms;
}

int64_t ProbeObjects::stream_count() const {
  constexpr int64_t kDefaultAndOwn = 2;
  return kDefaultAndOwn +
         static_cast<int64_t>(streams_.size() - default_streams_.size() - destroyed_streams.size());
}

}  // namespace acltape::replayer
