#include "replayer/calibrate.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <unordered_set>
#include <utility>

#include "analyzer/acl/acl_program.h"
#include "analyzer/prediction/resource.h"
#include "base/median.h"
#include "replayer/device/memory_plan.h"
#include "replayer/device_costs.h"
#include "replayer/engine/eager.h"
#include "replayer/engine/step_graph_plan.h"
#include "replayer/session.h"
#include "replayer/statistics.h"
#include "replayer/timed_graph.h"
#include "storage/results.h"

namespace acltape::replayer {
namespace {

constexpr int kTimedEvents = 64;
constexpr size_t kSmallCopy = size_t{1} << 14;
// Number of calls that are issued at once after work that keeps the stream busy. It is well below
// the depth of a queue.
constexpr size_t kMostCallsAhead = 256;
constexpr double kFirstGuessNs = 30e3;  // for the host time of a call
constexpr int kMostPlugs = 1000;
constexpr int kOverlaps = 4;          // signatures measured for each resource
constexpr double kOverlapNs = 200e3;  // duration of the repeated calls
constexpr int kMostOverlapCalls = 8;
constexpr int kOverlapRepetitions = 15;
constexpr int kMostCopiesBesideCalls = 512;
// A run of calls is short if it takes less than this many times the cost of a graph.
constexpr double kShortRun = 10;
// Two streams count as saturated if equal work on both takes longer than this share of the time on
// one.
constexpr double kSaturated = 0.75;
// Unequal work overlaps if two streams hide more than this share of the shorter part.
constexpr double kHidden = 0.5;

// The times of the same work on one stream and on two.
struct Overlap {
  double one_ns = 0;
  double two_ns = 0;
  double hideable_ns = 0;  // duration of the shorter part
  Overlap& operator+=(const Overlap& other) {
    one_ns += other.one_ns;
    two_ns += other.two_ns;
    hideable_ns += other.hideable_ns;
    return *this;
  }
};

class Calibration {
 public:
  Calibration(const storage::Reader& trace, const CalibrateOptions& options,
              storage::Results* results)
      : options_(options),
        results_(results),
        session_(trace, options.data, options.device_lib, options.seed, results),
        pinned_(session_.device(), Block::Kind::kPinned, kCalibrationBytes),
        memory_(session_.device(), Block::Kind::kDevice, kCalibrationBytes) {}

  CalibrationReport Run() {
    session_.WithLowering([&](Execution& execution) {
      report_ = CalibrationReport();
      report_.costs.device = session_.device().description();
      samples_.clear();
      MeasureDeviceCosts(session_.device(), options_.repetitions, pinned_, memory_, report_.costs);
      MeasureStep(execution);
    });
    WriteRun();
    return std::move(report_);
  }

 private:
  struct CallSample {
    int64_t leaf = 0;
    int64_t repetition = 0;
    double host_ns = 0;
    double device_ns = 0;
  };

  Device& device() { return session_.device(); }
  void MeasureStep(Execution& execution) {
    const analyzer::Program& program = session_.program();
    int64_t first = 0;
    auto end = static_cast<int64_t>(program.leaves.size());
    if (!session_.classes().classes.empty()) {
      const analyzer::StepRange& step = program.work.steps[session_.classes().Largest().step_index];
      first = step.first;
      end = step.end;
    }
    // Buffers that the step finds ready stay in place for all passes.
    std::vector<HomeMemory::Need> needs = EagerNeeds(program);
    for (HomeMemory::Need& need : needs) {
      if (need.first_leaf < first && need.last_leaf >= first) need.last_leaf = end;
    }
    const HomeMemory homes(device(), program, needs);
    EagerExecution eager(execution, homes);
    eager.Bind(0, end);
    eager.Run(0, first, nullptr, nullptr);

    std::vector<Call> calls;
    for (int64_t i = first; i < end; ++i) {
      const analyzer::LeafKind kind = program.leaves[i].kind;
      if (kind == analyzer::LeafKind::kView || kind == analyzer::LeafKind::kAllocation) continue;
      Call& call = calls.emplace_back();
      call.leaf = i;
      call.timed = kind == analyzer::LeafKind::kKernel && !session_.lowered().IsSubstituted(i);
    }
    const SavedRanges state(device(), StateOf(program, homes, first, end));
    const int64_t passes = options_.repetitions + 2;  // with a warm-up first and the overlaps last
    event_ns_ = EventTime();
    for (int64_t pass = 0; pass + 1 < passes; ++pass) {
      state.Restore();
      TimedPass(calls, eager, pass - 1);
      if (options_.progress) options_.progress(pass + 1, passes);
    }
    SetMedians();
    MeasureGraphShare(calls, state, execution, eager);
    state.Restore();
    OverlapPass(calls, homes, execution, eager);
    if (options_.progress) options_.progress(passes, passes);
    device().Synchronize();
  }

  struct Call {
    int64_t leaf = 0;
    bool timed = false;
    double host_ns = kFirstGuessNs;
  };

  // Buffers that exist before the step and that the step writes.
  std::vector<MemoryRange> StateOf(const analyzer::Program& program, const HomeMemory& homes,
                                   int64_t first, int64_t end) const {
    std::vector<MemoryRange> state;
    for (const auto& [id, use] : program.buffers) {
      uint8_t* home = homes.Find(id);
      if (use.first_leaf >= first || home == nullptr) continue;
      const bool written = std::any_of(
          use.accesses.begin(), use.accesses.end(), [&](const analyzer::Access& access) {
            return access.write && access.leaf >= first && access.leaf < end;
          });
      if (written) state.push_back({home, use.bytes});
    }
    return state;
  }

  // Returns the device time between two records without work in between.
  double EventTime() {
    std::vector<std::unique_ptr<Event>> events;
    events.reserve(kTimedEvents);
    for (int i = 0; i < kTimedEvents; ++i) events.push_back(std::make_unique<Event>(device()));
    Plug(kTimedEvents * 1000.0);
    for (const auto& event : events) event->Record();
    device().Synchronize();
    std::vector<double> gaps;
    for (size_t i = 1; i < events.size(); ++i) {
      gaps.push_back(events[i]->NanosecondsSince(*events[i - 1]));
    }
    return base::Median(gaps);
  }

  // Keeps the stream busy for about `ns`, so that calls issued meanwhile run without gaps.
  void Plug(double ns) {
    const double copy_ns = std::max(
        1.0, report_.costs.copy_device_ns + kCalibrationBytes * report_.costs.copy_byte_ns);
    const int copies = std::clamp(static_cast<int>(ns / copy_ns) + 1, 1, kMostPlugs);
    for (int i = 0; i < copies; ++i) {
      device().Upload(memory_.data(), pinned_.data(), kCalibrationBytes);
    }
  }

  // Makes one pass over the step, in pieces that end where the host must wait. Calls run in program
  // order and on the program's data, so that the caches are as in a step.
  void TimedPass(std::vector<Call>& calls, EagerExecution& eager, int64_t repetition) {
    const analyzer::Program& program = session_.program();
    const auto ends_stretch = [&](const Call& call) {
      return program.leaves[call.leaf].kind == analyzer::LeafKind::kHostRead;
    };
    for (size_t first = 0; first < calls.size();) {
      size_t end = first;
      double host_ns = 0;
      while (end < calls.size() && end - first < kMostCallsAhead && !ends_stretch(calls[end])) {
        host_ns += calls[end++].host_ns;
      }
      if (end == first) {
        eager.Run(calls[first].leaf, calls[first].leaf + 1, nullptr, nullptr);
        first = end + 1;
        continue;
      }
      device().Synchronize();
      Plug(2 * host_ns);
      // The first event of a call is recorded after the values that are uploaded for it.
      std::vector<std::pair<std::unique_ptr<Event>, std::unique_ptr<Event>>> events(end - first);
      for (size_t index = first; index < end; ++index) {
        Call& call = calls[index];
        if (!call.timed) {
          eager.Run(call.leaf, call.leaf + 1, nullptr, nullptr);
          continue;
        }
        eager.UploadInputs(call.leaf);
        auto& [begin, done] = events[index - first];
        begin = std::make_unique<Event>(device());
        done = std::make_unique<Event>(device());
        begin->Record();
        const int64_t issued = NowNs();
        eager.RunWithoutInputs(call.leaf);
        call.host_ns = static_cast<double>(NowNs() - issued);
        done->Record();
      }
      device().Synchronize();
      for (size_t index = first; index < end && repetition >= 0; ++index) {
        const Call& call = calls[index];
        if (!call.timed) continue;
        const auto& [begin, done] = events[index - first];
        samples_.push_back({call.leaf, repetition, call.host_ns,
                            std::max(0.0, done->NanosecondsSince(*begin) - event_ns_)});
      }
      first = end;
    }
  }

  void SetMedians() {
    const analyzer::Program& program = session_.program();
    std::map<int64_t, std::pair<std::vector<double>, std::vector<double>>> by_signature;
    for (const CallSample& sample : samples_) {
      auto& [host, on_device] = by_signature[program.leaves[sample.leaf].call.signature_id];
      host.push_back(sample.host_ns);
      on_device.push_back(sample.device_ns);
    }
    for (const auto& [signature, samples] : by_signature) {
      report_.costs.by_signature[signature] = {base::Median(samples.first),
                                               base::Median(samples.second)};
    }
    report_.signatures = static_cast<int64_t>(by_signature.size());
  }

  // Executes the longest run of timed calls as one graph. Before each execution the earlier part of
  // the step is executed again. A call that gets values from the recording begins a new run,
  // because its memory may have held other buffers.
  void MeasureGraphShare(const std::vector<Call>& calls, const SavedRanges& state,
                         Execution& execution, EagerExecution& eager) {
    size_t begin = 0;
    size_t end = 0;
    double alone_ns = 0;
    double run_ns = 0;
    for (size_t first = 0, index = 0; index < calls.size(); ++index) {
      const bool fed = !execution.contents().FeedsOf(calls[index].leaf).empty();
      if (!calls[index].timed || fed) {
        first = calls[index].timed ? index : index + 1;
        run_ns = 0;
      }
      if (!calls[index].timed) continue;
      const int64_t signature = session_.program().leaves[calls[index].leaf].call.signature_id;
      run_ns += report_.costs.by_signature[signature].device_ns;
      if (run_ns <= alone_ns) continue;
      alone_ns = run_ns;
      begin = first;
      end = index + 1;
    }
    // A short run would measure the cost of the graph more than that of its calls.
    if (alone_ns < kShortRun * report_.costs.graph_device_ns || begin == end) return;
    const auto issue = [&] {
      for (size_t index = begin; index < end; ++index) eager.RunWithoutInputs(calls[index].leaf);
    };
    const auto prepare = [&] {
      state.Restore();
      eager.Run(calls.front().leaf, calls[begin].leaf, nullptr, nullptr);
      eager.UploadInputs(calls[begin].leaf);
    };
    std::vector<double> in_graph;
    try {
      prepare();
      issue();  // so that the workspace need not grow in the capture
      const TimedGraph graph(device(), issue);
      for (int repetition = -1; repetition < options_.repetitions; ++repetition) {
        prepare();
        const double graph_ns = graph.DeviceTime() - report_.costs.graph_device_ns;
        if (repetition >= 0) in_graph.push_back(graph_ns);
      }
    } catch (const Error& error) {
      AddNote(calls[begin].leaf, "the step was not timed as a graph", error);
      return;
    }
    report_.costs.graph_share = std::max(0.0, base::Median(in_graph)) / alone_ns;
  }

  void AddNote(int64_t leaf, const std::string& what, const Error& error) {
    Note note;
    note.rule = "CALIBRATE-CAPTURE";
    note.severity = "notice";
    note.call_id = session_.program().leaves[leaf].call.call_id;
    note.message = what + ": " + error.what();
    report_.notes.push_back(note);
  }

  // The calls of one leaf, on the device's own stream and on a side stream.
  struct OnTwoStreams {
    Script script;
    std::vector<Operation> here;
    std::vector<Operation> beside;
    std::vector<MemoryRange> written;
  };
  struct OverlapBlock {
    enum : int { kNothing, kHomes, kWorkspace };  // then the temporaries, each for both streams
  };
  OnTwoStreams WriteOnTwoStreams(const analyzer::Leaf& leaf, const HomeMemory& homes,
                                 Execution& execution) const {
    OnTwoStreams work;
    const int64_t temporaries = std::max(execution.lowered().temporary_bytes, kDeviceAlignment);
    work.script.streams = 2;
    work.script.blocks = {{"nothing", kDeviceAlignment},
                          {"homes"},
                          {"workspace 0"},
                          {"workspace 1"},
                          {"temporaries 0", temporaries},
                          {"temporaries 1", temporaries}};
    for (int stream : {0, 1}) {
      const int workspace = OverlapBlock::kWorkspace + stream;
      const LeafMemory memory{
          [&](int64_t buffer_id, const storage::Layout& layout) {
            return Spot{OverlapBlock::kHomes, homes.OffsetOf(buffer_id) + layout.byte_offset};
          },
          {OverlapBlock::kNothing, 0},
          {workspace + 2, 0},
          {workspace, 0}};
      WriteLaunches(AddCalls(leaf, execution.lowered().lowerings[leaf.index], memory, work.script),
                    stream, stream == 0 ? work.here : work.beside);
    }
    for (const analyzer::TensorUse& use : execution.program().uses[leaf.index].writes) {
      if (use.layout->ElementCount() == 0) continue;
      work.written.push_back({homes.Find(use.tensor.buffer_id) + use.layout->FirstByte(),
                              use.layout->EndByte() - use.layout->FirstByte()});
    }
    return work;
  }

  // Measures if calls run in parallel with others, on the first signatures of each resource.
  void OverlapPass(const std::vector<Call>& calls, const HomeMemory& homes, Execution& execution,
                   EagerExecution& eager) {
    const analyzer::Program& program = session_.program();
    Workspace workspaces[] = {Workspace(device()), Workspace(device())};
    std::unordered_set<int64_t> measured;
    std::array<int, 4> count = {};  // by Resource
    std::array<Overlap, 4> equal_work;
    Overlap with_copies;
    for (const Call& call : calls) {
      eager.Run(call.leaf, call.leaf + 1, nullptr, nullptr);
      const analyzer::Leaf& leaf = program.leaves[call.leaf];
      const auto resource = static_cast<size_t>(analyzer::prediction::ResourceOf(leaf.Name()));
      if (!call.timed || execution.lowered().lowerings[call.leaf].invocations.empty() ||
          count[resource] == kOverlaps || !measured.insert(leaf.call.signature_id).second) {
        continue;
      }
      ++count[resource];
      const OnTwoStreams work = WriteOnTwoStreams(leaf, homes, execution);
      ScriptMachine machine(device(), execution.uploader(), work.script);
      machine.Give(OverlapBlock::kHomes, homes.base());
      for (int stream : {0, 1}) machine.Give(OverlapBlock::kWorkspace + stream, workspaces[stream]);
      machine.Prepare();
      const SavedRanges written(device(), work.written);
      // The other stream does not wait for what came before, such as an uploaded index.
      device().Synchronize();
      // Both workspaces get their size before anything is captured.
      machine.Run(work.here, nullptr, nullptr);
      machine.Run(work.beside, nullptr, nullptr);
      machine.Synchronize();
      try {
        MeasureOverlaps(leaf, work, machine, written, equal_work[resource], with_copies);
      } catch (const Error& error) {
        AddNote(call.leaf, "whether " + leaf.Name() + " runs beside others was not measured",
                error);
      }
      written.Restore();
    }
    for (size_t r = 0; r < equal_work.size(); ++r) {
      const Overlap& work = equal_work[r];
      if (work.one_ns <= 0) continue;
      report_.costs.streams.saturates[r] = work.two_ns > kSaturated * work.one_ns;
    }
    if (with_copies.hideable_ns > 0) {
      const double hidden_ns = with_copies.one_ns - with_copies.two_ns;
      report_.costs.streams.overlaps = hidden_ns > kHidden * with_copies.hideable_ns;
    }
  }

  void MeasureOverlaps(const analyzer::Leaf& leaf, const OnTwoStreams& work, ScriptMachine& machine,
                       const SavedRanges& written, Overlap& equal_work, Overlap& with_copies) {
    const double call_ns =
        std::max(1.0, report_.costs.by_signature[leaf.call.signature_id].device_ns);
    const int calls = std::clamp(static_cast<int>(kOverlapNs / call_ns), 1, kMostOverlapCalls);
    const auto run = [&](const std::vector<Operation>& operations) {
      for (int i = 0; i < calls; ++i) machine.Run(operations, nullptr, nullptr);
    };
    const auto here = [&] { run(work.here); };
    aclrtStream side = device().SideStream(0);
    equal_work += MeasureOverlap(written, side, here, here, [&] { run(work.beside); });
    // Use copies that take about as long as the calls.
    const double calls_ns = calls * call_ns;
    const size_t bytes = calls_ns > kOverlapNs / 2 ? kCalibrationBytes : kSmallCopy;
    const double copy_ns =
        std::max(1.0, report_.costs.copy_device_ns +
                          static_cast<double>(bytes) * report_.costs.copy_byte_ns);
    const int copies = std::clamp(static_cast<int>(calls_ns / copy_ns), 1, kMostCopiesBesideCalls);
    const auto copy = [&](aclrtStream stream) {
      for (int i = 0; i < copies; ++i) {
        device().Upload(memory_.data(), pinned_.data(), bytes, stream);
      }
    };
    with_copies += MeasureOverlap(
        written, side, here, [&] { copy(device().stream()); }, [&] { copy(side); });
    with_copies.hideable_ns += std::min(calls_ns, copies * copy_ns);
  }

  // `same_stream` issues some work on the device's stream, and `beside` issues the same work on
  // `side`. Both ways are run in turn, and the median of their differences is used, because times
  // drift.
  Overlap MeasureOverlap(const SavedRanges& written, aclrtStream side,
                         const std::function<void()>& first,
                         const std::function<void()>& same_stream,
                         const std::function<void()>& beside) {
    const Event fork(device(), kOrderingEvent);
    const Event join(device(), kOrderingEvent);
    const TimedGraph one(device(), [&] {
      first();
      same_stream();
    });
    const TimedGraph two(device(), [&] {
      fork.Record();
      fork.MakeWait(side);
      first();
      beside();
      join.Record(side);
      join.MakeWait(device().stream());
    });
    std::vector<double> one_ns, gain_ns;
    for (int repetition = 0; repetition < kOverlapRepetitions; ++repetition) {
      written.Restore();
      one_ns.push_back(one.DeviceTime());
      written.Restore();
      gain_ns.push_back(one_ns.back() - two.DeviceTime());
    }
    Overlap overlap;
    overlap.one_ns = base::Median(one_ns);
    overlap.two_ns = overlap.one_ns - base::Median(gain_ns);
    return overlap;
  }

  void WriteRun() {
    if (results_ == nullptr) return;
    storage::Run run;
    run.mode = "calibrate";
    run.device = report_.costs.device;
    run.options = analyzer::prediction::ToJson(report_.costs);
    report_.costs.run_id = results_->AddRun(run);
    for (const CallSample& measured : samples_) {
      storage::Sample sample;
      sample.run_id = report_.costs.run_id;
      sample.repetition = measured.repetition;
      sample.call_id = session_.program().leaves[measured.leaf].call.call_id;
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
  double event_ns_ = 0;  // added by a pair of events
  Block pinned_;
  Block memory_;
};

}  // namespace

CalibrationReport Calibrate(const storage::Reader& trace, const CalibrateOptions& options,
                            storage::Results* results) {
  return Calibration(trace, options, results).Run();
}

}  // namespace acltape::replayer
