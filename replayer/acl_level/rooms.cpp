#include "replayer/acl_level/rooms.h"

#include <algorithm>
#include <map>
#include <vector>

#include "acl/invoke/memory_padding.h"
#include "replayer/device/memory_plan.h"

namespace acltape::replayer::acl_level {
namespace {

using analyzer::AclCall;
using analyzer::AclCallKind;
using analyzer::AclProgram;

// The host saw at call `at` that a stream's work up to call `covers` had ended.
struct Seen {
  int64_t covers = 0;
  int64_t index = 0;
};

class HostWaits {
 public:
  explicit HostWaits(const AclProgram& program) : program_(program) {
    for (const AclCall& call : program.calls) {
      if (call.fate == analyzer::AclFate::kIssued) Note(call);
    }
  }

  int64_t EndOf(int64_t stream, int64_t last_use) const {
    int64_t end = static_cast<int64_t>(program_.calls.size());
    const auto search = [&](const std::vector<Seen>& list) {
      auto seen = std::lower_bound(list.begin(), list.end(), last_use,
                                   [](const Seen& a, int64_t index) { return a.index < index; });
      while (seen != list.end() && seen->index < end && seen->covers < last_use) ++seen;
      if (seen != list.end()) end = std::min(end, seen->index);
    };
    search(all_);
    const auto found = streams_.find(stream);
    if (found != streams_.end()) search(found->second);
    return end;
  }

 private:
  void Note(const AclCall& call) {
    const int64_t object = call.Integer(call.function->object);
    const bool done = call.Integer(call.function->detail) == call.function->done;
    switch (call.kind()) {
      case AclCallKind::kEventRecord:
        if (call.call.model_id == 0) records_[object] = {call.stream(), call.index};
        return;
      case AclCallKind::kDeviceSync:
        all_.push_back({call.index, call.index});
        return;
      case AclCallKind::kStreamSync:
        streams_[call.stream()].push_back({call.index, call.index});
        return;
      case AclCallKind::kStreamQuery:
        if (done) streams_[call.stream()].push_back({call.index, call.index});
        return;
      case AclCallKind::kEventQuery:
        if (done) NoteEvent(object, call.index);
        return;
      case AclCallKind::kEventSync:
        NoteEvent(object, call.index);
        return;
      case AclCallKind::kEventTime:
        NoteEvent(object, call.index);
        NoteEvent(call.Integer(call.function->detail), call.index);
        return;
      default:
        return;
    }
  }

  void NoteEvent(int64_t event, int64_t index) {
    const auto record = records_.find(event);
    if (record == records_.end()) return;
    streams_[record->second.first].push_back({record->second.second, index});
  }

  const AclProgram& program_;
  std::vector<Seen> all_;
  std::map<int64_t, std::vector<Seen>> streams_;
  std::map<int64_t, std::pair<int64_t, int64_t>> records_;  // event to stream and call
};

// The parts of a buffer that need memory: whole pages, so that small buffers stay in one piece.
std::vector<analyzer::ByteRange> PartsOf(const analyzer::AclBuffer& buffer) {
  constexpr int64_t kPage = int64_t{2} << 20;
  analyzer::ByteSet pages;
  for (const analyzer::ByteRange& part : buffer.touched.Within(0, buffer.bytes)) {
    pages.Add(part.first / kPage * kPage,
              std::min(buffer.bytes, (part.end + kPage - 1) / kPage * kPage));
  }
  std::vector<analyzer::ByteRange> parts = pages.Within(0, buffer.bytes);
  if (parts.empty()) parts.push_back({0, std::min(buffer.bytes, kPage)});
  return parts;
}

}  // namespace

std::unordered_map<int64_t, int64_t> EndsOfUse(const AclProgram& program) {
  const HostWaits waits(program);
  std::unordered_map<int64_t, int64_t> ends;
  for (const auto& [id, buffer] : program.buffers) {
    std::map<int64_t, int64_t> last_uses;  // by stream
    for (const int64_t index : buffer.uses) {
      const AclCall& call = program.calls[index];
      if (!analyzer::WaitsOnHost(call.kind())) last_uses[call.stream()] = index;
    }
    int64_t end = buffer.uses.empty() ? 0 : buffer.uses.back();
    for (const auto& [stream, last] : last_uses) end = std::max(end, waits.EndOf(stream, last));
    ends[id] = end;
  }
  return ends;
}

Rooms::Rooms(Device& device, const AclProgram& program) {
  const std::unordered_map<int64_t, int64_t> ends = EndsOfUse(program);
  std::vector<Life> lives[2];                  // device, host
  std::vector<analyzer::ByteRange> places[2];  // ranges of the lives in their buffers
  for (const auto& [id, buffer] : program.buffers) {
    if (buffer.uses.empty() || program.cells.count(id) != 0) continue;
    for (const analyzer::ByteRange& part : PartsOf(buffer)) {
      Life life;
      life.buffer_id = id;
      life.bytes = part.end - part.first + static_cast<int64_t>(acl::kMemoryPadding);
      life.first = *std::min_element(buffer.uses.begin(), buffer.uses.end());
      life.last = ends.at(id);
      lives[buffer.host ? 1 : 0].push_back(life);
      places[buffer.host ? 1 : 0].push_back(part);
    }
  }
  device_arena_ = Block(device, Block::Kind::kDevice, PlanMemory(lives[0]));
  host_arena_ = Block(device, Block::Kind::kPinned, PlanMemory(lives[1]));
  device_arena_.Fill(0);
  std::fill_n(host_arena_.data(), host_arena_.bytes(), uint8_t{0});
  for (const bool host : {false, true}) {
    uint8_t* arena = host ? host_arena_.data() : device_arena_.data();
    for (size_t i = 0; i < lives[host].size(); ++i) {
      Room& room = rooms_[lives[host][i].buffer_id];
      room.host = host;
      room.parts.push_back(
          {places[host][i].first, places[host][i].end, arena + lives[host][i].offset});
    }
  }
}

void Rooms::Adopt(int64_t buffer_id, void* data, int64_t bytes) {
  rooms_[buffer_id] = {{{0, bytes, static_cast<uint8_t*>(data)}}, false};
}

const Rooms::Room& Rooms::Of(int64_t buffer_id) const {
  const auto found = rooms_.find(buffer_id);
  if (found == rooms_.end()) {
    throw Error(ErrorKind::kTrace,
                "buffer " + std::to_string(buffer_id) + " is named by no device work of the trace");
  }
  return found->second;
}

uint8_t* Rooms::Address(int64_t buffer_id, int64_t offset) const {
  const std::vector<Part>& parts = Of(buffer_id).parts;
  auto part = std::upper_bound(parts.begin(), parts.end(), offset,
                               [](int64_t place, const Part& row) { return place < row.first; });
  if (part != parts.begin()) --part;
  return part->data + (offset - part->first);
}

}  // namespace acltape::replayer::acl_level
