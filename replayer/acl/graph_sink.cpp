#include "replayer/acl/graph_sink.h"

#include <algorithm>
#include <cstring>

#include "replayer/captured_graph.h"
#include "replayer/eager.h"
#include "replayer/memory_plan.h"

namespace acltape::replayer {
namespace {

using Work = AclTask::Work;

constexpr size_t kPinnedLimit = size_t{64} << 20;  // of one graph; longer runs are cut
constexpr size_t kGraphLimit = 512;                // kept for equal runs
constexpr size_t kReportedGraphs = 100;
constexpr uint32_t kCaptureEvent = 0x1;  // can be waited for, also in a capture (rule CAP-40)

size_t Aligned(size_t bytes) {
  return static_cast<size_t>(AlignUp(static_cast<int64_t>(std::max<size_t>(bytes, 1))));
}

bool NeedsSource(const AclTask& task) {
  return task.work == Work::kUpload && task.content != nullptr;
}
bool NeedsTarget(const AclTask& task) { return task.work == Work::kDownload && task.to == nullptr; }

size_t PinnedBytes(const AclTask& task) {
  size_t bytes = 0;
  if (NeedsSource(task)) bytes += Aligned(task.bytes);
  if (NeedsTarget(task)) bytes += Aligned(task.HostBytes());
  for (const Take& take : task.takes) bytes += Aligned(take.bytes);
  return bytes;
}

}  // namespace

struct GraphSink::Graph {
  std::vector<Item> items;             // of the first run; keeps the calls in the key alive
  std::vector<int64_t> streams;        // the origin first
  std::vector<int64_t> waits_outside;  // events that were recorded before the run
  std::vector<std::pair<int64_t, const Item*>> events_after;  // last record or reset of each event
  Block pinned;
  std::vector<uint8_t*> host;                // by item: source of an upload, target of a download
  std::vector<std::vector<uint8_t*>> takes;  // by item
  std::vector<aclrtEvent> events;
  std::vector<aclrtEvent> before, after;  // by stream, without the origin
  CapturedGraph model;
  int64_t epoch = -1;  // of the origin stream at the latest execution
};

GraphSink::GraphSink(AclSession& session) : session_(session) {}

GraphSink::~GraphSink() {
  const acl::Api& api = session_.device.api();
  api.aclrtSynchronizeDevice();
  for (const auto& [key, graph] : graphs_) {
    graph->model.Reset();
    for (const aclrtEvent event : graph->events) api.aclrtDestroyEvent(event);
  }
}

void GraphSink::Submit(int64_t stream, AclTask task) {
  const bool host =
      std::any_of(task.takes.begin(), task.takes.end(), [](const Take& take) { return take.host; });
  if (host) {  // a graph cannot copy from host memory to host memory
    Flush();
    EagerSink(session_).Submit(stream, std::move(task));
    return;
  }
  const size_t bytes = PinnedBytes(task);
  if (!items_.empty() && pinned_bytes_ + bytes > kPinnedLimit) Flush();
  pinned_bytes_ += bytes;
  Item item;
  item.stream = stream;
  item.task = std::move(task);
  items_.push_back(std::move(item));
}

void GraphSink::Add(int64_t stream, Item::Kind kind, int64_t event) {
  Item item;
  item.kind = kind;
  item.stream = stream;
  item.event = event;
  items_.push_back(std::move(item));
}

std::string GraphSink::KeyOf() const {
  std::string key;
  const auto add = [&](auto value) {
    key.append(reinterpret_cast<const char*>(&value), sizeof value);  // NOLINT: pointers, too
  };
  for (const Item& item : items_) {
    add(item.kind);
    add(item.stream);
    add(item.event);
    if (item.kind != Item::Kind::kTask) continue;
    const AclTask& task = item.task;
    add(task.work);
    add(task.bound.get());
    add(task.workspace);
    add(task.workspace_bytes);
    add(task.to);
    add(task.from);
    for (const size_t number :
         {task.bytes, task.rows, task.width, task.to_pitch, task.from_pitch}) {
      add(number);
    }
    add(task.value);
    add(task.flag);
    add(NeedsSource(task));
    for (const Take& take : task.takes) {
      add(take.address);
      add(take.bytes);
      add(take.rows);
    }
  }
  return key;
}

void GraphSink::Flush() {
  if (items_.empty()) return;
  const bool work = std::any_of(items_.begin(), items_.end(),
                                [](const Item& item) { return item.kind == Item::Kind::kTask; });
  if (!work) {
    IssueEagerly();
  } else {
    const std::string key = KeyOf();
    std::unique_ptr<Graph>& graph = graphs_[key];
    const bool busy = graph != nullptr && !session_.MayWait() &&
                      graph->epoch == session_.in_flight.Epoch(graph->streams.front());
    if (graph == nullptr) graph = Make();
    if (busy || !graph->model) {
      IssueEagerly();  // if busy: pinned memory is in use, and waiting might not end
    } else {
      Execute(*graph);
    }
    if (graphs_.size() > kGraphLimit && session_.MayWait()) {
      session_.SynchronizeAll();
      for (const auto& [unused, old] : graphs_) {
        old->model.Reset();
        for (const aclrtEvent event : old->events) session_.device.api().aclrtDestroyEvent(event);
      }
      graphs_.clear();
    }
  }
  items_.clear();
  pinned_bytes_ = 0;
}

void GraphSink::IssueEagerly() {
  EagerSink eager(session_);
  for (Item& item : items_) {
    switch (item.kind) {
      case Item::Kind::kTask:
        eager.Submit(item.stream, std::move(item.task));
        break;
      case Item::Kind::kRecord:
        eager.Record(item.stream, item.event);
        break;
      case Item::Kind::kWait:
        eager.Wait(item.stream, item.event);
        break;
      case Item::Kind::kReset:
        eager.Reset(item.stream, item.event);
        break;
    }
  }
}

aclrtEvent GraphSink::NewEvent(Graph& graph) const {
  aclrtEvent event = nullptr;
  session_.device.Check(session_.device.api().aclrtCreateEventExWithFlag(&event, kCaptureEvent),
                        "aclrtCreateEventExWithFlag");
  graph.events.push_back(event);
  return event;
}

void GraphSink::Order(aclrtEvent event, int64_t from, int64_t to) {
  const acl::Api& api = session_.device.api();
  session_.device.Check(api.aclrtRecordEvent(event, session_.handles.Stream(from)),
                        "aclrtRecordEvent");
  session_.device.Check(api.aclrtStreamWaitEvent(session_.handles.Stream(to), event),
                        "aclrtStreamWaitEvent");
}

std::unique_ptr<GraphSink::Graph> GraphSink::Make() {
  auto graph = std::make_unique<Graph>();
  graph->items = items_;
  const auto first = std::find_if(items_.begin(), items_.end(),
                                  [](const Item& item) { return item.kind == Item::Kind::kTask; });
  graph->streams.push_back(first->stream);
  std::map<int64_t, const Item*> last;
  for (const Item& item : graph->items) {
    if (std::find(graph->streams.begin(), graph->streams.end(), item.stream) ==
        graph->streams.end()) {
      graph->streams.push_back(item.stream);
    }
    if (item.kind == Item::Kind::kTask) continue;
    if (item.kind == Item::Kind::kWait && last.count(item.event) == 0) {
      graph->waits_outside.push_back(item.event);
    }
    if (item.kind != Item::Kind::kWait) last[item.event] = &item;
  }
  for (const auto& [event, item] : last) graph->events_after.emplace_back(event, item);
  for (size_t s = 1; s < graph->streams.size(); ++s) {
    graph->before.push_back(NewEvent(*graph));
    graph->after.push_back(NewEvent(*graph));
  }
  PlanPinned(*graph);
  // When a task fails, a graph skips other work than separate tasks do. Such work stays eager.
  if (session_.MayWait() && !WarmUp(*graph)) return graph;
  const int64_t begin = NowNs();
  Capture(*graph);
  capture_ns_ += NowNs() - begin;
  ++made_;
  if (regions_.size() < kReportedGraphs) {
    RegionReport row;
    row.captured = true;
    for (const Item& item : graph->items) {
      if (item.kind != Item::Kind::kTask) continue;
      if (row.first_call == 0) row.first_call = item.task.call->call.call_id;
      row.last_call = item.task.call->call.call_id;
      row.leaves += item.task.work == Work::kOperator ? 1 : 0;
      row.tasks += item.task.work == Work::kNothing ? 0 : 1;
    }
    regions_.push_back(row);
  }
  return graph;
}

void GraphSink::PlanPinned(Graph& graph) const {
  size_t bytes = 0;
  for (const Item& item : graph.items) bytes += PinnedBytes(item.task);
  graph.pinned = Block(session_.device, Block::Kind::kPinned, bytes);
  uint8_t* next = graph.pinned.data();
  const auto place = [&](size_t size) {
    uint8_t* here = next;
    next += Aligned(size);
    return here;
  };
  for (const Item& item : graph.items) {
    uint8_t* host = nullptr;
    if (NeedsSource(item.task)) host = place(item.task.bytes);
    if (NeedsTarget(item.task)) host = place(item.task.HostBytes());
    graph.host.push_back(host);
    std::vector<uint8_t*> takes;
    for (const Take& take : item.task.takes) takes.push_back(place(take.bytes));
    graph.takes.push_back(std::move(takes));
  }
}

void GraphSink::FillUploads(Graph& graph, const std::vector<Item>& items) const {
  for (size_t i = 0; i < items.size(); ++i) {
    const AclTask& task = items[i].task;
    if (items[i].kind != Item::Kind::kTask || !NeedsSource(task)) continue;
    std::memcpy(graph.host[i], task.content->data() + task.content_at, task.bytes);
  }
}

// Runs the work once without a capture and then restores the memory that it changed. Returns false
// if the work failed, as it did in the recording.
bool GraphSink::WarmUp(Graph& graph) {
  session_.SynchronizeAll();
  struct Saved {
    uint8_t* at;
    size_t bytes;
  };
  std::map<int64_t, analyzer::ByteSet> written;  // by buffer
  for (const Item& item : graph.items) {
    if (item.kind != Item::Kind::kTask) continue;
    for (const analyzer::AclUse& use : item.task.call->writes) {
      if (session_.rooms.Of(use.tensor.buffer_id).host) continue;
      written[use.tensor.buffer_id].Add(use.layout->FirstByte(), use.layout->EndByte());
    }
  }
  std::vector<Saved> ranges;
  size_t bytes = 0;
  for (const auto& [buffer, set] : written) {
    for (const auto& part : set.Within(0, INT64_MAX)) {
      const auto size = static_cast<size_t>(part.end - part.first);
      ranges.push_back({session_.rooms.Address(buffer, part.first), size});
      bytes += Aligned(size);
    }
  }
  const Block saved(session_.device, Block::Kind::kDevice, bytes);
  const auto copy = [&](bool back) {
    uint8_t* next = saved.data();
    for (const Saved& range : ranges) {
      session_.device.Copy(back ? range.at : next, back ? next : range.at, range.bytes);
      next += Aligned(range.bytes);
    }
    session_.device.Synchronize();  // this stream has none of the program's failures
  };
  copy(/*back=*/false);
  FillUploads(graph, graph.items);
  const int64_t origin = graph.streams.front();
  aclrtStream stream = session_.handles.Stream(origin);
  for (size_t i = 0; i < graph.items.size(); ++i) {
    if (graph.items[i].kind != Item::Kind::kTask) continue;
    IssueTask(session_.device, stream, graph.items[i].task, {graph.host[i], graph.host[i]},
              [&](uint64_t size) { return session_.workspaces.Of(origin, size); });
  }
  const bool good = session_.CheckWait(session_.device.api().aclrtSynchronizeStream(stream),
                                       "aclrtSynchronizeStream");
  copy(/*back=*/true);
  return good;
}

void GraphSink::Capture(Graph& graph) {
  graph.model = CaptureWork(session_.device, session_.handles.Stream(graph.streams.front()),
                            [&] { CaptureItems(graph); });
}

void GraphSink::CaptureItems(Graph& graph) {
  const acl::Api& api = session_.device.api();
  const int64_t origin = graph.streams.front();
  if (graph.streams.size() > 1) {
    aclrtEvent fork = NewEvent(graph);
    session_.device.Check(api.aclrtRecordEvent(fork, session_.handles.Stream(origin)),
                          "aclrtRecordEvent");
    for (size_t s = 1; s < graph.streams.size(); ++s) {
      session_.device.Check(
          api.aclrtStreamWaitEvent(session_.handles.Stream(graph.streams[s]), fork),
          "aclrtStreamWaitEvent");
    }
  }
  std::map<int64_t, aclrtEvent> inside;  // by event of the program: the event of its newest record
  for (size_t i = 0; i < graph.items.size(); ++i) {
    const Item& item = graph.items[i];
    if (item.kind == Item::Kind::kTask) {
      IssueCaptured(graph, i);
    } else if (item.kind == Item::Kind::kRecord) {
      aclrtEvent event = NewEvent(graph);
      session_.device.Check(api.aclrtRecordEvent(event, session_.handles.Stream(item.stream)),
                            "aclrtRecordEvent");
      inside[item.event] = event;
    } else if (item.kind == Item::Kind::kWait && inside.count(item.event) != 0) {
      session_.device.Check(
          api.aclrtStreamWaitEvent(session_.handles.Stream(item.stream), inside[item.event]),
          "aclrtStreamWaitEvent");
    }
  }
  for (size_t s = 1; s < graph.streams.size(); ++s) {
    Order(NewEvent(graph), graph.streams[s], origin);
  }
}

void GraphSink::IssueCaptured(Graph& graph, size_t at) {
  const Item& item = graph.items[at];
  aclrtStream stream = session_.handles.Stream(item.stream);
  IssueTask(session_.device, stream, item.task, {graph.host[at], graph.host[at]},
            [&](uint64_t bytes) { return session_.workspaces.Own(bytes); });
  if (!session_.compare) return;
  for (size_t t = 0; t < item.task.takes.size(); ++t) {
    IssueTake(session_.device, stream, item.task.takes[t], graph.takes[at][t]);
  }
}

void GraphSink::Execute(Graph& graph) {
  const acl::Api& api = session_.device.api();
  const int64_t origin = graph.streams.front();
  aclrtStream stream = session_.handles.Stream(origin);
  if (graph.epoch == session_.in_flight.Epoch(origin)) {
    // The latest execution may still use the pinned memory, which is filled again next.
    session_.CheckWait(api.aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
    session_.in_flight.Synced(origin);
  }
  FillUploads(graph, items_);
  EagerSink eager(session_);
  for (const int64_t event : graph.waits_outside) eager.Wait(origin, event);
  for (size_t s = 1; s < graph.streams.size(); ++s) {
    Order(graph.before[s - 1], graph.streams[s], origin);
  }
  graph.model.Execute(stream);
  ++executed_;
  for (size_t s = 1; s < graph.streams.size(); ++s) {
    Order(graph.after[s - 1], origin, graph.streams[s]);
  }
  for (const auto& [event, item] : graph.events_after) {
    if (item->kind == Item::Kind::kRecord) {
      eager.Record(item->stream, event);
    } else {
      eager.Reset(item->stream, event);
    }
  }
  graph.epoch = session_.in_flight.Epoch(origin);
  if (!session_.compare) return;
  for (size_t i = 0; i < items_.size(); ++i) {
    const std::vector<Take>& takes = items_[i].task.takes;
    for (size_t t = 0; t < takes.size(); ++t) {
      session_.in_flight.CheckLater(origin, takes[t], graph.takes[i][t]);
    }
  }
  if (session_.MayWait()) {
    session_.CheckWait(api.aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
    session_.in_flight.Synced(origin);
  }
}

void GraphSink::Describe(CaptureReport& report, AclReport& counts) const {
  report.regions = regions_;
  report.capture_ns = capture_ns_;
  counts.graphs_made = made_;
  counts.graphs_executed = executed_;
}

}  // namespace acltape::replayer
