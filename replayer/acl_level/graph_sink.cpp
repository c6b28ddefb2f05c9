#include "replayer/acl_level/graph_sink.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "replayer/device/captured_graph.h"
#include "replayer/device/memory_plan.h"
#include "replayer/engine/eager.h"

namespace acltape::replayer::acl_level {
namespace {

using Work = AclTask::Work;

constexpr size_t kPinnedLimit = size_t{64} << 20;  // limit of one graph; longer runs are cut
constexpr size_t kGraphLimit = 512;                // kept for equal runs
constexpr size_t kReportedGraphs = 100;

size_t Aligned(size_t bytes) {
  return static_cast<size_t>(AlignUp(static_cast<int64_t>(std::max<size_t>(bytes, 1))));
}

// The bytes of pinned memory that a copy needs for its end in host memory.
size_t HostBytes(const AclTask& task) {
  return task.content != nullptr ? task.copy.bytes : task.LandingBytes();
}

size_t PinnedBytes(const AclTask& task) {
  size_t bytes = HostBytes(task) == 0 ? 0 : Aligned(HostBytes(task));
  for (const Take& take : task.takes) bytes += Aligned(take.copy.bytes);
  return bytes;
}

}  // namespace

struct GraphSink::Graph {
  std::vector<Item> items;       // items of the first run; keeps the calls in the key alive
  std::vector<int64_t> streams;  // the origin first
  std::vector<const AclTask*> waits_outside;    // for events that were recorded before the run
  std::map<int64_t, const Item*> events_after;  // last record or reset of each event
  Block pinned;
  std::vector<uint8_t*> host;                // by item: end of a copy in host memory
  std::vector<std::vector<uint8_t*>> takes;  // by item
  std::deque<Event> events;
  std::vector<Event> before, after;  // by stream, without the origin
  CapturedGraph model;
  int64_t epoch = -1;  // epoch of the origin stream at the latest execution
};

GraphSink::GraphSink(AclSession& session) : session_(session) {}

GraphSink::~GraphSink() {
  session_.device.work().EndDevice();
  graphs_.clear();
}

void GraphSink::Submit(int64_t stream, AclTask task) {
  const bool host =
      std::any_of(task.takes.begin(), task.takes.end(), [](const Take& take) { return take.host; });
  // A graph cannot copy from host memory to host memory. A collective that the program issued by
  // itself stays so: ranks that wait at different moments would have it in graphs that differ.
  const bool meets =
      task.work == Work::kCollective || (task.work == Work::kOperator && task.call->communicates);
  if (host || meets) {
    Flush();
    EagerSink(session_).Submit(stream, std::move(task));
    return;
  }
  const size_t bytes = PinnedBytes(task);
  if (!items_.empty() && pinned_bytes_ + bytes > kPinnedLimit) Flush();
  // A graph begins when the work before it on each of its streams has ended. It would wait for
  // itself if it held two streams, one of which waits for a value that the other writes later.
  if (!items_.empty() && !session_.MayWait() &&
      (stream != items_.front().stream || task.work == Work::kWait)) {
    Flush();
  }
  pinned_bytes_ += bytes;
  items_.push_back({stream, std::move(task)});
}

std::string GraphSink::KeyOf() const {
  std::string key;
  const auto add = [&](auto value) {
    key.append(reinterpret_cast<const char*>(&value), sizeof value);  // NOLINT: pointers, too
  };
  for (const auto& [stream, task] : items_) {
    add(stream);
    add(task.event);
    add(task.work);
    if (task.IsAboutEvent()) continue;
    add(task.bound.get());
    add(task.workspace);
    add(task.workspace_bytes);
    const Transfer& copy = task.copy;
    add(copy.to);
    add(copy.from);
    add(copy.kind);
    for (const size_t number :
         {copy.bytes, copy.rows, copy.width, copy.to_pitch, copy.from_pitch}) {
      add(number);
    }
    add(task.value);
    add(task.flag);
    if (task.random != nullptr) add(*task.random);
    add(task.content != nullptr);
    for (const Take& take : task.takes) {
      add(take.copy.from);
      add(take.copy.bytes);
      add(take.copy.rows);
    }
  }
  return key;
}

void GraphSink::Flush() {
  if (items_.empty()) return;
  const bool work = std::any_of(items_.begin(), items_.end(),
                                [](const Item& item) { return !item.task.IsAboutEvent(); });
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
      graphs_.clear();
    }
  }
  items_.clear();
  pinned_bytes_ = 0;
}

void GraphSink::IssueEagerly() {
  EagerSink eager(session_);
  for (Item& item : items_) eager.Submit(item.stream, std::move(item.task));
}

Event& GraphSink::NewEvent(Graph& graph) const {
  return graph.events.emplace_back(session_.device, kOrderingEvent);
}

void GraphSink::Order(const Event& event, int64_t from, int64_t to) {
  event.Record(session_.handles.Stream(from));
  event.MakeWait(session_.handles.Stream(to));
}

std::unique_ptr<GraphSink::Graph> GraphSink::Make() {
  auto graph = std::make_unique<Graph>();
  graph->items = items_;
  const auto first = std::find_if(items_.begin(), items_.end(),
                                  [](const Item& item) { return !item.task.IsAboutEvent(); });
  graph->streams.push_back(first->stream);
  for (const Item& item : graph->items) {
    if (std::find(graph->streams.begin(), graph->streams.end(), item.stream) ==
        graph->streams.end()) {
      graph->streams.push_back(item.stream);
    }
    if (!item.task.IsAboutEvent()) continue;
    if (item.task.work != Work::kWait) {
      graph->events_after[item.task.event] = &item;
    } else if (graph->events_after.count(item.task.event) == 0) {
      graph->waits_outside.push_back(&item.task);
    }
  }
  for (size_t s = 1; s < graph->streams.size(); ++s) {
    graph->before.emplace_back(session_.device, kOrderingEvent);
    graph->after.emplace_back(session_.device, kOrderingEvent);
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
      if (item.task.IsAboutEvent()) continue;
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
  for (Item& item : graph.items) {
    AclTask& task = item.task;
    const size_t landing = task.LandingBytes();
    graph.host.push_back(HostBytes(task) == 0 ? nullptr : place(HostBytes(task)));
    if (task.content != nullptr) task.copy.from = graph.host.back();
    if (landing != 0) task.copy.to = graph.host.back();
    std::vector<uint8_t*> takes;
    for (const Take& take : task.takes) takes.push_back(place(take.copy.bytes));
    graph.takes.push_back(std::move(takes));
  }
}

void GraphSink::FillUploads(Graph& graph, const std::vector<Item>& items) const {
  for (size_t i = 0; i < items.size(); ++i) {
    const AclTask& task = items[i].task;
    if (task.content != nullptr) std::memcpy(graph.host[i], task.Content(), task.copy.bytes);
  }
}

// Runs the work once without a capture and then restores the memory that it changed. Returns false
// if the work failed, as it did in the recording.
bool GraphSink::WarmUp(Graph& graph) {
  session_.SynchronizeAll();
  struct Saved {
    uint8_t* memory;
    size_t bytes;
  };
  std::map<int64_t, analyzer::ByteSet> written;  // by buffer
  for (const Item& item : graph.items) {
    if (item.task.IsAboutEvent()) continue;
    for (const analyzer::TensorUse& use : item.task.call->writes) {
      if (session_.rooms.IsHost(use.tensor.buffer_id)) continue;
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
      session_.device.Copy(back ? range.memory : next, back ? next : range.memory, range.bytes);
      next += Aligned(range.bytes);
    }
    session_.device.Synchronize();  // this stream has none of the program's failures
  };
  copy(/*back=*/false);
  FillUploads(graph, graph.items);
  const int64_t origin = graph.streams.front();
  for (const Item& item : graph.items) {
    if (item.task.IsAboutEvent()) continue;
    // The program's workspace of a later operator may be what an earlier one reads: it is not used
    // here, because nobody restores it.
    AclTask task = item.task;
    task.workspace_bytes = 0;
    session_.Issue(origin, task, AclSession::Workspaces::kShared);
  }
  const bool good =
      session_.CheckWait(session_.device.work().WaitForStream(session_.handles.Stream(origin)));
  copy(/*back=*/true);
  return good;
}

void GraphSink::Capture(Graph& graph) {
  graph.model = CaptureWork(session_.device, session_.handles.Stream(graph.streams.front()),
                            [&] { CaptureItems(graph); });
}

void GraphSink::CaptureItems(Graph& graph) {
  const int64_t origin = graph.streams.front();
  if (graph.streams.size() > 1) {
    const Event& fork = NewEvent(graph);
    fork.Record(session_.handles.Stream(origin));
    for (size_t s = 1; s < graph.streams.size(); ++s) {
      fork.MakeWait(session_.handles.Stream(graph.streams[s]));
    }
  }
  std::map<int64_t, const Event*> inside;  // by event of the program: that of its newest record
  for (size_t i = 0; i < graph.items.size(); ++i) {
    const auto& [id, task] = graph.items[i];
    const aclrtStream stream = session_.handles.Stream(id);
    if (task.work == Work::kRecord) {
      inside[task.event] = &NewEvent(graph);
      inside[task.event]->Record(stream);
    } else if (task.work == Work::kWait) {
      if (inside.count(task.event) != 0) inside[task.event]->MakeWait(stream);
    } else if (task.work != Work::kReset) {
      session_.Issue(id, task, AclSession::Workspaces::kOwn);
      if (!session_.compare) continue;
      for (size_t t = 0; t < task.takes.size(); ++t) {
        IssueTake(session_.device.work(), task.takes[t], graph.takes[i][t], stream);
      }
    }
  }
  for (size_t s = 1; s < graph.streams.size(); ++s) {
    Order(NewEvent(graph), graph.streams[s], origin);
  }
}

void GraphSink::Execute(Graph& graph) {
  const int64_t origin = graph.streams.front();
  // The latest execution may still use the pinned memory, which is filled again next.
  if (graph.epoch == session_.in_flight.Epoch(origin)) session_.WaitFor(origin);
  FillUploads(graph, items_);
  EagerSink eager(session_);
  for (const AclTask* wait : graph.waits_outside) eager.Submit(origin, *wait);
  for (size_t s = 1; s < graph.streams.size(); ++s) {
    Order(graph.before[s - 1], graph.streams[s], origin);
  }
  graph.model.Execute(session_.handles.Stream(origin));
  ++executed_;
  for (size_t s = 1; s < graph.streams.size(); ++s) {
    Order(graph.after[s - 1], origin, graph.streams[s]);
  }
  for (const auto& [event, item] : graph.events_after) eager.Submit(item->stream, item->task);
  graph.epoch = session_.in_flight.Epoch(origin);
  if (!session_.compare) return;
  for (size_t i = 0; i < items_.size(); ++i) {
    const std::vector<Take>& takes = items_[i].task.takes;
    for (size_t t = 0; t < takes.size(); ++t) {
      session_.in_flight.CheckLater(origin, takes[t], graph.takes[i][t]);
    }
  }
  if (session_.MayWait()) session_.WaitFor(origin);
}

void GraphSink::Describe(CaptureReport& report, AclReport& counts) const {
  report.regions = regions_;
  report.capture_ns = capture_ns_;
  counts.graphs_made = made_;
  counts.graphs_executed = executed_;
}

}  // namespace acltape::replayer::acl_level
