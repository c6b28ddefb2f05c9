// Stream planning on random graphs, next to Nimble (Kwon et al., NeurIPS 2020) in the same run.
//
//   build/bin/stream_planning [GRAPHS]     graphs of each family and size, default 5
//
// One line per family and size with medians over the graphs. Without a limit on streams: the width;
// streams and waits of the minimum chain cover, waits after merging; Nimble's streams, the fewest
// waits they need, the waits and records that its runtime issues. With four streams: makespan as a
// share of one stream's, and how far it is at most above the best; waits. Times are those of one
// plan.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <vector>

#include "analyzer/streams/chain_cover.h"
#include "analyzer/streams/list_schedule.h"
#include "analyzer/streams/plan_streams.h"
#include "analyzer/streams/race_checker.h"
#include "analyzer/streams/waits.h"
#include "base/median.h"
#include "tests/analyzer/random_dag.h"

namespace {

using namespace acltape;
using namespace acltape::analyzer;

double Milliseconds(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

struct Figures {
  double edges = 0, width = 0;
  double streams = 0, waits = 0, merged_waits = 0, records = 0, cover_ms = 0;
  double nimble_streams = 0, nimble_waits = 0, runtime_waits = 0, runtime_records = 0,
         nimble_ms = 0;
  double makespan = 0, gap = 0, planned_streams = 0, planned_waits = 0, plan_ms = 0;
  double races = 0;
};

Figures Measure(const acltape::analyzer::streams::Dag& dag) {
  Figures figures;
  figures.edges = static_cast<double>(dag.edges.size());
  acltape::analyzer::streams::StreamAssignment cover;
  figures.cover_ms = Milliseconds([&] {
    cover = acltape::analyzer::streams::CoverByChains(
        dag, acltape::analyzer::streams::PartialOrder(dag));
  });
  acltape::analyzer::streams::NimbleAssignment nimble;
  figures.nimble_ms = Milliseconds([&] {
    nimble = acltape::analyzer::streams::AssignLikeNimble(
        dag, acltape::analyzer::streams::PartialOrder(dag));
  });
  figures.width = static_cast<double>(
      acltape::analyzer::streams::MaximumAntichain(acltape::analyzer::streams::PartialOrder(dag))
          .size());
  figures.streams = cover.streams;
  figures.waits = static_cast<double>(cover.waits.size());
  const acltape::analyzer::streams::StreamAssignment merged =
      acltape::analyzer::streams::MergeWaits(dag, cover, {.saturates = {}});
  figures.merged_waits = static_cast<double>(merged.waits.size());
  figures.records = acltape::analyzer::streams::CountRecords(merged);
  figures.nimble_streams = nimble.assignment.streams;
  figures.nimble_waits = static_cast<double>(nimble.assignment.waits.size());
  figures.runtime_waits = nimble.runtime_waits;
  figures.runtime_records = nimble.runtime_records;

  acltape::analyzer::streams::StreamCertificate certificate;
  acltape::analyzer::streams::StreamAssignment planned;
  figures.plan_ms = Milliseconds([&] {
    planned = acltape::analyzer::streams::PlanStreams(dag, {.streams = 4}, &certificate);
  });
  figures.makespan = certificate.makespan_ns / certificate.one_stream_ns;
  figures.gap = certificate.gap;
  figures.planned_streams = certificate.streams;
  figures.planned_waits = certificate.waits;
  const auto accesses = test::AccessesOf(dag);
  for (const acltape::analyzer::streams::StreamAssignment& assignment :
       {cover, merged, nimble.assignment, planned}) {
    figures.races += static_cast<double>(
        acltape::analyzer::streams::CheckAssignment(assignment, accesses).races().size());
  }
  return figures;
}

double Median(const std::vector<Figures>& all, double Figures::*figure) {
  std::vector<double> values;
  for (const Figures& figures : all) values.push_back(figures.*figure);
  return acltape::base::UpperMedian(values);
}

}  // namespace

int main(int argc, char** argv) {
  const int graphs = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  fmt::print("{:40}| minimum chain cover{:18}| Nimble{:30}| at most four streams\n", "", "", "");
  fmt::print(
      "{:15} {:>5} {:>6} {:>5} {:>5} | {:>5} {:>6} {:>6} {:>7} {:>8} | {:>5} {:>6} {:>7} {:>7} "
      "{:>6} | {:>7} {:>5} "
      "{:>8} {:>5} {:>6}\n",
      "family", "nodes", "edges", "width", "races", "strms", "waits", "merged", "records", "ms",
      "strms", "waits", "runtime", "records", "ms", "streams", "waits", "makespan", "gap", "ms");
  for (const test::DagFamily family : test::kDagFamilies) {
    for (const size_t nodes : {50u, 400u, 2000u}) {
      std::vector<Figures> all;
      for (int graph = 0; graph < graphs; ++graph) {
        all.push_back(Measure(test::RandomDag(family, nodes, static_cast<uint32_t>(graph)).dag()));
      }
      const auto of = [&](double Figures::*figure) { return Median(all, figure); };
      double races = 0;
      for (const Figures& figures : all) races += figures.races;
      fmt::print(
          "{:15} {:>5} {:>6} {:>5} {:>5} | {:>5} {:>6} {:>6} {:>7} {:>8.1f} | {:>5} {:>6} {:>7} "
          "{:>7} {:>6.1f} | {:>7} "
          "{:>5} {:>7.0f}% {:>4.0f}% {:>6.1f}\n",
          test::FamilyName(family), nodes, of(&Figures::edges), of(&Figures::width), races,
          of(&Figures::streams), of(&Figures::waits), of(&Figures::merged_waits),
          of(&Figures::records), of(&Figures::cover_ms), of(&Figures::nimble_streams),
          of(&Figures::nimble_waits), of(&Figures::runtime_waits), of(&Figures::runtime_records),
          of(&Figures::nimble_ms), of(&Figures::planned_streams), of(&Figures::planned_waits),
          100 * of(&Figures::makespan), 100 * of(&Figures::gap), of(&Figures::plan_ms));
    }
  }
  return 0;
}
