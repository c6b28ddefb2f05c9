// Turns the stream work of an ACL program into graphs. The work is cut into runs at the moments at
// which the host takes part, for example when it waits, and at collectives. Each run is captured
// with its streams in parallel, and executed. Runs with the same work at the same addresses execute
// one graph. They can differ only in the bytes that copies bring from the host. Those bytes lie in
// pinned memory, which is filled again before each execution.
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

#include "replayer/acl_level/work_sink.h"

namespace acltape::replayer::acl_level {

class GraphSink final : public WorkSink {
 public:
  explicit GraphSink(AclSession& session);
  ~GraphSink() override;

  void Submit(int64_t stream, AclTask task) override;
  void Flush() override;

  // Fills the part of the report that is about graphs.
  void Describe(CaptureReport& report, AclReport& counts) const;
  int64_t capture_ns() const { return capture_ns_; }

 private:
  struct Item {
    int64_t stream = 0;
    AclTask task;
  };
  struct Graph;

  std::string KeyOf() const;
  std::unique_ptr<Graph> Make();
  void PlanPinned(Graph& graph) const;
  void FillUploads(Graph& graph, const std::vector<Item>& items) const;
  bool WarmUp(Graph& graph);
  void Capture(Graph& graph);
  void CaptureItems(Graph& graph);
  void Execute(Graph& graph);
  void IssueEagerly();
  Event& NewEvent(Graph& graph) const;
  void Order(const Event& event, int64_t from, int64_t to);

  AclSession& session_;
  std::vector<Item> items_;
  size_t pinned_bytes_ = 0;  // needed by items_
  std::map<std::string, std::unique_ptr<Graph>> graphs_;
  std::vector<RegionReport> regions_;
  int64_t made_ = 0;
  int64_t executed_ = 0;
  int64_t capture_ns_ = 0;
};

}  // namespace acltape::replayer::acl_level
