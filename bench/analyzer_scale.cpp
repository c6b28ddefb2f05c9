// Measures how the analyzer's time and memory grow with the length of a trace.
//
//   analyzer_scale [--acl] [--seed N] [--sizes 10000,100000,1000000] [TRACE ...]
//
// Takes the traces given, or writes synthetic ones of the sizes: of training, or with --acl of an
// ACL program that serves requests. For each trace it prints the seconds of each stage and the
// greatest memory of the process up to that stage's end. For the synthetic ones it then prints the
// growth exponent from the smallest to the largest (1: linear). Each trace is measured in a process
// of its own.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/graph/hazards.h"
#include "analyzer/graph/variation.h"
#include "analyzer/lint/lint.h"
#include "analyzer/memory/pool.h"
#include "analyzer/memory/reuse.h"
#include "analyzer/plan/planner.h"
#include "analyzer/steps/steps.h"
#include "bench/synthetic_trace.h"
#include "storage/reader.h"

namespace {

using namespace acltape;            // NOLINT(google-build-using-namespace): one small program
using namespace acltape::analyzer;  // NOLINT(google-build-using-namespace)

// The results that one stage hands to the next.
struct State {
  explicit State(const std::string& path) : trace(path) {}
  storage::Reader trace;
  acltape::analyzer::Work work;
};

struct Stage {
  const char* name;
  std::function<std::string(State&)> run;  // returns what it found, for the eye
};

const std::vector<Stage>& Stages() {
  static const std::vector<Stage> stages = {
      {"load",
       [](State& state) {
         state.work = acltape::analyzer::LoadWork(state.trace);
         return fmt::format("{} calls, {} forms", state.work.size(), state.work.forms.size());
       }},
      {"steps",
       [](State& state) {
         acltape::analyzer::AssignSteps(state.work, nullptr);
         return fmt::format("{} steps", state.work.steps.size());
       }},
      {"hazards",
       [](State& state) {
         return fmt::format(
             "{} edges",
             acltape::analyzer::graph::FindHazards(state.work, 0, state.work.size()).size());
       }},
      {"variation",
       [](State& state) {
         size_t arguments = 0;
         size_t moving = 0;
         const std::vector<acltape::analyzer::graph::StepFamily> families =
             acltape::analyzer::graph::FindFamilies(state.work);
         for (const acltape::analyzer::graph::StepFamily& family : families) {
           const acltape::analyzer::graph::Variation variation =
               acltape::analyzer::graph::FindVariation(state.work, family);
           arguments += variation.arguments.size();
           for (const acltape::analyzer::graph::StepInput& input : variation.inputs)
             moving += input.moves ? 1 : 0;
         }
         return fmt::format("{} families, {} varying arguments, {} moving inputs", families.size(),
                            arguments, moving);
       }},
      {"memory",
       [](State& state) {
         const acltape::analyzer::memory::BufferLives lives(state.work);
         const std::vector<acltape::analyzer::graph::StepFamily> families =
             acltape::analyzer::graph::FindFamilies(state.work);
         if (families.empty()) return std::string("no steps");
         const auto largest = std::max_element(families.begin(), families.end(),
                                               [](const acltape::analyzer::graph::StepFamily& a,
                                                  const acltape::analyzer::graph::StepFamily& b) {
                                                 return a.steps.size() < b.steps.size();
                                               });
         std::vector<std::vector<uint32_t>> executions;
         for (size_t step = 0; step < largest->steps.size(); ++step) {
           const auto first =
               largest->calls.begin() + static_cast<std::ptrdiff_t>(step * largest->places);
           executions.emplace_back(first, first + static_cast<std::ptrdiff_t>(largest->places));
         }
         const size_t late =
             acltape::analyzer::memory::FindLateReads(state.work, lives, executions).size();
         executions.resize(1);
         const acltape::analyzer::memory::PoolSet pools =
             acltape::analyzer::memory::PlanPools(state.work, lives, executions);
         return fmt::format("pool of a step {} bytes, {} late reads", pools.separate_bytes, late);
       }},
      {"plan",
       [](State& state) -> std::string {
         if (state.work.dialect == acltape::analyzer::Dialect::kAcl) return "not for ACL programs";
         const acltape::analyzer::plan::PlannedStep planned =
             acltape::analyzer::plan::MakePlan(state.work, {});
         return fmt::format("{} regions, {} of {} calls captured", planned.regions.size(),
                            planned.captured_calls(), planned.calls);
       }},
      {"lint",
       [](State& state) {
         const acltape::analyzer::lint::LintReport report =
             acltape::analyzer::lint::Lint(state.work, {});
         return fmt::format("{} regions, {} findings", report.stretches.size(),
                            report.findings.size());
       }},
  };
  return stages;
}

struct Measured {
  double seconds = 0;
  double peak_mib = 0;
};

double ProcessorSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double PeakMib() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Runs all stages on one trace in a child process and prints a row for each; their figures.
std::vector<Measured> Measure(const std::string& path, const std::string& label) {
  int channel[2];
  if (pipe(channel) != 0) throw std::runtime_error("no pipe");
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    close(channel[0]);
    State state(path);
    double total = 0;
    for (const Stage& stage : Stages()) {
      const double begin = ProcessorSeconds();
      const std::string found = stage.run(state);
      const Measured row{ProcessorSeconds() - begin, PeakMib()};
      total += row.seconds;
      fmt::print("{:>12} {:<10} {:>9.3f} s {:>9.0f} MiB  {}\n", label, stage.name, row.seconds,
                 row.peak_mib, found);
      if (write(channel[1], &row, sizeof(row)) != sizeof(row)) _exit(1);
    }
    fmt::print("{:>12} {:<10} {:>9.3f} s {:>9.0f} MiB\n", label, "all", total, PeakMib());
    fflush(stdout);
    _exit(0);
  }
  close(channel[1]);
  std::vector<Measured> rows;
  for (Measured row; read(channel[0], &row, sizeof(row)) == sizeof(row);) rows.push_back(row);
  close(channel[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("the measurement of " + label + " failed");
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int64_t> sizes = {10000, 100000, 1000000};
  std::vector<std::string> traces;
  uint64_t seed = 1;
  bool acl = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--sizes" && i + 1 < argc) {
      sizes.clear();
      std::istringstream list(argv[++i]);
      for (std::string part; std::getline(list, part, ',');) sizes.push_back(std::stoll(part));
    } else if (word == "--acl") {
      acl = true;
    } else if (word.starts_with("--")) {
      fmt::print(stderr,
                 "usage: analyzer_scale [--acl] [--seed N] [--sizes N,N,...] [TRACE ...]\n");
      return 2;
    } else {
      traces.push_back(word);
    }
  }
  try {
    for (const std::string& trace : traces) Measure(trace, std::filesystem::path(trace).filename());
    if (!traces.empty()) return 0;
    std::vector<std::vector<Measured>> by_size;
    const std::string path =
        std::filesystem::temp_directory_path() / fmt::format("acltape_scale_{}.db", getpid());
    for (const int64_t size : sizes) {
      const int64_t calls =
          acl ? bench::WriteSyntheticServing(path, size, seed)
              : bench::WriteSyntheticTraining(path, {.calls = size, .seed = seed});
      by_size.push_back(Measure(path, std::to_string(calls)));
      std::filesystem::remove(path);
    }
    if (sizes.size() < 2) return 0;
    const double growth = static_cast<double>(sizes.back()) / static_cast<double>(sizes.front());
    for (size_t s = 0; s < Stages().size(); ++s) {
      fmt::print(
          "{:>12} {:<10} {:>9.2f}\n", "exponent", Stages()[s].name,
          std::log(by_size.back()[s].seconds / by_size.front()[s].seconds) / std::log(growth));
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "analyzer_scale: {}\n", error.what());
    return 1;
  }
  return 0;
}
