// The streams, events, memory and graphs of a probe, by the ids of the recording and of the
// recorded kinds.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "analyzer/calls/event_kinds.h"
#include "analyzer/calls/work.h"
#include "analyzer/lint/stretch.h"
#include "replayer/device/captured_graph.h"
#include "replayer/device/device.h"

namespace acltape::replayer::probe {

// A call's arguments with the buffers of this call in place of slots.
std::vector<storage::Argument> ArgumentsOf(const analyzer::Work& work, size_t call);

class ProbeObjects {
 public:
  ProbeObjects(Device& device, const analyzer::Work& work, const analyzer::lint::Stretch& stretch);
  ~ProbeObjects();
  ProbeObjects(const ProbeObjects&) = delete;
  ProbeObjects& operator=(const ProbeObjects&) = delete;

  // Created at the first use. Default streams are the default stream of the context.
  aclrtStream Stream(int64_t id);
  Event& EventOf(int64_t id);
  // An empty graph in place of one that the program had captured.
  aclmdlRI Model(int64_t id);
  // The address of an argument of a call: a range of a buffer, or host memory of `bytes` bytes.
  // That memory is pinned only with `pin`.
  uint8_t* Address(const storage::Argument& argument, size_t bytes, bool pin);
  uint8_t* AddressOf(int64_t buffer, int64_t offset) { return Buffer(buffer).data() + offset; }
  void* Workspace(uint64_t bytes);

  struct UsedBuffer {
    int64_t buffer = 0;
    uint8_t* data = nullptr;
    size_t bytes = 0;
    bool host = false;
  };
  // The buffers that have been used, in order of ids.
  std::vector<UsedBuffer> UsedBuffers() const;
  // Number of streams that were made, with the device's own and the default one.
  int64_t stream_count() const;

  // Return codes of the interface. The graph of a capture that ends well is added to `captured`.
  int32_t BeginCapture(aclrtStream stream, aclmdlRICaptureMode mode);
  int32_t EndCapture(aclrtStream stream);
  std::vector<CapturedGraph> captured;
  std::unordered_map<int64_t, aclrtTaskGrp> groups;  // by the recorded handle
  // A stream that a call destroyed.
  void ReleaseStream(int64_t id) { streams_[id].Release(); }

 private:
  Block& Buffer(int64_t id);
  void MeasureBuffers(const analyzer::lint::Stretch& stretch);
  void NoteResets(const analyzer::lint::Stretch& stretch);
  std::string_view MakerOf(int64_t event) const;

  Device& device_;
  const analyzer::Work& work_;
  std::unordered_map<int64_t, storage::Handle> stream_rows_;
  std::unordered_map<int64_t, storage::Handle> event_rows_;
  analyzer::EventKinds event_kinds_;  // as far as the events' flags and the stretch's resets tell
  std::map<int64_t, OwnedStream> streams_;
  std::map<int64_t, Event> events_;
  std::map<int64_t, CapturedGraph> models_;
  std::map<aclrtStream, Capture> captures_;  // open captures
  std::unordered_map<int64_t, int64_t>
      bytes_;  // number of bytes of a buffer that the stretch reaches
  std::map<int64_t, Block> buffers_;
  std::deque<std::vector<uint8_t>> pageable_;
  std::vector<Block> blocks_;
};

}  // namespace acltape::replayer::probe
