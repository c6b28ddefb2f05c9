#include "replayer/compare.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analyzer/acl/acl_program.h"
#include "analyzer/steps/step_times.h"
#include "replayer/engine/eager.h"
#include "replayer/engine/step_graph.h"
#include "replayer/session.h"
#include "replayer/statistics.h"
#include "replayer/timed_graph.h"
#include "storage/results.h"

namespace acltape::replayer {
namespace {

using analyzer::StepMatch;
using analyzer::StepRange;

// Times of one step in one pass, in nanoseconds.
struct StepTime {
  double host = 0;
  double wait = 0;
  double device = 0;
  double latency = 0;
};

// One way of executing and its samples over all passes.
struct Contender {
  std::string mode;                 // mode of its row in the table `run`
  int64_t* run_id = nullptr;        // in the report
  ExecutionTimes* times = nullptr;  // in the report
  std::optional<int64_t> plan_id;
  std::function<void(size_t step, WaitClock* clock)> run;  // by index in the steps timed
  std::vector<double> host, wait, device, latency;
};

class Timer {
 public:
  Timer(const storage::Reader& trace, const CompareOptions& options, storage::Results* results)
      : options_(options),
        results_(results),
        session_(trace, options.data, options.device_lib, options.seed, results) {}

  CompareReport Run() {
    std::optional<Note> refusal;
    if (options_.plan == nullptr) refusal = session_.CaptureRefusal();
    session_.WithLowering([&](Execution& execution) {
      report_ = CompareReport();
      report_.device = session_.device().description();
      report_.repetitions = options_.repetitions;
      report_.warmup = options_.warmup;
      report_.steps = static_cast<int64_t>(session_.program().work.steps.size());
      report_.notes = session_.lowered().notes;
      if (refusal) {
        report_.refusal = refusal->message;
        report_.notes.push_back(*refusal);
      }
      Measure(execution, !refusal.has_value());
    });
    WriteNotes(report_.notes, results_);
    if (results_ != nullptr) results_->Commit();
    return std::move(report_);
  }

 private:
  // Returns the steps to time: those of the largest class. If the program cannot be captured, all
  // steps but the first.
  std::vector<int64_t> SteadySteps(bool capturable) const {
    std::vector<int64_t> steps;
    if (capturable) {
      for (const StepMatch& match : session_.ClassFor(plan()).matches) {
        steps.push_back(match.step_index);
      }
      return steps;
    }
    const auto count = static_cast<int64_t>(session_.program().work.steps.size());
    for (int64_t s = count > 1 ? 1 : 0; s < count; ++s) steps.push_back(s);
    return steps;
  }

  // Buffers that the steady steps find ready stay in place for all passes.
  std::vector<HomeMemory::Need> PinnedNeeds(const std::vector<int64_t>& steps) const {
    const analyzer::Program& program = session_.program();
    std::vector<HomeMemory::Need> needs = EagerNeeds(program);
    if (steps.empty()) return needs;
    const int64_t first = program.work.steps[steps.front()].first;
    const auto last = static_cast<int64_t>(program.leaves.size());
    for (HomeMemory::Need& need : needs) {
      const int64_t step = program.leaves[need.first_leaf].step_index;
      const int64_t last_step = program.leaves[need.last_leaf].step_index;
      if (need.first_leaf < first && need.last_leaf >= first) need.last_leaf = last;
      // Buffers that several steps use, or that copies at the ends of a step use, live for whole
      // steps.
      if (step >= 0) {
        const bool across = step != last_step;
        if (across) need.first_leaf = program.work.steps[step].first;
      }
      if (last_step >= 0 && step != last_step) {
        need.last_leaf = std::max(need.last_leaf, program.work.steps[last_step].end);
      }
    }
    return needs;
  }

  void Measure(Execution& execution, bool capturable) {
    const analyzer::Program& program = session_.program();
    const std::vector<int64_t> steps = SteadySteps(capturable);
    DescribeRecorded(steps);
    if (steps.empty()) return;
    const HomeMemory homes(session_.device(), program, PinnedNeeds(steps));
    EagerExecution eager(execution, homes);
    std::unique_ptr<StepGraph> graph;
    std::unique_ptr<StepGraph> planned;
    if (capturable) {
      const analyzer::StepTemplate& step_class = session_.ClassFor(plan());
      StepGraphOptions graph_options;
      graph = std::make_unique<StepGraph>(execution, homes, step_class, graph_options);
      graph_options.plan = plan();
      if (plan() != nullptr) {
        planned = std::make_unique<StepGraph>(execution, homes, step_class, graph_options);
      }
    }
    // Up to the first steady step everything runs once, as recorded.
    const int64_t first = program.work.steps[steps.front()].first;
    eager.Bind(0, first);
    eager.Run(0, first, nullptr, nullptr);
    for (const int64_t step : steps) {
      eager.Bind(program.work.steps[step].first, program.work.steps[step].end);
      eager.Preload(program.work.steps[step].first, program.work.steps[step].end);
    }
    const SavedRanges state(session_.device(), ChangedRanges(homes, steps));
    session_.device().Synchronize();
    if (graph) {
      graph->Preload();
      graph->WarmUpAndCapture(0);
      report_.capture_ns = static_cast<double>(graph->capture_ns());
      report_.regions_per_step = graph->graph_count();
      CaptureReport capture;
      graph->Describe(capture);
      report_.copies_per_step = capture.copies_per_step;
      report_.copy_bytes_per_step = capture.copy_bytes_per_step;
      report_.regions = std::move(capture.regions);
    }
    if (planned) {
      planned->Preload();
      planned->WarmUpAndCapture(0);
      CaptureReport capture;
      planned->Describe(capture);
      report_.planned_regions = std::move(capture.regions);
    }
    std::vector<Contender> contenders;
    contenders.push_back(ContenderOf("eager", report_.eager_run_id, report_.eager));
    contenders.back().run = [&](size_t s, WaitClock* clock) {
      const StepRange& range = session_.program().work.steps[steps[s]];
      eager.Run(range.first, range.end, nullptr, clock);
    };
    if (graph) {
      contenders.push_back(ContenderOf("captured", report_.captured_run_id, report_.captured));
      contenders.back().run = [&](size_t s, WaitClock* clock) {
        graph->Execute(s, nullptr, clock);
      };
    }
    if (planned) {
      contenders.push_back(ContenderOf("captured", report_.planned_run_id, report_.planned));
      if (options_.plan->plan_id != 0) contenders.back().plan_id = options_.plan->plan_id;
      contenders.back().run = [&](size_t s, WaitClock* clock) {
        planned->Execute(s, nullptr, clock);
      };
    }
    Passes(contenders, steps, state);
  }

  static Contender ContenderOf(const char* mode, int64_t& run_id, ExecutionTimes& times) {
    Contender contender;
    contender.mode = mode;
    contender.run_id = &run_id;
    contender.times = &times;
    return contender;
  }

  // Returns the memory that the steady steps change in place. It is put back before each pass.
  std::vector<MemoryRange> ChangedRanges(const HomeMemory& homes,
                                         const std::vector<int64_t>& steps) const {
    const analyzer::Program& program = session_.program();
    const int64_t first = program.work.steps[steps.front()].first;
    std::vector<MemoryRange> ranges;
    for (const auto& [id, use] : program.buffers) {
      const bool written = std::any_of(
          use.accesses.begin(), use.accesses.end(),
          [&](const analyzer::Access& access) { return access.write && access.leaf >= first; });
      if (use.first_leaf >= first || !written || homes.Find(id) == nullptr) continue;
      ranges.push_back({homes.Find(id), use.bytes});
    }
    return ranges;
  }

  void Passes(std::vector<Contender>& contenders, const std::vector<int64_t>& steps,
              const SavedRanges& state) {
    for (Contender& contender : contenders) OpenRun(contender);
    const int64_t total = options_.warmup + options_.repetitions;
    for (int64_t pass = 0; pass < total; ++pass) {
      for (Contender& contender : contenders) {
        OnePass(steps, state, pass - options_.warmup, contender);
      }
      if (options_.progress) options_.progress(pass + 1, total);
    }
    for (Contender& contender : contenders) {
      *contender.times = Summarise(contender);
      if (results_ != nullptr) results_->FinishRun(*contender.run_id, 0);
    }
    if (contenders.size() > 1) {
      report_.host_ratio = QuotientOf(report_.eager.host_ns, report_.captured.host_ns);
      report_.latency_ratio = QuotientOf(report_.eager.latency_ns, report_.captured.latency_ns);
      const double saved = report_.eager.host_ns.median - report_.captured.host_ns.median;
      if (saved > 0) {
        report_.break_even_steps = static_cast<int64_t>(std::ceil(report_.capture_ns / saved));
      }
    }
    if (contenders.size() > 2) {
      report_.planned_host_ratio = QuotientOf(report_.eager.host_ns, report_.planned.host_ns);
      report_.planned_latency_ratio =
          QuotientOf(report_.eager.latency_ns, report_.planned.latency_ns);
      ComparePredictions();
    }
  }

  void ComparePredictions() {
    const analyzer::plan::PlanPrediction& predicted = plan()->predicted;
    if (!predicted.calibrated) return;
    const auto add = [&](const char* execution, double predicted_ns, const ExecutionTimes& times) {
      if (predicted_ns <= 0 || times.latency_ns.median <= 0) return;
      report_.predictions.push_back({execution, predicted_ns, times.latency_ns.median});
    };
    add("eager", predicted.eager_ns, report_.eager);
    add("captured", predicted.captured_one_stream_ns, report_.captured);
    add("planned", predicted.captured_ns, report_.planned);
  }

  // A negative repetition is a warm-up and leaves no sample.
  void OnePass(const std::vector<int64_t>& steps, const SavedRanges& state, int64_t repetition,
               Contender& contender) {
    Device& device = session_.device();
    state.Restore();
    device.Synchronize();
    for (size_t s = 0; s < steps.size(); ++s) {
      Event begin(device);
      Event end(device);
      WaitClock clock;
      const int64_t t0 = NowNs();
      begin.Record();
      contender.run(s, &clock);
      end.Record();
      const int64_t t1 = NowNs();
      device.Synchronize();
      const int64_t t2 = NowNs();
      StepTime time;
      time.wait = static_cast<double>(clock.waited_ns);
      time.host = static_cast<double>(t1 - t0) - time.wait;
      time.device = end.NanosecondsSince(begin);
      time.latency = static_cast<double>(t2 - t0);
      if (repetition < 0) continue;
      contender.host.push_back(time.host);
      contender.wait.push_back(time.wait);
      contender.device.push_back(time.device);
      contender.latency.push_back(time.latency);
      WriteSample(*contender.run_id, repetition, session_.program().work.steps[steps[s]].step,
                  time);
    }
  }

  ExecutionTimes Summarise(const Contender& samples) const {
    ExecutionTimes times;
    times.host_ns = MedianOf(samples.host, options_.confidence);
    times.wait_ns = MedianOf(samples.wait, options_.confidence);
    times.device_ns = MedianOf(samples.device, options_.confidence);
    times.latency_ns = MedianOf(samples.latency, options_.confidence);
    if (report_.leaves_per_step > 0) {
      times.host_ns_per_leaf = times.host_ns.median / static_cast<double>(report_.leaves_per_step);
    }
    return times;
  }

  void DescribeRecorded(const std::vector<int64_t>& steps) {
    const analyzer::Program& program = session_.program();
    const std::vector<int64_t> step_times = analyzer::StepTimes(program.work);
    std::vector<double> spans;
    std::vector<double> sums;
    for (const int64_t step : steps) {
      const StepRange& range = program.work.steps[step];
      double sum = 0;
      for (int64_t i = range.first; i < range.end; ++i) {
        sum += static_cast<double>(program.work.calls[i].duration_ns);
      }
      spans.push_back(static_cast<double>(step_times[step]));
      sums.push_back(sum);
    }
    report_.recorded_span_ns = MedianOf(spans, options_.confidence);
    report_.recorded_leaves_ns = MedianOf(sums, options_.confidence);
    report_.steady_steps = static_cast<int64_t>(steps.size());
    if (steps.empty()) return;
    const StepRange& first = program.work.steps[steps.front()];
    report_.leaves_per_step = first.end - first.first;
    for (int64_t i = first.first; i < first.end; ++i) {
      if (program.work.ExecutionOf(i) != nullptr) ++report_.leaves_in_graphs;
      report_.device_calls_per_step +=
          static_cast<int64_t>(session_.lowered().lowerings[i].invocations.size());
      if (program.leaves[i].kind != analyzer::LeafKind::kKernel) continue;
      ++report_.coverage.computed;
      report_.coverage.covered += session_.lowered().IsSubstituted(i) ? 0 : 1;
    }
  }

  const analyzer::plan::Plan* plan() const {
    return options_.plan ? &options_.plan->plan : nullptr;
  }

  void OpenRun(const Contender& contender) {
    if (results_ == nullptr) return;
    nlohmann::json options{
        {"purpose", "timing"}, {"repetitions", options_.repetitions}, {"warmup", options_.warmup}};
    if (contender.times == &report_.planned) options["plan"] = options_.plan->path;
    storage::Run run;
    run.mode = contender.mode;
    run.device = report_.device;
    run.plan_id = contender.plan_id;
    run.options = options.dump();
    *contender.run_id = results_->AddRun(run);
  }

  void WriteSample(int64_t run_id, int64_t repetition, int64_t step, const StepTime& time) {
    if (results_ == nullptr) return;
    storage::Sample sample;
    sample.run_id = run_id;
    sample.repetition = repetition;
    sample.step = step;
    sample.host_ns = static_cast<int64_t>(time.host);
    sample.device_ns = static_cast<int64_t>(time.device);
    results_->AddSample(sample);
  }

  const CompareOptions& options_;
  storage::Results* results_;
  Session session_;
  CompareReport report_;
};

}  // namespace

CompareReport Compare(const storage::Reader& trace, const CompareOptions& options,
                      storage::Results* results) {
  return Timer(trace, options, results).Run();
}

}  // namespace acltape::replayer
