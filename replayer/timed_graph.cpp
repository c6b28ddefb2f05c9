#include "replayer/timed_graph.h"

#include <algorithm>

#include "base/median.h"
#include "replayer/device/memory_plan.h"
#include "replayer/engine/eager.h"

namespace acltape::replayer {

std::vector<Event> SyncEvents(const Device& device, size_t count) {
  std::vector<Event> events;
  while (events.size() < count) events.emplace_back(device, kOrderingEvent);
  return events;
}

TimedGraph::TimedGraph(Device& device, const std::function<void()>& issue) : device_(device) {
  const int64_t begin = NowNs();
  graph_ = CaptureWork(device_, device_.stream(), issue);
  capture_ns_ = static_cast<double>(NowNs() - begin);
}

double TimedGraph::DeviceTime(double* host_ns) const {
  Event begin(device_);
  Event end(device_);
  device_.Synchronize();
  begin.Record();
  const int64_t issued = NowNs();
  graph_.Execute(device_.stream());
  if (host_ns != nullptr) *host_ns = static_cast<double>(NowNs() - issued);
  end.Record();
  device_.Synchronize();
  return end.NanosecondsSince(begin);
}

double TimedGraph::MedianDeviceTime(int repetitions) const {
  std::vector<double> samples;
  DeviceTime();  // the first execution may set things up
  samples.reserve(repetitions);
  for (int i = 0; i < repetitions; ++i) samples.push_back(DeviceTime());
  return base::Median(samples);
}

TimedGraph::~TimedGraph() {
  if (graph_) device_.work().EndStream(device_.stream());
}

SavedRanges::SavedRanges(Device& device, const std::vector<MemoryRange>& ranges) : device_(device) {
  int64_t total = kDeviceAlignment;
  for (const MemoryRange& range : ranges) total += AlignUp(std::max<int64_t>(0, range.bytes));
  block_ = Block(device, Block::Kind::kDevice, static_cast<size_t>(total));
  uint8_t* next = block_.data();
  for (const MemoryRange& range : ranges) {
    if (range.bytes <= 0) continue;
    copies_.push_back({next, range.address, static_cast<size_t>(range.bytes)});
    device.Copy(next, range.address, static_cast<size_t>(range.bytes));
    next += AlignUp(range.bytes);
  }
}

void SavedRanges::Restore() const {
  for (const Copy& copy : copies_) device_.Copy(copy.place, copy.saved, copy.bytes);
}

}  // namespace acltape::replayer
