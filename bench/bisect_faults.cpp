// bisect_faults TRACE [--plan FILE] [--kinds a,b] [--places N] [--pairs N] [--clean N] [--seed N]
//
// Measures how well bisection finds faults that were planted on purpose. It records nothing itself:
// the trace is loaded once, and every bisection runs in this process. It prints a row for each kind
// of fault: places bisected, how often the call of the fault was named, how often it is part of the
// verified set, how often the class is right, and experiments against the bound. Below come every
// miss with the command that shows it, and the outcome of repeated bisections of the step without a
// fault.
//
// A place at which a fault changes no output of the step is passed over and counted. Missing waits
// need a plan with several streams (`acltape plan --spread`); every execution then is one for each
// order of its streams. With ACLTAPE_SOFT_JITTER in the environment tasks are late at random
// instead.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/plan/plan_file.h"
#include "analyzer/program/leaves.h"
#include "replayer/bisect/step_bisection.h"
#include "replayer/script/fault_sites.h"
#include "replayer/script/stream_orders.h"

namespace acltape::replayer {
namespace {

struct Kind {
  script::FaultKind fault;
  bisect::CauseClass expected;
};
constexpr Kind kKinds[] = {
    {script::FaultKind::kWrongBits, bisect::CauseClass::kNumeric},
    {script::FaultKind::kMissingWait, bisect::CauseClass::kOrdering},
    {script::FaultKind::kStaleInput, bisect::CauseClass::kStaleArgument},
    {script::FaultKind::kBakedScalar, bisect::CauseClass::kStaleArgument},
    {script::FaultKind::kOverwrittenOutput, bisect::CauseClass::kAliasing},
    {script::FaultKind::kReusedWorkspace, bisect::CauseClass::kAliasing},
    {script::FaultKind::kMovedAddress, bisect::CauseClass::kAddress},
};

struct Tally {
  int possible = 0;   // places of the step
  int invisible = 0;  // faults that were tried and change no output
  int bisected = 0;
  int named = 0;      // the first guess is the fault's call
  int contained = 0;  // the verified set has it
  int minimal = 0;    // and nothing that could be left out
  int class_right = 0;
  std::vector<int64_t> to_call;
  std::vector<int64_t> in_all;
};

class Bench {
 public:
  Bench(const script::MixedStep& step, const std::string& trace, const std::string& plan,
        uint64_t seed, int executions, int orders)
      : step_(step), random_(seed) {
    options_.experiment.step.plan = step.plan();
    std::vector<size_t> run{1};
    const size_t last = step.step_class().matches.size() - 1;
    if (last > 1) run.push_back(last);
    options_.experiment.step.run_matches = script::RunsOfOrders(std::move(run), 0, orders);
    options_.experiment.executions = executions;
    command_ = "acltape bisect " + trace + (plan.empty() ? "" : " --plan " + plan);
  }

  void RunKind(const Kind& kind, int places) {
    std::vector<script::PlantedFault> faults = script::PossibleFaults(step_, kind.fault);
    Tally tally;
    tally.possible = static_cast<int>(faults.size());
    std::shuffle(faults.begin(), faults.end(), random_);
    for (const script::PlantedFault& fault : faults) {
      if (tally.bisected == places) break;
      RunFault(kind, fault, tally);
    }
    Print(kind, tally);
  }

  // Two faults at once: either is a cause of its own, so one of them has to be found, and both when
  // two causes are asked for.
  void RunPairs(int pairs) {
    std::vector<script::PlantedFault> faults =
        script::PossibleFaults(step_, script::FaultKind::kWrongBits);
    int both = 0;
    int bisected = 0;
    std::vector<int64_t> experiments;
    for (int i = 0; i < pairs && faults.size() > 1; ++i) {
      std::shuffle(faults.begin(), faults.end(), random_);
      bisect::StepBisectionOptions options = options_;
      options.experiment.step.faults = {faults[0], faults[1]};
      options.bisection.search.causes = 2;
      const bisect::BisectionReport report = bisect::BisectStep(step_, options, nullptr);
      if (report.ExitCode() == 0) continue;
      ++bisected;
      experiments.push_back(report.experiments);
      std::vector<int64_t> found;
      for (const bisect::FoundCause& cause : report.found) found.push_back(cause.first_call);
      std::vector<int64_t> planted{faults[0].call_id, faults[1].call_id};
      std::sort(found.begin(), found.end());
      std::sort(planted.begin(), planted.end());
      if (found == planted) ++both;
    }
    fmt::print("two wrong kernels at once: {} bisected, both found {}, experiments {}\n", bisected,
               both, Spread(experiments));
  }

  void RunClean(int repetitions) {
    int reported = 0;
    for (int i = 0; i < repetitions; ++i) {
      const bisect::BisectionReport report = bisect::BisectStep(step_, options_, nullptr);
      if (report.search.verdict == bisect::SearchResult::Verdict::kNothing) continue;
      ++reported;
      fmt::print("  without a fault: {}\n", report.Verdict());
    }
    fmt::print("without a fault: {} bisections, {} reported something\n", repetitions, reported);
  }

  void PrintMisses() const {
    for (const std::string& miss : misses_) fmt::print("  {}\n", miss);
  }

 private:
  void RunFault(const Kind& kind, const script::PlantedFault& fault, Tally& tally) {
    bisect::StepBisectionOptions options = options_;
    options.experiment.step.faults = {fault};
    const bisect::BisectionReport report = bisect::BisectStep(step_, options, nullptr);
    if (report.search.verdict == bisect::SearchResult::Verdict::kNothing) {
      ++tally.invisible;
      return;
    }
    ++tally.bisected;
    if (report.found.empty()) return Miss(fault, report, "nothing found");
    const bisect::FoundCause& found = report.found.front();
    const auto call = [&](size_t element) { return step_.CallAt(step_.capturable()[element]); };
    const bool named = call(found.cause.first_guess) == fault.call_id;
    const bool contained =
        std::any_of(found.cause.elements.begin(), found.cause.elements.end(),
                    [&](size_t element) { return call(element) == fault.call_id; });
    const bool right = found.classification && found.classification->cause == kind.expected;
    tally.named += named ? 1 : 0;
    tally.contained += contained ? 1 : 0;
    tally.minimal += found.cause.minimal ? 1 : 0;
    tally.class_right += right ? 1 : 0;
    tally.to_call.push_back(found.cause.to_first_guess);
    tally.in_all.push_back(found.cause.experiments);
    if (!named || !contained) return Miss(fault, report, "another call");
    if (!right) {
      Miss(fault, report,
           "class " + std::string(found.classification
                                      ? bisect::CauseClassName(found.classification->cause)
                                      : "none"));
    }
  }

  void Miss(const script::PlantedFault& fault, const bisect::BisectionReport& report,
            const std::string& what) {
    misses_.push_back(fmt::format("{}: {}; {} --plant {}", what, report.Verdict(), command_,
                                  script::FaultText(fault)));
  }

  static std::string Spread(std::vector<int64_t> values) {
    if (values.empty()) return "-";
    std::sort(values.begin(), values.end());
    return fmt::format("{} ({})", values[values.size() / 2], values.back());
  }

  void Print(const Kind& kind, const Tally& tally) const {
    fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
               script::FaultKindName(kind.fault), tally.possible, tally.invisible, tally.bisected,
               tally.named, tally.contained, tally.class_right, Spread(tally.to_call),
               bisect::BoundForOne(step_.capturable().size()), Spread(tally.in_all));
    std::fflush(stdout);
  }

  const script::MixedStep& step_;
  std::mt19937_64 random_;
  bisect::StepBisectionOptions options_;
  std::string command_;
  std::vector<std::string> misses_;
};

struct Arguments {
  std::string trace;
  std::string plan;
  std::vector<std::string> kinds;
  int places = 20;
  int pairs = 0;
  int clean = 0;
  int executions = 3;
  uint64_t seed = 1;
};

void Run(const Arguments& arguments) {
  const storage::Reader reader(arguments.trace);
  analyzer::plan::Plan plan;
  if (!arguments.plan.empty()) {
    plan = analyzer::plan::ReadPlan(arguments.plan, analyzer::LoadLeaves(reader, nullptr));
  }
  // A call that lacks a wait gets one more stream.
  const int orders = script::UseStreamOrders(script::StreamsOf(
      arguments.plan.empty() ? nullptr : &plan, {{script::FaultKind::kMissingWait}}));
  Session session(reader, Data::kRecorded, "", 1, nullptr);
  session.WithLowering([&](Execution& execution) {
    const script::MixedStep step(session, execution, arguments.plan.empty() ? nullptr : &plan);
    fmt::print("{}: {} calls to bisect, seed {}, orders of streams {}\n\n", arguments.trace,
               step.capturable().size(), arguments.seed, orders);
    Bench bench(step, arguments.trace, arguments.plan, arguments.seed, arguments.executions,
                orders);
    fmt::print(
        "| fault | possible places | invisible | bisected | call named | in the verified set "
        "| class right | experiments to the call, median (most) | bound | to the verified "
        "set, median (most) |\n|---|---|---|---|---|---|---|---|---|---|\n");
    for (const Kind& kind : kKinds) {
      const bool asked = arguments.kinds.empty() ||
                         std::count(arguments.kinds.begin(), arguments.kinds.end(),
                                    std::string(script::FaultKindName(kind.fault))) != 0;
      if (asked && arguments.places > 0) bench.RunKind(kind, arguments.places);
    }
    fmt::print("\n");
    bench.PrintMisses();
    if (arguments.pairs > 0) bench.RunPairs(arguments.pairs);
    if (arguments.clean > 0) bench.RunClean(arguments.clean);
  });
}

}  // namespace
}  // namespace acltape::replayer

int main(int argc, char** argv) {
  acltape::replayer::Arguments arguments;
  CLI::App app("Bisects faults that were planted on purpose.");
  app.add_option("trace", arguments.trace)->required();
  app.add_option("--plan", arguments.plan);
  app.add_option("--kinds", arguments.kinds)->delimiter(',');
  app.add_option("--places", arguments.places)->capture_default_str();
  app.add_option("--pairs", arguments.pairs)->capture_default_str();
  app.add_option("--clean", arguments.clean)->capture_default_str();
  app.add_option("--executions", arguments.executions)->capture_default_str();
  app.add_option("--seed", arguments.seed)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    const auto begin = std::chrono::steady_clock::now();
    acltape::replayer::Run(arguments);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    fmt::print("{:.1f} s\n", seconds.count());
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bisect_faults: {}\n", error.what());
    return 1;
  }
}
