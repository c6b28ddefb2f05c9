// Makes graphs of an ACL program's stream work: each run of it between two moments at which the
// host matters is captured, with its streams in parallel, and executed. Equal runs (same work at
// the same addresses) execute one graph; what differs between them are bytes that copies bring,
// which lie in pinned memory that is filled again before each execution.
//
//   origin   --fork--+--- work ---+--join-->      the stream of the first task
//   others      wait +--- work ---+ record
//
// Around the graph the other streams are joined to the origin in the same way, so that it starts
// after their earlier work and their later work starts after it.
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

  // Fills the rows and figures of the report.
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
  size_t pinned_bytes_ = 0;  // that items_ will need
  std::map<std::string, std::unique_ptr<Graph>> graphs_;
  std::vector<RegionReport> regions_;
  int64_t made_ = 0;
  int64_t executed_ = 0;
  int64_t capture_ns_ = 0;
};

}  // namespace acltape::replayer
