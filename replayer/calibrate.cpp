#include "replayer/calibrate.h"

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_set>

#include "analyzer/prediction/resource.h"
#include "replayer/acl/acl_replay.h"
#include "replayer/eager.h"
#include "replayer/memory_plan.h"
#include "replayer/session.h"
#include "replayer/statistics.h"
#include "replayer/step_graph_plan.h"
#include "storage/results.h"

namespace acltape::replayer {
namespace {

constexpr int kMostCalls = 8;  // issued for one sample, as far as they take kSampleNs
constexpr double kSampleNs = 200e3;
constexpr int kTasks = 64;  // of the graphs that measure copies, records and waits
constexpr size_t kLargeCopy = size_t{1} << 20;
constexpr size_t kSmallCopy = size_t{1} << 14;
constexpr int kMostCopies = 512;  // beside calls
constexpr int kOverlaps = 4;      // signatures of a resource whose overlap is measured
// Equal work on two streams saturates when it takes longer than this share of the time on one.
constexpr double kSaturated = 0.75;
// Unequal work overlaps when two streams hide more than this share of the shorter one.
constexpr double kHidden = 0.5;

double Median(const std::vector<double>& samples) { return MedianOf(samples, 0.95).median; }

// A second stream, with workspace of its own.
class SideStream {
 public:
  explicit SideStream(const Device& device) : device_(device) {
    device_.Check(device_.api().aclrtCreateStream(&stream_), "aclrtCreateStream");
  }
  ~SideStream() {
    device_.api().aclrtSynchronizeStream(stream_);
    device_.api().aclrtDestroyStream(stream_);
  }
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;
  aclrtStream get() const { return stream_; }

 private:
  const Device& device_;
  aclrtStream stream_ = nullptr;
};

// Events that order streams; no time stamps (rules EVT-03, EVT-22).
class SyncEvents {
 public:
  SyncEvents(const Device& device, size_t count) : device_(device), events_(count, nullptr) {
    for (aclrtEvent& event : events_) {
      device_.Check(device_.api().aclrtCreateEventExWithFlag(&event, 0x1),
                    "aclrtCreateEventExWithFlag");
    }
  }
  ~SyncEvents() {
    for (const aclrtEvent event : events_) {
      if (event != nullptr) device_.api().aclrtDestroyEvent(event);
    }
  }
  SyncEvents(const SyncEvents&) = delete;
  SyncEvents& operator=(const SyncEvents&) = delete;

  void Record(size_t event, aclrtStream stream) const {
    device_.Check(device_.api().aclrtRecordEvent(events_[event], stream), "aclrtRecordEvent");
  }
  void Wait(size_t event, aclrtStream stream) const {
    device_.Check(device_.api().aclrtStreamWaitEvent(stream, events_[event]),
                  "aclrtStreamWaitEvent");
  }

 private:
  const Device& device_;
  std::vector<aclrtEvent> events_;
};

// What `issue` puts on the device's stream, captured.
class Graph {
 public:
  Graph(Device& device, const std::function<void()>& issue) : device_(device) {
    const acl::Api& api = device_.api();
    const int64_t begin = NowNs();
    device_.Check(api.aclmdlRICaptureBegin(device_.stream(), ACL_MODEL_RI_CAPTURE_MODE_RELAXED),
                  "aclmdlRICaptureBegin");
    try {
      issue();
    } catch (...) {
      api.aclmdlRICaptureEnd(device_.stream(), &graph_);
      Destroy();
      throw;
    }
    device_.Check(api.aclmdlRICaptureEnd(device_.stream(), &graph_), "aclmdlRICaptureEnd");
    capture_ns_ = static_cast<double>(NowNs() - begin);
  }
  ~Graph() { Destroy(); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Time between two events around an execution.
  double DeviceTime(double* host_ns = nullptr) const {
    Event begin(device_);
    Event end(device_);
    device_.Synchronize();
    begin.Record();
    const int64_t issued = NowNs();
    device_.Check(device_.api().aclmdlRIExecuteAsync(graph_, device_.stream()),
                  "aclmdlRIExecuteAsync");
    if (host_ns != nullptr) *host_ns = static_cast<double>(NowNs() - issued);
    end.Record();
    device_.Synchronize();
    return end.NanosecondsSince(begin);
  }
  double MedianDeviceTime(int repetitions) const {
    std::vector<double> samples;
    DeviceTime();  // the first execution may set things up
    for (int i = 0; i < repetitions; ++i) samples.push_back(DeviceTime());
    return Median(samples);
  }
  double capture_ns() const { return capture_ns_; }

 private:
  void Destroy() {
    if (graph_ == nullptr) return;
    device_.api().aclrtSynchronizeStream(device_.stream());
    device_.api().aclmdlRIDestroy(graph_);
  }

  Device& device_;
  aclmdlRI graph_ = nullptr;
  double capture_ns_ = 0;
};

class Calibration {
 public:
  Calibration(const storage::Reader& trace, const CalibrateOptions& options,
              storage::Results* results)
      : options_(options),
        results_(results),
        session_(trace, options.data, options.device_lib, options.seed, results),
        pinned_(session_.device(), Block::Kind::kPinned, kLargeCopy),
        memory_(session_.device(), Block::Kind::kDevice, kLargeCopy) {}

  CalibrationReport Run() {
    session_.WithLowering([&](Execution& execution) {
      report_ = CalibrationReport();
      report_.costs.device = session_.device().description();
      samples_.clear();
      overlaps_measured_ = {};
      equal_work_ = {};
      with_copies_ = {};
      hideable_ns_ = 0;
      MeasureDevice();
      MeasureStep(execution);
    });
    WriteRun();
    return std::move(report_);
  }

 private:
  struct CallSample {
    int64_t call_id = 0;
    int64_t repetition = 0;
    double host_ns = 0;
    double device_ns = 0;
  };

  Device& device() { return session_.device(); }
  double Differ(double longer, double shorter, int tasks) const {
    return std::max(0.0, (longer - shorter) / tasks);
  }

  void MeasureDevice() {
    analyzer::DeviceCosts& costs = report_.costs;
    const int repetitions = options_.repetitions;
    const auto copy = [&](size_t bytes, int count) {
      return [&, bytes, count] {
        for (int i = 0; i < count; ++i) device().Upload(memory_.data(), pinned_.data(), bytes);
      };
    };
    const Graph one(device(), copy(16, 1));
    const Graph many(device(), copy(16, 1 + kTasks));
    const Graph large(device(), copy(kLargeCopy, kMostCalls));
    const double one_ns = one.MedianDeviceTime(repetitions);
    costs.copy_device_ns = Differ(many.MedianDeviceTime(repetitions), one_ns, kTasks);
    costs.graph_device_ns = std::max(0.0, one_ns - costs.copy_device_ns);
    const double large_ns =
        std::max(0.0, large.MedianDeviceTime(repetitions) - costs.graph_device_ns) / kMostCalls;
    costs.copy_byte_ns = std::max(0.0, large_ns - costs.copy_device_ns) / kLargeCopy;

    std::vector<double> graph_host, copy_host, read, record_host, wait_host;
    const SideStream side(device());
    const SyncEvents events(device(), 2 * kTasks);
    for (int i = 0; i < repetitions; ++i) {
      one.DeviceTime(&graph_host.emplace_back());
      copy_host.push_back(IssueTime(copy(16, kTasks)) / kTasks);
      device().Synchronize();
      const int64_t begin = NowNs();
      device().Download(pinned_.data(), memory_.data(), 16);
      device().Synchronize();
      read.push_back(static_cast<double>(NowNs() - begin));
      record_host.push_back(IssueTime([&] {
                              for (size_t e = 0; e < kTasks; ++e) {
                                events.Record(e, device().stream());
                              }
                            }) /
                            kTasks);
      wait_host.push_back(IssueTime([&] {
                            for (size_t e = 0; e < kTasks; ++e) events.Wait(e, side.get());
                          }) /
                          kTasks);
      device().Check(device().api().aclrtSynchronizeStream(side.get()), "aclrtSynchronizeStream");
    }
    costs.graph_host_ns = Median(graph_host);
    costs.copy_host_ns = Median(copy_host);
    costs.host_read_ns = std::max(0.0, Median(read) - costs.copy_host_ns - costs.copy_device_ns);
    costs.record_host_ns = Median(record_host);
    costs.wait_host_ns = Median(wait_host);
    costs.capture_task_ns = std::max(0.0, many.capture_ns() / (1 + kTasks) - costs.copy_host_ns);

    const SyncEvents recorded(device(), 1 + kTasks);
    costs.streams.record_ns =
        DeviceTimePerTask([&](size_t e) { recorded.Record(e, device().stream()); });
    // To the other stream and back.
    const SyncEvents there(device(), 1 + kTasks);
    const SyncEvents back(device(), 1 + kTasks);
    const double round_trip_ns = DeviceTimePerTask([&](size_t e) {
      there.Record(e, device().stream());
      there.Wait(e, side.get());
      back.Record(e, side.get());
      back.Wait(e, device().stream());
    });
    costs.streams.wait_ns = std::max(0.0, round_trip_ns / 2 - costs.streams.record_ns);
  }

  // What each further task adds to a graph. `issue` gets the number of the task.
  double DeviceTimePerTask(const std::function<void(size_t)>& issue) {
    const auto graph_of = [&](size_t tasks) {
      const Graph graph(device(), [&] {
        for (size_t task = 0; task < tasks; ++task) issue(task);
      });
      return graph.MedianDeviceTime(options_.repetitions);
    };
    return Differ(graph_of(1 + kTasks), graph_of(1), kTasks);
  }

  // The host's time to issue; the stream is idle before.
  double IssueTime(const std::function<void()>& issue) {
    device().Synchronize();
    const int64_t begin = NowNs();
    issue();
    return static_cast<double>(NowNs() - begin);
  }

  void MeasureStep(Execution& execution) {
    const analyzer::Program& program = session_.program();
    int64_t first = 0;
    auto end = static_cast<int64_t>(program.leaves.size());
    if (!session_.classes().classes.empty()) {
      const analyzer::StepRange& step = program.steps[session_.classes().Largest().step];
      first = step.first_leaf;
      end = step.end_leaf;
    }
    const HomeMemory homes(device(), program, EagerNeeds(program));
    EagerExecution eager(execution, homes);
    eager.Bind(0, end);
    eager.Run(0, first, nullptr, nullptr);
    Workspace workspace(device());
    Workspace side_workspace(device());
    const SideStream side(device());
    std::unordered_set<int64_t> measured;
    for (int64_t i = first; i < end; ++i) {
      eager.Run(i, i + 1, nullptr, nullptr);
      if (options_.progress) options_.progress(i - first + 1, end - first);
      const analyzer::Leaf& leaf = program.leaves[i];
      if (leaf.kind != analyzer::LeafKind::kKernel || session_.lowered().IsSubstituted(i)) continue;
      if (!measured.insert(leaf.call.signature_id).second) continue;
      const BoundLeaf bound =
          execution.Bind(i, [&](int64_t buffer_id, const storage::Layout& layout) {
            return homes.Find(buffer_id) + layout.byte_offset;
          });
      if (bound.calls.empty()) continue;
      const Written written(device(), program.uses[i].writes, bound);
      try {
        MeasureLeaf(leaf, bound, written, execution, workspace, side_workspace, side.get());
      } catch (const Error& error) {
        Note note;
        note.rule = "CALIBRATE-CAPTURE";
        note.severity = "notice";
        note.call_id = leaf.call.call_id;
        note.message = leaf.Name() +
                       " was not measured, because the device does not capture it: " + error.what();
        report_.notes.push_back(note);
      }
      written.Restore();
      device().Synchronize();
    }
    report_.signatures = static_cast<int64_t>(report_.costs.by_signature.size());
    for (size_t r = 0; r < equal_work_.size(); ++r) {
      const Overlap& work = equal_work_[r];
      if (work.one_ns > 0) {
        report_.costs.streams.saturates[r] = work.two_ns > kSaturated * work.one_ns;
      }
    }
    if (hideable_ns_ > 0) {
      const double hidden_ns = with_copies_.one_ns - with_copies_.two_ns;
      report_.costs.streams.overlaps = hidden_ns > kHidden * hideable_ns_;
    }
  }

  // A copy of what a leaf has written.
  class Written {
   public:
    Written(Device& device, const std::vector<analyzer::TensorUse>& writes, const BoundLeaf& bound)
        : device_(device) {
      int64_t total = 0;
      for (const analyzer::TensorUse& use : writes) {
        total += AlignUp(use.layout->EndByte() - use.layout->FirstByte());
      }
      block_ = Block(device, Block::Kind::kDevice, std::max<int64_t>(total, kDeviceAlignment));
      uint8_t* next = block_.data();
      for (size_t w = 0; w < writes.size(); ++w) {
        const int64_t bytes = writes[w].layout->EndByte() - writes[w].layout->FirstByte();
        if (bytes <= 0) continue;
        copies_.push_back({next, bound.writes[w], static_cast<size_t>(bytes)});
        device.Copy(next, bound.writes[w], static_cast<size_t>(bytes));
        next += AlignUp(bytes);
      }
    }
    void Restore() const {
      for (const DeviceCopy& copy : copies_) {
        device_.Copy(const_cast<uint8_t*>(copy.from), copy.to, copy.bytes);
      }
    }

   private:
    Device& device_;
    std::vector<DeviceCopy> copies_;
    Block block_;
  };

  void MeasureLeaf(const analyzer::Leaf& leaf, const BoundLeaf& bound, const Written& written,
                   Execution& execution, Workspace& workspace, Workspace& side_workspace,
                   aclrtStream side) {
    const auto issue = [&](aclrtStream stream, Workspace& scratch, int count) {
      const BoundCall::Reserve reserve = [&](uint64_t bytes) { return scratch.Reserve(bytes); };
      for (int i = 0; i < count; ++i) {
        for (const BoundCall& call : bound.calls) call.Run(device(), stream, reserve);
      }
    };
    // Both workspaces have their size before anything is captured.
    execution.Launch(bound, workspace, device().stream());
    execution.Launch(bound, side_workspace, device().stream());
    const Graph one(device(), [&] { issue(device().stream(), workspace, 1); });
    const int calls =
        std::clamp(static_cast<int>(kSampleNs / std::max(one.DeviceTime(), 1.0)), 1, kMostCalls);
    const Graph many(device(), [&] { issue(device().stream(), workspace, 1 + calls); });
    std::vector<double> host, on_device;
    for (int repetition = -1; repetition < options_.repetitions; ++repetition) {
      written.Restore();
      const double host_ns = IssueTime([&] { issue(device().stream(), workspace, calls); }) / calls;
      written.Restore();
      const double one_ns = one.DeviceTime();
      written.Restore();
      const double device_ns = Differ(many.DeviceTime(), one_ns, calls);
      if (repetition < 0) continue;  // warm-up
      host.push_back(host_ns);
      on_device.push_back(device_ns);
      samples_.push_back({leaf.call.call_id, repetition, host_ns, device_ns});
    }
    const analyzer::CallCost cost = {Median(host), Median(on_device)};
    report_.costs.by_signature[leaf.call.signature_id] = cost;

    const auto resource = static_cast<size_t>(analyzer::ResourceOf(leaf.Name()));
    if (overlaps_measured_[resource]++ >= kOverlaps) return;
    const auto here = [&] { issue(device().stream(), workspace, calls); };
    const auto beside = [&] { issue(side, side_workspace, calls); };
    equal_work_[resource] += MeasureOverlap(written, side, here, here, beside);
    // Copies that take about as long as the calls.
    const double calls_ns = calls * cost.device_ns;
    const size_t bytes = calls_ns > kSampleNs / 2 ? kLargeCopy : kSmallCopy;
    const double copy_ns =
        std::max(1.0, report_.costs.copy_device_ns +
                          static_cast<double>(bytes) * report_.costs.copy_byte_ns);
    const int copies = std::clamp(static_cast<int>(calls_ns / copy_ns), 1, kMostCopies);
    const auto copy = [&](aclrtStream stream) {
      for (int i = 0; i < copies; ++i) {
        device().Check(device().api().aclrtMemcpyAsync(memory_.data(), bytes, pinned_.data(), bytes,
                                                       ACL_MEMCPY_HOST_TO_DEVICE, stream),
                       "aclrtMemcpyAsync to the device");
      }
    };
    with_copies_ += MeasureOverlap(
        written, side, here, [&] { copy(device().stream()); }, [&] { copy(side); });
    hideable_ns_ += std::min(calls_ns, copies * copy_ns);
  }

  // The time of the same work on one stream and on two.
  struct Overlap {
    double one_ns = 0;
    double two_ns = 0;
    Overlap& operator+=(const Overlap& other) {
      one_ns += other.one_ns;
      two_ns += other.two_ns;
      return *this;
    }
  };

  // `behind` and `beside` issue the same work, on the device's stream and on `side`. The least of
  // several times each: what else the machine does only adds to them.
  Overlap MeasureOverlap(const Written& written, aclrtStream side,
                         const std::function<void()>& first, const std::function<void()>& behind,
                         const std::function<void()>& beside) {
    const SyncEvents events(device(), 2);
    const Graph one(device(), [&] {
      first();
      behind();
    });
    const Graph two(device(), [&] {
      events.Record(0, device().stream());
      events.Wait(0, side);
      first();
      beside();
      events.Record(1, side);
      events.Wait(1, device().stream());
    });
    Overlap least;
    for (int repetition = 0; repetition < options_.repetitions; ++repetition) {
      written.Restore();
      const double one_ns = one.DeviceTime();
      written.Restore();
      const double two_ns = two.DeviceTime();
      least.one_ns = repetition == 0 ? one_ns : std::min(least.one_ns, one_ns);
      least.two_ns = repetition == 0 ? two_ns : std::min(least.two_ns, two_ns);
    }
    return least;
  }

  void WriteRun() {
    if (results_ == nullptr) return;
    storage::Run run;
    run.mode = "calibrate";
    run.device = report_.costs.device;
    run.options = analyzer::ToJson(report_.costs);
    report_.costs.run_id = results_->AddRun(run);
    for (const CallSample& measured : samples_) {
      storage::Sample sample;
      sample.run_id = report_.costs.run_id;
      sample.repetition = measured.repetition;
      sample.call_id = measured.call_id;
      sample.host_ns = static_cast<int64_t>(measured.host_ns);
      sample.device_ns = static_cast<int64_t>(measured.device_ns);
      results_->AddSample(sample);
    }
    results_->FinishRun(report_.costs.run_id, 0);
    results_->Commit();
  }

  const CalibrateOptions& options_;
  storage::Results* results_;
  Session session_;
  CalibrationReport report_;
  std::vector<CallSample> samples_;
  std::array<int, 4> overlaps_measured_ = {};  // by Resource: signatures
  std::array<Overlap, 4> equal_work_;          // by Resource: calls beside the same calls
  Overlap with_copies_;                        // calls beside copies
  double hideable_ns_ = 0;                     // of those the shorter side
  Block pinned_;
  Block memory_;
};

}  // namespace

CalibrationReport Calibrate(const storage::Reader& trace, const CalibrateOptions& options,
                            storage::Results* results) {
  if (IsAclTrace(trace)) {
    throw Error(ErrorKind::kTrace,
                trace.path() +
                    " holds a program of the ACL level, whose operators calibration does not "
                    "measure; record the program with --level aten");
  }
  return Calibration(trace, options, results).Run();
}

}  // namespace acltape::replayer
