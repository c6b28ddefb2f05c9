#include "replayer/probe/probe.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "analyzer/lint/capture_facts.h"
#include "replayer/device/patience.h"
#include "replayer/probe/contents.h"
#include "replayer/probe/issue.h"
#include "replayer/probe/objects.h"
#include "replayer/probe/turn.h"

namespace acltape::replayer::probe {
namespace {

using analyzer::Work;
using analyzer::lint::Edit;
using analyzer::lint::Stretch;
using K = analyzer::AclCallKind;

constexpr char kStandsStill[] =
    "the device stood still: its work waits for an event or a value that no call of the region "
    "sets";

class Prober {
 public:
  Prober(const Work& work, const Stretch& stretch, const ProbeOptions& options)
      : work_(work),
        stretch_(stretch),
        options_(options),
        device_(options.device_lib),
        objects_(device_, work, stretch),
        issuer_(device_, work, objects_) {
    report_.device = device_.description();
    Prepare();
  }

  ProbeReport Run() {
    for (const Edit& edit : options_.edits) {
      if (edit.kind != Edit::Kind::kHoist) continue;
      const int64_t call = work_.Find(edit.call_id);
      if (call >= 0) Issue(static_cast<size_t>(call));
    }
    if (Begin()) {
      for (size_t i = stretch_.first; i < stretch_.end; ++i) IssueEdited(i);
      End();
    }
    const bool whole = report_.captured() && report_.stopped.empty();
    if (whole && options_.executions > 0) Execute();
    return std::move(report_);
  }

  // Captures until the device refuses.
  BudgetProbe RunBudget(int64_t most) {
    BudgetProbe budget;
    budget.streams = objects_.stream_count();
    while (budget.graphs < most && !IsLate()) {
      report_ = {};
      const bool begun = Begin();
      if (begun) {
        for (size_t i = stretch_.first; i < stretch_.end; ++i) IssueEdited(i);
        End();
      }
      budget.code = !begun                    ? report_.begin_code
                    : report_.refused.empty() ? report_.end_code
                                              : report_.refused.front().code;
      if (budget.code != 0) return budget;
      ++budget.graphs;
    }
    return budget;
  }

 private:
  // Makes what was there when the capture began: streams, events that had been recorded, exchanged
  // modes.
  void Prepare() {
    const analyzer::lint::Handles handles(work_);
    objects_.Stream(stretch_.stream);
    for (size_t i = stretch_.first; i < stretch_.end; ++i) {
      const analyzer::WorkForm& form = work_.form(i);
      const K kind = form.acl_kind();
      const int64_t stream = work_.calls[i].stream_id;
      if (stream != 0 && kind != K::kStreamCreate) objects_.Stream(stream);
      if (kind == K::kExecute) objects_.Model(form.Integer(form.function->object));
      const bool about_event = kind == K::kEventWait || kind == K::kEventSync ||
                               kind == K::kEventQuery || kind == K::kEventTime ||
                               kind == K::kEventRecord || kind == K::kEventReset;
      if (about_event) {
        const int64_t event = form.Integer(form.function->object);
        PrepareEvent(handles, event);
        const bool outside = analyzer::IsExternalFlag(form.Integer(form.function->detail)) ||
                             handles.IsExternalEvent(event);
        if (kind == K::kEventWait && outside) external_events_.insert(event);
        if (kind == K::kEventTime && form.function->detail >= 0) {
          PrepareEvent(handles, form.Integer(form.function->detail));
        }
      }
      for (const storage::Argument& argument : ArgumentsOf(work_, i)) {
        for (const storage::TensorRef& tensor : argument.tensors) {
          if (tensor.buffer_id != 0) objects_.AddressOf(tensor.buffer_id, 0);
        }
      }
    }
    for (const analyzer::lint::ModeExchange& exchange : analyzer::lint::FindExchanges(work_)) {
      if (exchange.call < stretch_.first) Issue(exchange.call);
    }
    for (const Edit& edit : options_.edits) {
      if (edit.kind == Edit::Kind::kWait) edit_events_.emplace_back(device_);
    }
    report_.refused.clear();
    report_.issued = 0;
    WaitOrStop([&](int limit_ms) { return device_.work().WaitForDevice(limit_ms); });
  }

  bool IsLate() const {
    return options_.deadline && std::chrono::steady_clock::now() >= *options_.deadline;
  }

  // The rest of the probe is left out. What stands still on the device is dropped.
  void StopStandingStill() {
    report_.stopped = kStandsStill;
    constexpr int kLimitMs = 100;
    device_.work().EndDevice(kLimitMs);
  }

  // False if the device stood still; throws if the wait failed otherwise.
  bool WaitOrStop(const std::function<CallResult(int limit_ms)>& wait) {
    const std::optional<CallResult> result = WaitInPieces(ProbePatience(device_.library()), wait);
    if (result) {
      result->Check();
      return true;
    }
    StopStandingStill();
    return false;
  }

  void PrepareEvent(const analyzer::lint::Handles& handles, int64_t id) {
    if (!prepared_events_.insert(id).second) return;
    const Event& event = objects_.EventOf(id);
    const int64_t record = handles.LastOutsideRecord(id, stretch_.first);
    if (record >= 0) event.Record(objects_.Stream(work_.calls[record].stream_id));
  }

  Turn& ThreadOf(int32_t thread) {
    std::unique_ptr<Turn>& turn = threads_[thread];
    if (turn == nullptr) {
      turn = std::make_unique<Turn>();
      turn->Run([&] { device_.Check(device_.api().aclrtSetDevice(0), "aclrtSetDevice"); });
    }
    return *turn;
  }

  std::string Message() const {
    const auto recent = device_.api().aclGetRecentErrMsg;
    const char* message = recent == nullptr ? nullptr : recent();
    return message == nullptr ? "" : message;
  }

  bool Begin() {
    ThreadOf(stretch_.thread).Run([&] {
      report_.begin_code = objects_.BeginCapture(objects_.Stream(stretch_.stream),
                                                 static_cast<aclmdlRICaptureMode>(options_.mode));
      if (report_.begin_code != 0) report_.end_message = Message();
    });
    if (report_.begin_code != 0) return false;
    AfterCall(0, stretch_.stream);
    return true;
  }

  void End() {
    BeforeCall(0, stretch_.stream);
    const int32_t thread =
        stretch_.end_call >= 0 ? work_.calls[stretch_.end_call].thread : stretch_.thread;
    ThreadOf(thread).Run([&] {
      report_.end_code = objects_.EndCapture(objects_.Stream(stretch_.stream));
      if (report_.end_code != 0) report_.end_message = Message();
    });
  }

  bool IsHoisted(int64_t call_id) const {
    return std::any_of(options_.edits.begin(), options_.edits.end(), [&](const Edit& edit) {
      return edit.kind == Edit::Kind::kHoist && edit.call_id == call_id;
    });
  }

  void IssueEdited(size_t i) {
    const analyzer::WorkCall& call = work_.calls[i];
    if (IsHoisted(call.call_id)) return;
    BeforeCall(call.call_id, call.stream_id);
    Issue(i);
    AfterCall(call.call_id, call.stream_id);
  }

  void Issue(size_t i) {
    const int64_t call_id = work_.calls[i].call_id;
    const bool pin = std::any_of(
        options_.edits.begin(), options_.edits.end(),
        [&](const Edit& edit) { return edit.kind == Edit::Kind::kPin && edit.call_id == call_id; });
    ThreadOf(work_.calls[i].thread).Run([&] {
      if (!report_.stopped.empty()) {
        report_.left_out.push_back(call_id);
        return;
      }
      const std::optional<int32_t> code = issuer_.Issue(i, pin);
      if (issuer_.stood_still()) StopStandingStill();
      if (!code) {
        report_.left_out.push_back(call_id);
        return;
      }
      ++report_.issued;
      if (*code != 0) report_.refused.push_back({call_id, *code, Message()});
    });
  }

  // The events of wait edits.
  void AfterCall(int64_t call_id, int64_t stream) {
    EditEvents(
        [&](const Edit& edit) { return edit.record_after == call_id; },
        [&](aclrtEvent event) { return device_.work().Record(event, objects_.Stream(stream)); });
  }
  void BeforeCall(int64_t call_id, int64_t stream) {
    EditEvents(
        [&](const Edit& edit) { return edit.wait_before == call_id; },
        [&](aclrtEvent event) { return device_.work().Wait(event, objects_.Stream(stream)); });
  }
  template <typename Wanted, typename Use>
  void EditEvents(const Wanted& wanted, const Use& use) {
    size_t event = 0;
    for (const Edit& edit : options_.edits) {
      if (edit.kind != Edit::Kind::kWait) continue;
      aclrtEvent handle = edit_events_[event++].get();
      if (!wanted(edit)) continue;
      ThreadOf(stretch_.thread).Run([&] {
        const int32_t code = use(handle).code().value_or(0);
        if (code != 0) report_.refused.push_back({0, code, Message()});
      });
    }
  }

  void Execute() {
    const DeviceWork& work = device_.work();
    const std::vector<ProbeObjects::UsedBuffer> buffers = objects_.UsedBuffers();
    const auto before = ContentsBefore(work_, stretch_, buffers, options_.seed);
    std::map<int64_t, std::vector<uint8_t>> first;
    for (int execution = 0; execution < options_.executions; ++execution) {
      if (IsLate()) {
        report_.stopped = "the time for the proof was over";
        return;
      }
      for (const ProbeObjects::UsedBuffer& used : buffers) {
        const std::vector<uint8_t>& bytes = before.at(used.buffer);
        work.Copy(used.data, used.bytes, bytes.data(), bytes.size(),
                  used.host ? ACL_MEMCPY_HOST_TO_HOST : ACL_MEMCPY_HOST_TO_DEVICE, kNow)
            .Check();
      }
      for (const int64_t event : external_events_) {
        objects_.EventOf(event).Record(device_.SideStream(0));
      }
      objects_.captured.back().Execute(device_.stream());
      const bool ended =
          WaitOrStop([&](int limit_ms) { return work.WaitForStream(device_.stream(), limit_ms); });
      if (!ended) return;
      ++report_.executed;
      bool differs = false;
      for (const ProbeObjects::UsedBuffer& used : buffers) {
        std::vector<uint8_t> bytes(used.bytes);
        work.Copy(bytes.data(), bytes.size(), used.data, used.bytes,
                  used.host ? ACL_MEMCPY_HOST_TO_HOST : ACL_MEMCPY_DEVICE_TO_HOST, kNow)
            .Check();
        if (execution == 0) {
          first[used.buffer] = std::move(bytes);
        } else if (bytes != first[used.buffer]) {
          differs = true;
          if (report_.differing_buffer == 0) report_.differing_buffer = used.buffer;
        }
      }
      if (differs) ++report_.differing;
    }
  }

  const Work& work_;
  const Stretch& stretch_;
  const ProbeOptions& options_;
  ProbeReport report_;
  Device device_;
  std::vector<Event> edit_events_;  // by wait edit
  ProbeObjects objects_;
  Issuer issuer_;
  std::set<int64_t> prepared_events_;
  std::set<int64_t> external_events_;                 // those that the graph waits for
  std::map<int32_t, std::unique_ptr<Turn>> threads_;  // by recorded thread
};

}  // namespace

int32_t ProbeReport::CodeOf(int64_t call_id) const {
  for (const ProbedCall& call : refused) {
    if (call.call_id == call_id) return call.code;
  }
  return 0;
}

ProbeReport Probe(const Work& work, const Stretch& stretch, const ProbeOptions& options) {
  return Prober(work, stretch, options).Run();
}

BudgetProbe ProbeBudget(const Work& work, const Stretch& stretch, const ProbeOptions& options,
                        int64_t most) {
  return Prober(work, stretch, options).RunBudget(most);
}

}  // namespace acltape::replayer::probe
