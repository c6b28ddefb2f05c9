#include "analyzer/graph/order.h"

#include <map>
#include <unordered_map>
#include <utility>

#include "analyzer/calls/acl_uses.h"

namespace acltape::analyzer::graph {
namespace {

using K = AclCallKind;

// True if the host puts the call on a stream and does not wait for it.
bool IsStreamWork(const WorkForm& form) {
  switch (form.acl_kind()) {
    case K::kEventRecord:
    case K::kEventWait:
    case K::kEventReset:
    case K::kNotifyRecord:
    case K::kNotifyWait:
    case K::kExecute:
    case K::kHostFunction:
      return true;
    default:
      return IsDeviceWork(form.acl_kind()) && !WaitsOnHost(form.acl_kind());
  }
}

class OrderFinder {
 public:
  explicit OrderFinder(const Work& work) : work_(work) {}

  std::vector<OrderEdge> Find(size_t first, size_t end) {
    for (size_t call = first; call < end; ++call) {
      call_ = static_cast<uint32_t>(call);
      if (work_.dialect != Dialect::kAcl) {
        AddLeaf();
      } else if (work_.calls[call].status == 0) {
        AddAclCall();
      }
    }
    return std::move(edges_);
  }

 private:
  void Add(int64_t source, OrderKind kind) {
    if (source >= 0) edges_.push_back({static_cast<uint32_t>(source), call_, kind});
  }

  void AddLeaf() {
    const WorkForm& form = work_.form(call_);
    if (!form.active()) return;
    Add(std::exchange(host_read_, -1), OrderKind::kHost);
    if (form.kind == LeafKind::kHostRead) host_read_ = call_;
  }

  void AddAclCall() {
    const WorkForm& form = work_.form(call_);
    const WorkCall& call = work_.calls[call_];
    if (IsStreamWork(form)) {
      const auto stream = std::make_pair(call.stream_id, call.model_id);
      const auto [last, first_of_stream] = last_of_stream_.try_emplace(stream, call_);
      if (!first_of_stream) Add(std::exchange(last->second, call_), OrderKind::kStream);
      if (call.model_id == 0) AddHostWait(call);
      const int64_t object = form.Integer(form.function->object);
      if (form.acl_kind() == K::kEventRecord) last_record_[object] = call_;
      if (form.acl_kind() == K::kEventWait) AddWait(last_record_, object);
      if (form.acl_kind() == K::kNotifyRecord) last_notify_[object] = call_;
      if (form.acl_kind() == K::kNotifyWait) AddWait(last_notify_, object);
      if (call.model_id == 0 && IsPageableCopy(*form.function, *form.arguments)) {
        last_wait_[call.thread] = call_;
      }
    } else if (WaitsOnHost(form.acl_kind()) && Ended(form)) {
      switch (form.acl_kind()) {
        case K::kEventSync:
        case K::kEventQuery:
        case K::kEventTime: {
          const auto record = last_record_.find(form.Integer(form.function->object));
          if (record != last_record_.end()) Add(record->second, OrderKind::kHost);
          break;
        }
        case K::kDeviceSync:
          for (const auto& [stream, last] : last_of_stream_) {
            if (stream.second == 0) Add(last, OrderKind::kHost);
          }
          break;
        case K::kStreamSync:
        case K::kStreamQuery:
        case K::kStreamDestroy: {
          const auto last = last_of_stream_.find({call.stream_id, 0});
          if (last != last_of_stream_.end()) Add(last->second, OrderKind::kHost);
          break;
        }
        // The host waits for this copy or fill, so it is not work of a stream.
        default:
          AddHostWait(call);
      }
      last_wait_[call.thread] = call_;
    }
  }

  using Records = std::unordered_map<int64_t, uint32_t>;

  void AddWait(const Records& records, int64_t object) {
    const auto record = records.find(object);
    if (record != records.end()) Add(record->second, OrderKind::kEvent);
  }

  // True if the call waits in any case, or if it is a query that found the work ended.
  static bool Ended(const WorkForm& form) {
    const bool query = form.acl_kind() == K::kStreamQuery || form.acl_kind() == K::kEventQuery;
    return !query || form.Integer(form.function->detail) == form.function->done;
  }

  // Adds an edge from the thread's last wait to the first work that the thread puts on each stream
  // after it.
  void AddHostWait(const WorkCall& call) {
    const auto wait = last_wait_.find(call.thread);
    if (wait == last_wait_.end()) return;
    const auto [seen, first] = seen_wait_.try_emplace({call.thread, call.stream_id}, -1);
    if (seen->second == static_cast<int64_t>(wait->second)) return;
    seen->second = wait->second;
    Add(wait->second, OrderKind::kHost);
  }

  const Work& work_;
  std::vector<OrderEdge> edges_;
  uint32_t call_ = 0;
  int64_t host_read_ = -1;
  std::map<std::pair<int64_t, int64_t>, uint32_t> last_of_stream_;  // by stream and model
  Records last_record_;                                             // by event
  Records last_notify_;                                             // by notify
  std::unordered_map<int32_t, uint32_t> last_wait_;                 // by thread
  std::map<std::pair<int32_t, int64_t>, int64_t> seen_wait_;        // by thread and stream
};

}  // namespace

std::string_view OrderKindName(OrderKind kind) {
  constexpr std::string_view kNames[] = {"stream", "event", "host"};
  return kNames[static_cast<size_t>(kind)];
}

std::vector<OrderEdge> FindOrder(const Work& work, size_t first, size_t end) {
  return OrderFinder(work).Find(first, end);
}

}  // namespace acltape::analyzer::graph
