#include "cli/bisect/ranks_diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "analyzer/diff/verdict.h"
#include "analyzer/program/acl_leaves.h"
#include "analyzer/program/source_lines.h"
#include "analyzer/ranks/collectives.h"
#include "cli/bisect/diff_words.h"
#include "cli/frame/nothing_compared.h"
#include "cli/tables/report.h"
#include "cli/terminal/progress.h"
#include "meaning/options.h"
#include "storage/error.h"
#include "storage/process_choice.h"

namespace acltape::cli {
namespace {

using analyzer::diff::DiffCounts;
using analyzer::diff::DiffReport;
using analyzer::diff::DiffRow;
using analyzer::ranks::Communication;

// The processes of a trace by rank.
std::map<int64_t, int64_t> ProcessesOf(const std::string& path, const Communication& all) {
  std::map<int64_t, int64_t> processes;
  for (const auto& [process, rank] : all.ranks) {
    const auto [known, is_new] = processes.emplace(rank, process);
    if (is_new) continue;
    throw Error(ErrorKind::kUsage,
                fmt::format("{} has rank {} twice, as processes {} and {}; compare processes with "
                            "@process"_cli,
                            path, rank, known->second, process));
  }
  return processes;
}

std::string RanksText(const std::map<int64_t, int64_t>& processes) {
  std::vector<int64_t> ranks;
  for (const auto& [rank, process] : processes) ranks.push_back(rank);
  return ranks.empty() ? "no rank" : fmt::format("rank {}", fmt::join(ranks, ", "));
}

}  // namespace

RanksDiff::RanksDiff(const std::string& a, const std::string& b, const storage::TracePart& part,
                     const analyzer::diff::DiffOptions& options)
    : paths_{a, b} {
  Communication all[2];
  std::map<int64_t, int64_t> processes[2];
  for (size_t side = 0; side < 2; ++side) {
    const storage::Reader trace(paths_[side]);
    all[side] = analyzer::ranks::LoadCommunication(trace);
    processes[side] = ProcessesOf(paths_[side], all[side]);
  }
  const bool same = std::ranges::equal(
      processes[0], processes[1], {}, [](const auto& entry) { return entry.first; },
      [](const auto& entry) { return entry.first; });
  if (!same || processes[0].size() < 2) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} has {} with a communicator, {} has {}; @ranks all compares traces "
                            "that have the same ranks, at least two"_cli,
                            a, RanksText(processes[0]), b, RanksText(processes[1])));
  }
  for (const auto& [rank, process] : processes[0]) {
    Progress progress(fmt::format("diff of rank {}", rank));
    analyzer::diff::DiffOptions of_rank = options;
    of_rank.progress = [&](int64_t done, int64_t total) { progress.Update(done, total); };
    const storage::TracePart of_part{storage::RankText(rank), part.level};
    const storage::Reader reader_a(a, of_part);
    const storage::Reader reader_b(b, of_part);
    const DiffReport report = analyzer::diff::Diff(reader_a, reader_b, of_rank);
    progress.Clear();
    Rank& one = ranks_.emplace_back();
    one.rank = rank;
    one.counts = report.counts;
    one.coverage = report.coverage;
    one.verdict = analyzer::diff::VerdictOf(report);
    one.standard = report.standard;
    one.different = report.different();
    if (!one.different) continue;
    const DiffRow& row = report.rows[report.first];
    one.place = Place(row);
    one.where = LineOf(row, analyzer::SourceLines(reader_a), analyzer::SourceLines(reader_b));
    one.cause = analyzer::diff::DiffCauseName(row.cause);
    one.change = row.change;
    one.result = row.reason.empty() ? "" : WithOutput(row);
    const bool in_a = !row.a_calls.empty();
    const std::vector<int64_t>& calls = in_a ? row.a_calls : row.b_calls;
    const int side = in_a ? 0 : 1;
    const bool leaves = report.dialect == analyzer::Dialect::kAten;
    one.collectives =
        all[side].CountUpTo(processes[side].at(rank), analyzer::RecordedCall(calls.front()),
                            leaves ? storage::Level::kAten : storage::Level::kAcl);
  }
}

const RanksDiff::Rank* RanksDiff::First() const {
  const Rank* first = nullptr;
  for (const Rank& one : ranks_) {
    if (one.different && (first == nullptr || one.collectives < first->collectives)) first = &one;
  }
  return first;
}

size_t RanksDiff::AsEarly() const {
  const Rank* first = First();
  return std::ranges::count_if(ranks_, [first](const Rank& one) {
    return one.different && one.collectives == first->collectives;
  });
}

std::string RanksDiff::FirstRank() const {
  const Rank* first = First();
  return first == nullptr ? "" : storage::RankText(first->rank);
}

std::string RanksDiff::Verdict() const {
  if (const Rank* first = First()) {
    const size_t others = AsEarly() - 1;
    return fmt::format("different, first on rank {}{}", first->rank,
                       others == 0 ? "" : fmt::format(" and {} more as early", others));
  }
  for (const Rank& one : ranks_) {
    if (one.counts.aligned == 0 || one.coverage.TooLittle()) {
      return fmt::format("rank {}: {}", one.rank, one.verdict);
    }
  }
  int64_t equal = 0;
  bool all_equal = true;
  for (const Rank& one : ranks_) {
    equal += one.counts.equal;
    all_equal = all_equal && one.counts.within + one.counts.different == 0;
  }
  return all_equal ? fmt::format("equal on {} ranks: all {} compared results", ranks_.size(), equal)
                   : fmt::format("no meaningful divergence on {} ranks", ranks_.size());
}

Table RanksDiff::Summary(const CommandLine& given) const {
  Table table({"quantity", "value"});
  const auto add = [&](const char* quantity, Cell value) {
    table.Add({quantity, std::move(value)});
  };
  const auto sum = [&](int64_t DiffCounts::*count) {
    int64_t all = 0;
    for (const Rank& one : ranks_) all += one.counts.*count;
    return all;
  };
  add("A", paths_[0]);
  add("B", paths_[1]);
  add("standard", ranks_.front().standard);
  add("ranks", static_cast<int64_t>(ranks_.size()));
  add("aligned", sum(&DiffCounts::aligned));
  add("  of these changed", sum(&DiffCounts::changed));
  add("inserted in B", sum(&DiffCounts::inserted));
  add("deleted from A", sum(&DiffCounts::deleted));
  add("results equal", sum(&DiffCounts::equal));
  add("results within the standard", sum(&DiffCounts::within));
  add("results different", sum(&DiffCounts::different));
  add("results not comparable", sum(&DiffCounts::not_comparable));
  analyzer::Coverage coverage;
  for (const Rank& one : ranks_) {
    coverage.computed += one.coverage.computed;
    coverage.covered += one.coverage.covered;
  }
  add(analyzer::diff::kCoverageWords, coverage.Share());
  if (const Rank* first = First()) {
    add("first divergence", fmt::format("rank {}: {}", first->rank, first->place));
    if (!first->where.empty()) add("  where", first->where);
    add("  cause", first->cause);
    if (!first->change.empty()) add("  change", first->change);
    if (!first->result.empty()) add("  result", first->result);
    add("  after collectives", first->collectives);
    add("reproduce", given.Without("ranks").With("process", storage::RankText(first->rank)).Text());
  }
  add("verdict", Verdict());
  return table;
}

Table RanksDiff::RankTable() const {
  Table table({"rank", "aligned", "changed", "inserted", "deleted", "equal", "within", "different",
               "not_comparable", "covered", "collectives", "first_divergence", "where", "cause"});
  for (const Rank& one : ranks_) {
    table.Add({one.rank, one.counts.aligned, one.counts.changed, one.counts.inserted,
               one.counts.deleted, one.counts.equal, one.counts.within, one.counts.different,
               one.counts.not_comparable, one.coverage.Share(),
               one.different ? Cell(one.collectives) : Cell(), TextCell(one.place),
               TextCell(one.where), TextCell(one.cause)});
  }
  return table;
}

int RanksDiff::Print(Format format, const CommandLine& given) const {
  Report output;
  output.Add("summary", Summary(given));
  output.Add("ranks", RankTable());
  fmt::print("{}", output.ToText(format));
  if (First() != nullptr) return kExitDifferences;
  for (const Rank& one : ranks_) {
    if (one.counts.aligned == 0) {
      return NothingCompared(
          fmt::format("no call of rank {} of A has a counterpart in B", one.rank));
    }
    if (one.coverage.TooLittle()) {
      return TooLittleCompared(
          one.coverage,
          fmt::format("that is on rank {}; record both with @payload all"_cli, one.rank));
    }
  }
  return kExitFine;
}

}  // namespace acltape::cli
