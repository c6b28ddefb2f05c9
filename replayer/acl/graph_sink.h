// Turns the stream work of an ACL program into graphs. The work is cut into runs at the moments at
// which the host takes part, for example when it waits. Each run is captured with its streams in
// parallel, and executed. Runs with the same work at the same addresses execute one graph. They can
// differ only in the bytes that copies bring from the host. Those bytes lie in pinned memory, which
// is filled again before each execution.
//
//   origin   --fork--+--- work ---+--join-->      the stream of the first task
//   others      wait +--- work ---+ record
//
// Before and after the graph, the other streams are ordered with the origin in the same way. So the
// graph starts after their earlier work, and their later work starts after the graph.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "replayer/acl/work_sink.h"

namespace acltape::replayer {

class GraphSink final : public WorkSink {
 public:
  explicit GraphSink(AclSession& session);
  ~GraphSink() override;

  void Submit(int64_t stream, AclTask task) override;
  void Record(int64_t stream, int64_t event) override { Add(stream, Item::Kind::kRecord, event); }
  void Wait(int64_t stream, int64_t event) override { Add(stream, Item::Kind::kWait, event); }
  void Reset(int64_t stream, int64_t event) override { Add(stream, Item::Kind::kReset, event); }
  void Flush() override;

  // Fills the part of the report that is about graphs.
  void Describe(CaptureReport& report, AclReport& counts) const;
  int64_t capture_ns() const { return capture_ns_; }

 private:
  struct Item {
    enum class Kind : uint8_t { kTask, kRecord, kWait, kReset };
    Kind kind = Kind::kTask;
    int64_t stream = 0;
    int64_t event = 0;
    AclTask task;
  };
  struct Graph;

  void Add(int64_t stream, Item::Kind kind, int64_t event);
  std::string KeyOf() const;
  std::unique_ptr<Graph> Make();
  void PlanPinned(Graph& graph) const;
  void FillUploads(Graph& graph, const std::vector<Item>& items) const;
  bool WarmUp(Graph& graph);
  void Capture(Graph& graph);
  void CaptureItems(Graph& graph);
  void IssueCaptured(Graph& graph, size_t at);
  void Execute(Graph& graph);
  void IssueEagerly();
  aclrtEvent NewEvent(Graph& graph) const;
  void Order(aclrtEvent event, int64_t from, int64_t to);

  AclSession& session_;
  std::vector<Item> items_;
  size_t pinned_bytes_ = 0;  // needed by items_
  std::map<std::string, std::unique_ptr<Graph>> graphs_;
  std::vector<RegionReport> regions_;
  int64_t made_ = 0;
  int64_t executed_ = 0;
  int64_t capture_ns_ = 0;
};

}  // namespace acltape::replayer
